"""Checks of log files and of the files beside them, as ``verify`` and the table ``errors`` report them.

A segment is read once: its records are decoded, the crc of every batch is compared, and the headers go through the
checks of this package, each of which keeps what it must know of the batches before. Checks do not read log files, and
nothing here repairs a file.
"""
