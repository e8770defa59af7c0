"""Record batches of every format version to columns and back: compression, checksums, varints, control records.

Loops over the bytes of records are in ``native/c``; nothing here opens a file.
"""
