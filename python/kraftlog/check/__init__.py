"""Checks of log files and their index and snapshot files, for ``verify`` and the table ``errors``.

A segment is read once: its records are decoded, the CRC of every batch is verified, and the headers go through the
checks of this package, each of which keeps the state that it needs from earlier batches. Checks do not read log files
and repair nothing.
"""
