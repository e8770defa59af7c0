import numpy as np
import numpy.typing as npt

from kraftlog.types import Buffer

NUMBERS: int
BYTES: int
STRUCT: int
LIST: int
NULL_VALUE: int
BOOLEAN: int
TO_INT: int
TO_LONG: int
TO_FLOAT: int
TO_DOUBLE: int
TO_MICROS: int
FLOAT: int
WIDENED: int
DOUBLE: int
TEXT: int
BINARY: int
FIXED: int
TO_DECIMAL: int
ENUM: int
RECORD: int
ARRAY: int
MAP: int
UNION: int
MEMBER: int
DEFAULT: int
NEVER: int
UNRESOLVED: int
SENTENCES: tuple[str, ...]

_Numbers = npt.NDArray[np.int64]
_ColumnBuffers = tuple[int, Buffer | None, Buffer, Buffer]

def decode_rows(
    columns: _Numbers,
    nodes: _Numbers,
    constants: Buffer,
    data: Buffer,
    starts: _Numbers,
    ends: _Numbers,
    roots: _Numbers,
    limit: int,
) -> tuple[list[_ColumnBuffers], list[tuple[int, int, int]]]: ...
