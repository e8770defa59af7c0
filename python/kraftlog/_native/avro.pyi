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

Numbers = npt.NDArray[np.int64]
ColumnBuffers = tuple[int, Buffer | None, Buffer, Buffer]

def decode_rows(
    columns: Numbers,
    nodes: Numbers,
    constants: Buffer,
    data: Buffer,
    starts: Numbers,
    ends: Numbers,
    roots: Numbers,
    limit: int,
) -> tuple[list[ColumnBuffers], list[tuple[int, int, int]]]: ...
