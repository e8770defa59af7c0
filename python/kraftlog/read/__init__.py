"""Reading partitions: segments through windows, ranges, transactions, records and messages.

``segment_reader`` opens a log file for each pass: ``segment_headers`` returns its batch headers, ``segment_file`` lends
a windowed file to ``RecordDecoder``, ``HeaderScan``, ``Lookahead``, ``scan_markers`` and ``seek``. Both turn an OSError
into exactly one fault ``unreadable_file``, or raise with ``strict``. ``seek`` finds start positions and ``ranges``
divides segments; ``transaction_map`` and ``metadata_scan`` determine the transactions around a range; ``records`` and
``messages`` read it. Nothing here writes, and the codec loops over records.
"""
