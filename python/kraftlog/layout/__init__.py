"""Kafka's files on disk: their names, what a folder holds, index files, checkpoints and snapshots."""
