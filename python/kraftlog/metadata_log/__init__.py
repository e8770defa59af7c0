"""The metadata log: its files, its image at an offset, and its snapshots.

``files`` finds the segments and snapshots, ``replay`` reads the visible records in one pass, ``image`` applies them,
``image_snapshot`` and ``snapshot_writer`` write an image as Kafka's snapshot. What a transaction hides is decided in
``kraftlog.read.metadata_scan``; what a record does to an image in ``kraftlog.metadata``.
"""
