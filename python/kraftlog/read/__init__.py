"""Reading partitions: segments through windows, ranges, transactions, records and messages.

``segment_reader`` opens a log file for every pass: ``segment_headers`` returns its batch headers, ``segment_file``
lends ``RecordDecoder``, ``HeaderScan``, ``Lookahead``, ``scan_markers`` and ``seek`` a file that they read by
windows. Both turn an OSError into exactly one fault ``unreadable_file``, or raise with ``strict``. ``seek`` and
``ranges`` say where to start and how to cut; ``transaction_map`` and ``metadata_scan`` what the transactions around a
range are; ``records`` and ``messages`` read it. Nothing here writes, and loops over records are left to the codec.
"""
