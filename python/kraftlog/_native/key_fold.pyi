from typing import Self

import numpy as np
import numpy.typing as npt

from kraftlog._native.message import Programs, Values

IGNORED: int
LAST: int
IN_TRANSACTION: int
UNTOUCHED: int
MADE: int
REMOVED: int
NOT_IN_TRANSACTION: int
MOST_TYPES: int

class Markers:
    def __init__(
        self, offsets: npt.NDArray[np.int64], producer_ids: npt.NDArray[np.int64], is_commit: npt.NDArray[np.uint8]
    ) -> None: ...

class Rows:
    count: int
    def __init__(
        self,
        keys: Values,
        values: Values,
        offsets: npt.NDArray[np.int64],
        producer_ids: npt.NDArray[np.int64],
        is_checked: bool,
    ) -> None: ...

class KeyFold:
    def __new__(cls, seed: int, group_type: int) -> Self: ...
    def expect(self, api_key: int, rule: int, same_as: int, group: int, key: Programs, values: Programs) -> None: ...
    def add(self, rows: Rows, first: int, markers: Markers) -> int: ...
    def add_markers(self, markers: Markers) -> None: ...
    def odd_rows(self, rows: Rows, first: int) -> npt.NDArray[np.int64]: ...
    def columns(
        self, api_key: int
    ) -> tuple[
        npt.NDArray[np.int64],
        npt.NDArray[np.int64],
        tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]],
        tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]],
    ]: ...
