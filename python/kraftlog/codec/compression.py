"""The five compression types of Kafka's record batches.

All of them release the GIL: snappy is implemented in C, the others use libzstd, liblz4 and libdeflate in the packages
``backports.zstd`` (Python's own ``_zstd`` from 3.14 on), ``lz4`` and ``deflate``. If a package was built without
visible library functions, its Python functions are used.

Unusual payloads are accepted as in Kafka's reader. In addition these are accepted: zstd windows above 128 MiB and
blocks larger than their window; lz4 blocks that depend on each other; and, with the package's functions, an empty
uncompressed block before others. Only gzip members with reserved flags are refused here and not in Kafka, as RFC 1952
requires.

Compression uses the same formats as Kafka's own client: xerial framing for snappy, independent blocks for lz4 (Kafka
refuses others).
"""

from __future__ import annotations

import importlib.util
import operator
import os
import sys
import zlib
from importlib.machinery import PathFinder
from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog._native import compression as native
from kraftlog._native.compression import DecompressionError, DecompressionLimitError, Decompressor
from kraftlog.types import Buffer

__all__ = [
    "COMPRESSION_TYPES",
    "DecompressionError",
    "Decompressor",
    "checked_level",
    "compress_batches",
    "decompressor",
]

COMPRESSION_TYPES = native.NAMES
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
DEFAULT_LEVELS = (0, 6, 0, 0, 3)
_LEVELS = {GZIP: (1, 9), LZ4: (1, 17), ZSTD: (-131072, 22)}  # KIP-390

DEFAULT_MAX_DECOMPRESSED_BYTES = 256 << 20
GZIP_WBITS = 31
MOST_MEMBERS = 1024  # of one batch, by Python's packages: each costs a copy of what is left


def _extension_file(module: str) -> bytes:
    """Return the path of an extension module without importing it; empty if there is none."""
    path, spec = None, None
    parts = module.split(".")
    for i in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return b""
        path = spec.submodule_search_locations
    return os.fsencode(spec.origin) if spec and spec.origin and spec.has_location else b""


LIBRARIES = {
    name: native.load(name, _extension_file(module))
    for name, module in {
        "gzip": "deflate._deflate",
        "lz4": "lz4.frame._frame",
        "zstd": "_zstd" if sys.version_info >= (3, 14) else "backports.zstd._zstd",
    }.items()
}
BY_LIBRARIES = True


def _zstd() -> Any:
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def decompressor(limit: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> Decompressor:
    """Return a decompressor for single batches of at most ``limit`` uncompressed bytes."""
    return Decompressor(limit, _decompress, by_libraries=BY_LIBRARIES)


def _decompress(data: Buffer, compression: int, limit: int) -> bytes:
    """Decompress all members of a gzip stream, all frames of a zstd stream, one lz4 frame, like Kafka's client."""
    parts: list[bytes] = []
    left = limit
    for _ in range(MOST_MEMBERS):
        member, refusals = _member(compression)
        try:
            parts.append(member.decompress(data, left + 1))
        except refusals as error:
            raise DecompressionError(f"{COMPRESSION_TYPES[compression]}: {error}") from error
        left -= len(parts[-1])
        if left < 0:
            raise DecompressionLimitError(f"more than {limit} bytes")
        if not member.eof:
            raise DecompressionError(f"{COMPRESSION_TYPES[compression]}: the stream ends early")
        rest: bytes = member.unused_data
        if not rest or compression == LZ4 or (compression == GZIP and not native.gzip_follows(rest)):
            return parts[0] if len(parts) == 1 else b"".join(parts)
        data = rest
    raise DecompressionError(f"{COMPRESSION_TYPES[compression]}: more than {MOST_MEMBERS} members")


def _member(compression: int) -> tuple[Any, Any]:
    """Return a function that decompresses one member, and the exceptions that it raises."""
    if compression == GZIP:
        return zlib.decompressobj(wbits=GZIP_WBITS), zlib.error
    if compression == ZSTD:
        return _zstd().ZstdDecompressor(), _zstd().ZstdError
    import lz4.frame

    return lz4.frame.LZ4FrameDecompressor(), RuntimeError


def checked_level(compression: int, level: int | None) -> int:
    """Return the compression level; the default is Kafka's.

    Parameters
    ----------
    compression : int
        Index into ``COMPRESSION_TYPES``.
    level : int, optional
        As Kafka's ``compression.gzip.level`` (1 to 9, or -1 for the default), ``compression.lz4.level`` (1 to 17, of
        which liblz4 takes those above 12 as 12) and ``compression.zstd.level`` (-131072 to 22).

    Raises
    ------
    ValueError
        When the compression type has no such level, or no levels.
    TypeError
        When it is not an integer.
    """
    if level is None:
        return DEFAULT_LEVELS[compression]
    name = COMPRESSION_TYPES[compression]
    try:
        level = operator.index(level)
    except TypeError:
        raise TypeError(f"compression_level {level!r} is not an integer") from None
    if compression not in _LEVELS:
        raise ValueError(f"compression_level is {level}, but compression {name} has no levels")
    if compression == GZIP and level == -1:
        return DEFAULT_LEVELS[GZIP]
    least, most = _LEVELS[compression]
    if not least <= level <= most:
        raise ValueError(f"compression_level {level} of {name} is not between {least} and {most}")
    return level


def compress_batches(plain: Buffer, compression: int, level: int, ends: npt.NDArray[np.int64] | None = None) -> bytes:
    """Compress record batches as Kafka's client does.

    Parameters
    ----------
    plain : buffer
        Consecutive batches whose ``attributes`` already have the compression type.
    compression : int
        Index into ``COMPRESSION_TYPES``.
    level : int
        Level for gzip, lz4 or zstd.
    ends : numpy.ndarray of int64, optional
        Places between batches, in order; they become the same places of the result.
    """
    return native.compress_batches(plain, compression, level, _compress, by_libraries=BY_LIBRARIES, ends=ends)


def _compress(data: bytes, compression: int, level: int) -> bytes:
    if compression == GZIP:
        return zlib.compress(data, level, GZIP_WBITS)
    if compression == ZSTD:
        return bytes(_zstd().compress(data, level))
    import lz4.frame

    return bytes(
        lz4.frame.compress(
            data,
            compression_level=level,
            block_linked=False,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            store_size=False,
        )
    )
