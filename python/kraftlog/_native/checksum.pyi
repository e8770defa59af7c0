from kraftlog.types import Buffer

def crc32c(buffer: Buffer, value: int = 0) -> int:
    """Return the CRC32C (Castagnoli) of any contiguous buffer.

    Parameters
    ----------
    buffer : buffer
        Bytes to sum; the GIL is released while they are.
    value : int
        The sum of what came before them, to go on with.

    Returns
    -------
    int
        Between 0 and 2^32 - 1.
    """

def crc32(buffer: Buffer, value: int = 0) -> int:
    """Return the CRC32 (IEEE) that messages of magic 0 and 1 use; otherwise as ``crc32c``."""
