"""Reading partitions: segments through windows, ranges, transactions, records and messages.

``segment_reader`` opens a segment for every pass and turns an OSError into one fault ``unreadable_file``. ``seek`` and
``ranges`` say where to start and how to cut; ``transaction_map`` and ``metadata_scan`` what the transactions around a
range are; ``records`` and ``messages`` read it. Nothing here writes, and loops over records are left to the codec.
"""
