"""Arrow to log bytes."""

from __future__ import annotations

from pathlib import Path

import kraftlog

from . import common

ROWS_AT_ONCE = 1 << 16


class _Encode:
    """Work on ``self.table``."""

    columns: tuple[str, ...] = common.COLUMNS

    def load(self, log: Path, batch_kib: int, compression: str = "none") -> None:
        data = log.read_bytes()
        self.table = kraftlog.decode(data, columns=self.columns).to_table().combine_chunks()
        self.batches = self.table.to_batches(max_chunksize=ROWS_AT_ONCE)
        self.options = {"max_batch_bytes": batch_kib << 10, "compression": compression}
        assert kraftlog.encode(self.table, **self.options) == data

    def stream(self) -> int:
        encoder, size = kraftlog.Encoder(**self.options), 0
        for batch in self.batches:
            encoder.write(batch)
            size += encoder.take().size
        return size + encoder.finish().size

    def time_streamed(self, *_: object) -> None:
        """Encode a log of 20 MB from pieces of 65,536 rows."""
        self.stream()

    def time_in_one(self, *_: object) -> None:
        """Encode a log of 20 MB from a table."""
        kraftlog.encode(self.table, **self.options)

    def peakmem_streamed(self, *_: object) -> None:
        """Memory of the process that encodes a log of 20 MB, table and log included."""
        self.stream()

    def track_streamed(self, *_: object) -> float:
        """Bytes before compression encoded a second."""
        return common.speed(self.stream, common.plain_bytes())

    track_streamed.unit = "B/s"


class Plain(_Encode):
    params = common.SIZES
    param_names = common.SIZE_NAMES

    def setup(self, value_bytes: int, batch_kib: int) -> None:
        self.load(common.log(value_bytes, batch_kib), batch_kib)


class Headers(_Encode):
    columns = (*common.COLUMNS, "headers")

    def setup(self) -> None:
        self.load(common.log(100, 64, headers=2), 64)


class Compressed(_Encode):
    params = (common.CODECS,)
    param_names = ("compression",)

    def setup(self, compression: str) -> None:
        self.load(common.log(100, 64, compression=compression), 64, compression)
