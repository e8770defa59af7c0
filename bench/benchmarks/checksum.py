"""CRC32C."""

from __future__ import annotations

import kraftlog

from . import common


class Crc32c:
    params = ([8 << 10, 64 << 10, 20_000_000],)
    param_names = ("bytes",)

    def setup(self, size: int) -> None:
        self.data = bytes(range(256)) * (size // 256)

    def time_sum(self, size: int) -> None:
        """Sum one buffer."""
        kraftlog.crc32c(self.data)

    def track_sum(self, size: int) -> float:
        """Bytes summed a second."""
        return common.speed(lambda: kraftlog.crc32c(self.data), len(self.data))

    track_sum.unit = "B/s"
