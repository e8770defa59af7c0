from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kraftlog._native.message import Columns, Int64s, MessageFault, Programs, Values

class Pass:
    def __init__(self, programs: Mapping[int, Programs]) -> None: ...
    def decode(
        self, values: Values, uuid_text: bool, wanted: Collection[int] | None
    ) -> list[tuple[int, Columns, Int64s, list[MessageFault]]] | None: ...

class KeyedPass:
    def __init__(self, types: Mapping[str, tuple[Sequence[int], Programs, Programs]]) -> None: ...
    def decode(
        self, keys: Values, values: Values, uuid_text: bool, wanted: str | None
    ) -> list[tuple[str, Columns, Columns, Int64s, npt.NDArray[np.bool_]]] | None: ...
