from typing import Self

from kraftlog.types import Buffer

CACHE_BYTES: int

class Input:
    def __new__(cls, source: Buffer, may_be_file: bool = ...) -> Self: ...

class Arena:
    def __new__(cls, size: int) -> Self: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
