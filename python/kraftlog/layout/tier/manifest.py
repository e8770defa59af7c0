"""``.rsm-manifest`` of Aiven's plugin: how a segment was cut into chunks, and where its index files are."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from kraftlog.codec.compression import ZSTD, DecompressionError, decompressor
from kraftlog.disk.part_path import Chunks
from kraftlog.errors import KraftlogError
from kraftlog.layout.tier.data_key import KeyRing, WrongKeyError
from kraftlog.layout.tier.stored_segment import Epochs

VERSION = "1"
LARGEST_CHUNK = 2**30 - 1
MOST_SIZES_BYTES = 10 << 20  # limit of the list of sizes, as in Aiven's reader
GROWTH_BYTES = 28  # overhead of an encrypted chunk
INDEX_KINDS = {
    "offset": "index",
    "timestamp": "timeindex",
    "producerSnapshot": "snapshot",
    "leaderEpoch": "leader_epochs",
    "transaction": "txnindex",
}

_MAGIC = 2
_TYPES = {"a text": str, "a number": int, "an object": dict, "true or false": bool}


class ManifestError(KraftlogError, ValueError):
    """A manifest that is not in the format of Aiven's plugin."""


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest.

    Attributes
    ----------
    chunks : Chunks
        Chunks of the log file.
    index_ranges : dict
        First byte and number of bytes in ``.indexes`` of each index file, by kind; ``leader_epochs`` is one of them.
    topic : str or None
        Topic as configured; None in manifests from before 2023-09, which lack it.
    end_offset : int or None
    epochs : tuple of (epoch, first offset)
    event_timestamp_ms : int
    """

    chunks: Chunks
    index_ranges: dict[str, tuple[int, int]]
    topic: str | None
    end_offset: int | None
    epochs: Epochs
    event_timestamp_ms: int

    @property
    def stored_bytes(self) -> int:
        """Expected bytes of the object with the log."""
        return sum(self.chunks.stored_sizes)

    @property
    def is_plain(self) -> bool:
        """Whether the object is the log file, byte for byte."""
        return not self.chunks.is_compressed and self.chunks.data_key is None


def read_manifest(data: bytes, keys: KeyRing) -> Manifest:
    """Parse a manifest; unknown fields are ignored.

    Raises
    ------
    ManifestError
        When a field is missing, has a wrong type, or contradicts another.
    WrongKeyError
        When the segment is encrypted, and no key opens it.
    """
    try:
        manifest = json.loads(data)
    except ValueError as error:  # raised for bytes that are not UTF-8, too
        raise ManifestError(f"expected JSON, found {len(data)} bytes that are not: {error}") from None
    if not isinstance(manifest, dict):
        raise ManifestError(f"expected a JSON object, found {type(manifest).__name__}")
    version = _field(manifest, "version", "a text")
    if version != VERSION:
        raise ManifestError(f"version: expected {VERSION!r}, found {version!r}")
    is_compressed = _field(manifest, "compression", "true or false")
    data_key, aad = _encryption(manifest, keys)
    index = _field(manifest, "chunkIndex", "an object")
    size = _number(index, "originalChunkSize", 1, LARGEST_CHUNK, "chunkIndex.")
    file_size = _number(index, "originalFileSize", 0, 2**31 - 1, "chunkIndex.")
    sizes = _stored_sizes(index, -(-file_size // size))
    _check_sizes(sizes, size, file_size, is_compressed=is_compressed, is_encrypted=data_key is not None)
    chunks = Chunks(size, file_size, sizes, is_compressed, data_key, aad)
    return Manifest(chunks, _index_ranges(manifest), *_metadata(manifest))


def _encryption(manifest: dict[str, Any], keys: KeyRing) -> tuple[bytes | None, bytes]:
    if manifest.get("encryption") is None:
        return None, b""
    encryption = _field(manifest, "encryption", "an object")
    wrapped, aad = (
        _field(encryption, "dataKey", "a text", "encryption."),
        _field(encryption, "aad", "a text", "encryption."),
    )
    return keys.unwrap(wrapped), _base64(aad, "encryption.aad")


def _stored_sizes(index: dict[str, Any], count: int) -> tuple[int, ...]:
    kind = _field(index, "type", "a text", "chunkIndex.")
    if kind == "fixed":
        each = _number(index, "transformedChunkSize", 0, 2**31 - 1, "chunkIndex.")
        last = _number(index, "finalTransformedChunkSize", 0, 2**31 - 1, "chunkIndex.")
        return (*[each] * (count - 1), last) if count else ()
    if kind != "variable":
        raise ManifestError(f"chunkIndex.type: expected 'fixed' or 'variable', found {kind!r}")
    packed = _base64(_field(index, "transformedChunks", "a text", "chunkIndex."), "chunkIndex.transformedChunks")
    try:
        undo = decompressor(MOST_SIZES_BYTES)
        undo.decompress(packed, ZSTD, _MAGIC)
    except DecompressionError as error:
        raise ManifestError(f"chunkIndex.transformedChunks: expected a zstd frame, found: {error}") from None
    return _unpacked(undo.plain_bytes(), count)


def _unpacked(data: bytes, count: int) -> tuple[int, ...]:
    """Return the sizes of chunks: encoded as count, minimum of all but the last, width, and excess over the minimum.

    Examples
    --------
    >>> from kraftlog.layout.tier.manifest import _unpacked
    >>> _unpacked(bytes.fromhex("00000003 000f4240 01 00 0a 00000007"), 3)
    (1000000, 1000010, 7)
    """
    name = "chunkIndex.transformedChunks"
    chunks_count = int.from_bytes(data[:4])
    if len(data) < 4 or chunks_count != count:
        raise ManifestError(
            f"{name}: expected {count} chunks, found {chunks_count if len(data) >= 4 else 'less than 4 bytes'}"
        )
    width = data[8] if count > 1 and len(data) > 8 else 0
    if count > 1 and not 1 <= width <= 4:
        raise ManifestError(f"{name}: expected values of 1 to 4 bytes, found {width}")
    expected = 4 if count == 0 else 8 if count == 1 else 9 + (count - 1) * width + 4
    if len(data) != expected:
        raise ManifestError(f"{name}: expected {expected} bytes for {count} chunks, found {len(data)}")
    if count == 0:
        return ()
    base = int.from_bytes(data[4:8])
    values = [base + int.from_bytes(data[at : at + width]) for at in range(9, 9 + (count - 1) * width, width or 1)]
    return (*(values if count > 1 else ()), int.from_bytes(data[-4:]))


def _check_sizes(sizes: tuple[int, ...], size: int, file_size: int, *, is_compressed: bool, is_encrypted: bool) -> None:
    growth = GROWTH_BYTES if is_encrypted else 0
    for number, stored_size in enumerate(sizes):
        expected = min(size, file_size - number * size) + growth
        if is_compressed and stored_size < growth + 1:
            raise ManifestError(f"chunkIndex: chunk {number}: expected {growth + 1} bytes or more, found {stored_size}")
        if not is_compressed and stored_size != expected:
            raise ManifestError(f"chunkIndex: chunk {number}: expected {expected} bytes, found {stored_size}")


def _index_ranges(manifest: dict[str, Any]) -> dict[str, tuple[int, int]]:
    indexes = _field(manifest, "segmentIndexes", "an object")
    ranges = {}
    for name, kind in INDEX_KINDS.items():
        if indexes.get(name) is None and name == "transaction":
            continue
        entry, within = _field(indexes, name, "an object", "segmentIndexes."), f"segmentIndexes.{name}."
        most = 2**31 - 1
        ranges[kind] = _number(entry, "position", 0, most, within), _number(entry, "size", 0, most, within)
    return ranges


def _metadata(manifest: dict[str, Any]) -> tuple[str | None, int | None, Epochs, int]:
    """Return topic, end offset, leader epochs and the time of copying, as far as present."""
    name = "remoteLogSegmentMetadata"
    if manifest.get(name) is None:
        return None, None, (), -1
    metadata = _field(manifest, name, "an object")
    within = f"{name}."
    of_segment = _field(metadata, "remoteLogSegmentId", "an object", within)
    of_topic = _field(of_segment, "topicIdPartition", "an object", f"{within}remoteLogSegmentId.")
    named = _field(of_topic, "topicPartition", "an object", f"{within}remoteLogSegmentId.topicIdPartition.")
    by_epoch = _field(metadata, "segmentLeaderEpochs", "an object", within)
    try:
        epochs = tuple(sorted((int(epoch), int(first)) for epoch, first in by_epoch.items()))
    except (TypeError, ValueError):
        raise ManifestError(f"{within}segmentLeaderEpochs: expected offsets by epoch, found {by_epoch!r}") from None
    return (
        _field(named, "topic", "a text", within),
        _number(metadata, "endOffset", 0, 2**63 - 1, within),
        epochs,
        _number(metadata, "eventTimestampMs", -1, 2**63 - 1, within),
    )


def _field(fields: dict[str, Any], name: str, kind: str, within: str = "") -> Any:
    if name not in fields:
        raise ManifestError(f"{within}{name}: expected {kind}, found nothing")
    value, expected = fields[name], _TYPES[kind]
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ManifestError(f"{within}{name}: expected {kind}, found {json.dumps(value)[:40]}")
    return value


def _number(fields: dict[str, Any], name: str, least: int, most: int, within: str) -> int:
    value: int = _field(fields, name, "a number", within)
    if not least <= value <= most:
        raise ManifestError(f"{within}{name}: expected {least} to {most}, found {value}")
    return value


def _base64(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ManifestError(f"{name}: expected base64, found {text[:20]!r}") from None


__all__ = ["INDEX_KINDS", "Manifest", "ManifestError", "WrongKeyError", "read_manifest"]
