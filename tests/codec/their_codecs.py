"""Compression by packages that kraftlog does not call, as the oracle of its own."""

from __future__ import annotations

import gzip

import cramjam
import lz4.frame
from reference import XERIAL_HEADER


def unsnappy(data: bytes) -> bytes:
    """Blocks in xerial framing, or one without."""
    plain, at = b"", len(XERIAL_HEADER)
    if data[:at] != XERIAL_HEADER:
        return bytes(cramjam.snappy.decompress_raw(data)) if data else b""
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        plain += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return plain


DECOMPRESS = {
    "none": bytes,
    "gzip": gzip.decompress,
    "snappy": unsnappy,
    "lz4": lz4.frame.decompress,
    "zstd": lambda data: bytes(cramjam.zstd.decompress(data)),
}
COMPRESS = {
    "none": bytes,
    "gzip": gzip.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    "lz4": lz4.frame.compress,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
}
