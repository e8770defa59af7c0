"""Topics and partitions of a metadata image: their records as columns, which the core replays in slots.

``state`` is the entry. Nothing here opens a file or decodes a message.
"""
