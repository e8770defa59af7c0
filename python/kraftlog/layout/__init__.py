"""Kafka's files and folders: names, the listing of a partition's folder, and the files beside log files.

``discover`` goes from paths to segments, ``PartitionFolder`` sorts one listing of a folder, ``names`` says what file
names mean. Index files, checkpoints and producer snapshots each have a file that reads them and, where it is needed,
one that makes their bytes. Files are opened through ``kraftlog.disk``; records are not read here.
"""
