"""Kafka's files and folders: names, the listing of a partition's folder, index, snapshot and checkpoint files.

``discover`` goes from paths to segments, ``PartitionFolder`` sorts one listing of a folder, ``names`` parses file
names. Index files, checkpoints and producer snapshots each have a module that reads them and, where needed, one that
encodes them. Files are opened through ``kraftlog.disk``; this package does not read records.
"""
