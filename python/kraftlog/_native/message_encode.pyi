from typing import Any

from kraftlog._native.message import Grown, Int32s, Int64s, Program

class Source:
    def __init__(self, list_level: Any = None, item_level: Any = None, tags: Any = None) -> None: ...

def encode(
    program: Program, sources: list[Source], uuid_text: bool, rows: Int64s, prefix: bytes
) -> tuple[Int32s, Grown] | tuple[int, int, int, int, int]: ...
