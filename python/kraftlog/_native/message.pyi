from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from kraftlog.types import Buffer

NO_TYPE: int
NO_VERSION: int
FRAME_VERSION: int
FIRST_MARKER_KEY: int
LAST_MARKER_KEY: int
LOW_TAGS: int
ZERO_UUID: str
KINDS: dict[str, int]
FIELD_DTYPE: np.dtype[np.void]

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
MessageFault = tuple[int, int, int, int, int, int]

class Grown(bytearray): ...

class Program:
    columns: int
    def __init__(self, fields: Buffer, text: Buffer, is_compact: bool, columns: int) -> None: ...

class Programs:
    columns: int
    is_straight: bool
    def __new__(cls, first: int, programs: list[Program], columns: int, name: str, digest: int | None) -> Self: ...

class Values:
    count: int
    def __init__(self, count: int, offset: int, data: Any, ends: Any, valid: Any) -> None: ...

class Columns:
    interpreted: int
    def __new__(cls, count: int, uuid_text: bool) -> Self: ...
    def decode(
        self, programs: Programs, values: Values, rows: Int64s, starts: Int32s, versions: Int32s
    ) -> list[MessageFault]: ...
    size: int

def to_record_batch(
    parts: list[Columns],
    rows: int,
    take: Callable[[int, Any], Any],
    arrow_schema: Any,
    is_absent: npt.NDArray[np.uint8] | None = None,
) -> Any: ...

FrameFault = tuple[int, int, int, int]

def read_frames(values: Values) -> tuple[Int32s, Int32s, Int32s, list[FrameFault]]: ...
def read_prefixes(values: Values, are_keys: bool) -> tuple[Int32s, Int32s, list[FrameFault]]: ...
def group_rows(types: Int32s, versions: Int32s) -> list[tuple[int, int, int, Int64s]] | None: ...
