"""Log bytes to Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import kraftlog

from . import common


def stream(log: bytes, columns: Sequence[str]) -> int:
    """Decode everything, a record batch at a time."""
    return sum(batch.num_rows for batch in kraftlog.decode(log, columns=columns).batches())


class _Decode:
    """Work on ``self.log``."""

    columns: tuple[str, ...] = common.COLUMNS

    def load(self, log: Path) -> None:
        self.log = log.read_bytes()

    def time_streamed(self, *_: object) -> None:
        """Decode a log of 20 MB with its checksums."""
        stream(self.log, self.columns)

    def time_to_table(self, *_: object) -> None:
        """Decode a log of 20 MB into one table."""
        kraftlog.decode(self.log, columns=self.columns).to_table()

    def peakmem_streamed(self, *_: object) -> None:
        """Memory of the process that decodes a log of 20 MB, the log itself included."""
        stream(self.log, self.columns)

    def track_streamed(self, *_: object) -> float:
        """Bytes before compression decoded a second."""
        return common.speed(lambda: stream(self.log, self.columns), common.plain_bytes())

    track_streamed.unit = "B/s"


class Plain(_Decode):
    params = common.SIZES
    param_names = common.SIZE_NAMES

    def setup(self, value_bytes: int, batch_kib: int) -> None:
        self.load(common.log(value_bytes, batch_kib))

    def time_offsets(self, *_: object) -> None:
        """Decode nothing but the offsets of a log of 20 MB."""
        stream(self.log, ("offset",))


class Headers(_Decode):
    columns = (*common.COLUMNS, "headers")

    def setup(self) -> None:
        self.load(common.log(100, 64, headers=2))


class Compressed(_Decode):
    params = (common.CODECS,)
    param_names = ("compression",)

    def setup(self, compression: str) -> None:
        self.load(common.log(100, 64, compression=compression))
