"""The five compression types of Kafka's record batches, each by the fastest maintained package.

Decompression writes into a scratch buffer that one decoder reuses from batch to batch; it grows up to a limit, so that
a small batch cannot claim all memory. Compression makes what Kafka's own client makes: xerial framing for snappy,
independent blocks for lz4 (Kafka refuses others).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import lz4.frame
from isal import isal_zlib

from kraftlog._native.decoder import DECOMPRESSION_PADDING
from kraftlog.codec.lz4_header import mend_lz4_header
from kraftlog.types import Buffer

COMPRESSION_TYPES = ("none", "gzip", "snappy", "lz4", "zstd")
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

DEFAULT_MAX_DECOMPRESSED_BYTES = 256 << 20
SMALLEST_SCRATCH = 64 << 10
GZIP_WBITS = 31
MOST_GZIP_MEMBERS = 1024  # each costs a copy of what is left

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK = 32 << 10
MAX_RAW_SNAPPY_EXPANSION = 64


_REFUSALS: tuple[Any, ...] = (cramjam.DecompressionError, isal_zlib.IsalError, EOFError)


class DecompressionError(ValueError):
    """Compressed bytes that cannot be decompressed."""


class DecompressionLimitError(DecompressionError):
    """More bytes after decompression than allowed."""


class Decompressor:
    """Decompresses one batch after the other into a buffer of its own.

    Parameters
    ----------
    limit : int
        Most bytes that a batch may take after decompression.
    """

    def __init__(self, limit: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> None:
        self.limit = limit
        self.scratch = bytearray(DECOMPRESSION_PADDING)

    def decompress(self, data: memoryview, compression: int, magic: int) -> int:
        """Decompress into ``self.scratch`` and return how many bytes that made.

        Behind them stand at least ``DECOMPRESSION_PADDING`` bytes without meaning.

        Raises
        ------
        DecompressionError
            When the data is damaged or larger than the limit.
        """
        try:
            if compression == GZIP:
                return self._gunzip(data)
            if compression == SNAPPY:
                return self._unsnappy(data)
            if compression == LZ4:
                frame = mend_lz4_header(data) if magic == 0 else data
                return self._growing(frame, cramjam.lz4.decompress_into)
            return self._growing(data, cramjam.zstd.decompress_into)
        except _REFUSALS as error:
            raise DecompressionError(f"{COMPRESSION_TYPES[compression]}: {error}") from error

    def _reserve(self, size: int) -> None:
        if size > self.limit:
            raise DecompressionLimitError(f"more than {self.limit} bytes")
        if len(self.scratch) < size + DECOMPRESSION_PADDING:
            self.scratch = bytearray(size + DECOMPRESSION_PADDING)

    def _room(self) -> int:
        return len(self.scratch) - DECOMPRESSION_PADDING

    def _growing(self, data: Buffer, into: Callable[[Buffer, memoryview], int]) -> int:
        """Decompress a frame that does not say its plain size: with twice the room each time it does not fit."""
        self._reserve(min(self.limit, max(SMALLEST_SCRATCH, 4 * memoryview(data).nbytes)))
        while True:
            try:
                with memoryview(self.scratch)[: self._room()] as target:
                    return into(data, target)
            except cramjam.DecompressionError as error:
                if "failed to write whole buffer" not in str(error):
                    raise
            if self._room() >= self.limit:
                raise DecompressionLimitError(f"more than {self.limit} bytes")
            self._reserve(min(self.limit, 4 * self._room()))

    def _gunzip(self, data: memoryview) -> int:
        """All members of a gzip stream, one behind the other, as Java reads them."""
        rest: Buffer = data
        size = 0
        for _ in range(MOST_GZIP_MEMBERS):
            member = isal_zlib.decompressobj(wbits=GZIP_WBITS)
            plain = member.decompress(rest, self.limit - size + 1)
            if size + len(plain) > self.limit:
                raise DecompressionLimitError(f"more than {self.limit} bytes")
            if not member.eof:
                raise DecompressionError("gzip: the stream ends early")
            self._append(size, plain)
            size += len(plain)
            rest = member.unused_data
            if not rest.startswith(b"\x1f\x8b"):
                return size
        raise DecompressionError(f"gzip: more than {MOST_GZIP_MEMBERS} members")

    def _append(self, size: int, plain: bytes) -> None:
        if size + len(plain) > self._room():
            kept = bytes(self.scratch[:size])
            self._reserve(min(self.limit, max(2 * size, size + len(plain))))
            self.scratch[:size] = kept
        self.scratch[size : size + len(plain)] = plain

    def _unsnappy(self, data: memoryview) -> int:
        if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
            return self._unsnappy_block(data, 0)
        size, at = 0, len(XERIAL_HEADER)
        while at < len(data):
            if len(data) - at < 4:
                raise DecompressionError(f"snappy: {len(data) - at} bytes where a block length of 4 bytes is due")
            (length,) = struct.unpack_from(">i", data, at)
            at += 4
            if not 0 <= length <= len(data) - at:
                raise DecompressionError(f"snappy: block length {length}, but {len(data) - at} bytes left")
            size += self._unsnappy_block(data[at : at + length], size)
            at += length
        return size

    def _unsnappy_block(self, block: memoryview, size: int) -> int:
        """One raw snappy block behind the ``size`` bytes that are there already."""
        if not block:
            return 0
        plain = cramjam.snappy.decompress_raw_len(block)
        if plain > MAX_RAW_SNAPPY_EXPANSION * len(block):
            raise DecompressionError(f"snappy: a block of {len(block)} bytes says it holds {plain}")
        if size + plain > self._room():
            kept = bytes(self.scratch[:size])
            self._reserve(max(size + plain, min(self.limit, 2 * size)))
            self.scratch[:size] = kept
        with memoryview(self.scratch)[size : size + plain] as target:
            return int(cramjam.snappy.decompress_raw_into(block, target)) if plain else 0


def compress(data: Buffer, compression: int, level: int | None = None) -> Buffer:
    """Compress the records of a batch as Kafka's client does.

    Parameters
    ----------
    data : buffer
        Records without the batch header.
    compression : int
        Index into ``COMPRESSION_TYPES``.
    level : int, optional
        Of gzip, lz4 or zstd; Kafka's own default when left out.
    """
    if compression == GZIP:
        stream = zlib.compressobj(-1 if level is None else level, wbits=GZIP_WBITS)
        return stream.compress(data) + stream.flush()
    if compression == SNAPPY:
        return _xerial(memoryview(data))
    if compression == LZ4:
        frame: bytes = lz4.frame.compress(
            data,
            compression_level=0 if level is None else level,
            block_linked=False,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            store_size=False,
        )
        return frame
    if compression == ZSTD:
        return memoryview(cramjam.zstd.compress(data, 3 if level is None else level))
    return data


def _xerial(data: memoryview) -> bytes:
    parts = [XERIAL_HEADER]
    for at in range(0, len(data), XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + XERIAL_BLOCK]))
        parts += [struct.pack(">i", len(block)), block]
    return b"".join(parts)
