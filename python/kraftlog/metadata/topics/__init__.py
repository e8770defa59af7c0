"""Topics and partitions of a metadata image: their records as columns, and Numba kernels that replay them.

``state`` is the entry; ``slots`` is the form in which partitions are held, ``replay`` applies records to it. Nothing
here opens a file or decodes a message.
"""
