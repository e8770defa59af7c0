"""Batch headers, without the records behind them."""

from __future__ import annotations

import numpy as np

import scanning

from . import common


class HeaderScan:
    params = common.SIZES
    param_names = common.SIZE_NAMES

    def setup(self, value_bytes: int, batch_kib: int) -> None:
        self.log = np.fromfile(common.log(value_bytes, batch_kib), np.uint8)

    def time_scan(self, *_: object) -> None:
        """Read all batch headers of a log of 20 MB."""
        scanning.count_batches(self.log)

    def peakmem_scan(self, *_: object) -> None:
        """Memory of the process that reads all batch headers of a log of 20 MB, the log included."""
        scanning.count_batches(self.log)

    def track_scan(self, *_: object) -> float:
        """Bytes of log that are stepped over a second."""
        return common.speed(lambda: scanning.count_batches(self.log), self.log.nbytes)

    track_scan.unit = "B/s"
