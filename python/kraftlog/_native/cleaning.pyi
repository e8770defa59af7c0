from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt

from kraftlog._native.message import Values
from kraftlog.types import Buffer

_Fields = tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]

class OffsetMap:
    def __new__(cls, seed: int, most_bytes: int) -> Self: ...
    def put(self, keys: Values, offsets: npt.NDArray[np.int64], wanted: npt.NDArray[np.uint8], row: int) -> int: ...
    def superseded(self, keys: Values, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]: ...

def kept_records(
    records: Buffer, keeps: npt.NDArray[np.uint8], base_timestamp: int, delete_horizon_ms: int | None, room: int
) -> tuple[bytearray, int, int, int]: ...
def rewritten_records(records: Buffer, change: Callable[[list[_Fields]], list[_Fields]], room: int) -> bytearray: ...
