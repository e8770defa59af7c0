from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from kraftlog._native.hashes import Values

TO_NULL: int
TO_MASK: int
TO_HASH: int
MOST_RULES: int
HASH_DIGITS: int

class JsonRedactor:
    def __new__(cls, paths: Sequence[tuple[Sequence[bytes | int | None], int]], mask: bytes) -> Self: ...
    def column(
        self, values: Values
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.bool_], npt.NDArray[np.int64]]: ...
