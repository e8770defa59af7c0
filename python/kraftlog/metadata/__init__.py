"""The metadata image of a cluster: typed records of ``__cluster_metadata``, applied as columns.

``image`` holds the state, ``record_types`` defines the types of records, ``topics`` has topics and partitions, ``tree``
and ``diff`` show an image and the changes between two, ``downgrade`` what an older ``metadata.version`` cannot hold.
Nothing here opens a file or decodes a message.
"""
