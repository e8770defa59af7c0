from collections.abc import Sequence
from typing import Self

from kraftlog.types import Buffer

Fault = tuple[int, int, int, int]

LAYOUTS: dict[str, int]
FAULTS: dict[int, str]

class TextColumn:
    is_lent: bool
    fault: Fault | None
    def __new__(
        cls,
        layout: int,
        rows: int,
        offset: int,
        validity: Buffer | None,
        places: Buffer | None,
        data: Sequence[Buffer | None],
        width: int = 0,
        indexes: tuple[int, int, Buffer | None, Buffer, int, bool] | None = None,
    ) -> Self: ...
    def measure(self, first: int, count: int, most: int) -> tuple[int, int, Fault | None]: ...

class ListColumn:
    fault: Fault | None
    def __new__(cls, rows: int, offset: int, validity: Buffer | None, ends: Buffer, width: int, items: int) -> Self: ...
    def measure(self, first: int, count: int, most: int) -> tuple[int, int, Fault | None]: ...
    def first_item(self, row: int) -> int: ...
    def row_of(self, first: int, count: int, item: int) -> int: ...
    def ends(self, first: int, count: int) -> Buffer: ...
    def headers_fault(
        self, first: int, count: int, structs: TextColumn, keys: TextColumn, check_utf8: bool
    ) -> tuple[int, bool] | None: ...
