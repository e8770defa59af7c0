"""Varints and varlongs."""

from __future__ import annotations

import numpy as np

import corpus
import kraftlog

from . import common

VALUES = 1_000_000


class Varint:
    """The parameter is how many bytes most values take."""

    params = ([1, 2, 3, 5],)
    param_names = ("bytes_each",)

    def setup(self, bytes_each: int) -> None:
        bits = min(7 * bytes_each, 32) - 1  # one goes to the sign
        random = np.random.default_rng(corpus.SEED)
        self.values = random.integers(-(2**bits), 2**bits, VALUES).astype(np.int32)
        self.longs = self.values.astype(np.int64) << 31
        self.encoded = kraftlog.varint.encode(self.values)
        self.encoded_longs = kraftlog.varint.encode_long(self.longs)

    def time_encode(self, bytes_each: int) -> None:
        """Encode a million int32."""
        kraftlog.varint.encode(self.values)

    def time_decode(self, bytes_each: int) -> None:
        """Decode a million int32."""
        kraftlog.varint.decode(self.encoded)

    def time_encode_long(self, bytes_each: int) -> None:
        """Encode a million int64."""
        kraftlog.varint.encode_long(self.longs)

    def time_decode_long(self, bytes_each: int) -> None:
        """Decode a million int64."""
        kraftlog.varint.decode_long(self.encoded_longs)

    def track_encode(self, bytes_each: int) -> float:
        """Bytes of varints made a second."""
        return common.speed(lambda: kraftlog.varint.encode(self.values), len(self.encoded))

    def track_decode(self, bytes_each: int) -> float:
        """Bytes of varints read a second."""
        return common.speed(lambda: kraftlog.varint.decode(self.encoded), len(self.encoded))

    track_encode.unit = track_decode.unit = "B/s"
