"""Bytes and columns: record batches of every format version, their compression, varints and checksums."""
