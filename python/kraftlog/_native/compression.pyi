from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kraftlog.types import Buffer

NAMES: tuple[str, ...]

class DecompressionError(ValueError): ...
class DecompressionLimitError(DecompressionError): ...

def load(compression: str, path: bytes) -> bool: ...
def gzip_follows(data: Buffer) -> bool: ...

class Decompressor:
    limit: int
    detail: str
    def __init__(
        self, limit: int, fallback: Callable[[Buffer, int, int], Buffer], *, by_libraries: bool = True
    ) -> None: ...
    def decompress(self, data: Buffer, compression: int, magic: int) -> int: ...
    def plain_bytes(self) -> bytes: ...

def compress_batches(
    plain: Buffer,
    compression: int,
    level: int,
    fallback: Callable[[bytes, int, int], bytes],
    *,
    by_libraries: bool = True,
    ends: npt.NDArray[np.int64] | None = None,
) -> bytes: ...
