"""The metadata log: its files, its image at an offset, and its snapshots.

``files`` finds the segments and snapshots, ``replay`` reads the visible records in one pass, ``image`` applies them,
``image_snapshot`` and ``snapshot_writer`` write an image as Kafka's snapshot. ``kraftlog.read.metadata_scan`` decides
which records a transaction hides; ``kraftlog.metadata`` applies records to an image.
"""
