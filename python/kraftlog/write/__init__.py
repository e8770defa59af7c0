"""Changing a log directory: appending, the metadata writer, recovery."""
