from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog.types import Buffer

ENDED_DTYPE: np.dtype[Any]

class Lookahead:
    position: int
    next_offset: int
    is_chain: bool
    first_unstable_offset: int | None
    def __init__(self, opened: Iterable[tuple[int, int]], every: bool) -> None: ...
    def begin(self, buffer: Buffer) -> None: ...
    def run(self, stop: int) -> tuple[bool, npt.NDArray[np.void]]: ...
    def open(self) -> list[tuple[int, int, int]]: ...
