"""Mutants of logs: a batch with one field changed and its checksum right, a batch that is gone, twice or elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import kraftlog
from kraftlog.codec.header_scan import HeaderScan

_HEADER = struct.Struct(">qiibIhiqqqhii")
_FIELDS = (
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "records_count",
)
_CRC_AT, _BEHIND_CRC = 17, 21
TRANSACTIONAL, CONTROL = 16, 32


class Mutant(NamedTuple):
    """A log file with one change.

    Attributes
    ----------
    log : Path
        The log directory.
    file : str
        The changed file, relative to the directory.
    offset : int
        Of the changed batch.
    kind : str
        What is changed.
    what : str
        Of what: ``marker``, ``transactional``, ``producer`` or ``plain``.
    data : bytes
        The file after the change.
    """

    log: Path
    file: str
    offset: int
    kind: str
    what: str
    data: bytes

    @property
    def topic(self) -> str:
        """Return the topic of the file."""
        return self.file.partition("/")[0].rpartition("-")[0]

    def __str__(self) -> str:
        return f"{self.log.parent.name}/{self.file}@{self.offset}:{self.what}:{self.kind}"


def sealed(batch: bytes) -> bytes:
    """Return a batch with the right checksum."""
    return batch[:_CRC_AT] + struct.pack(">I", kraftlog.crc32c(batch[_BEHIND_CRC:])) + batch[_BEHIND_CRC:]


def with_fields(batch: bytes, **fields: int) -> bytes:
    """Return a batch with other fields in its header."""
    header = dict(zip(_FIELDS, _HEADER.unpack_from(batch), strict=True)) | fields
    return sealed(_HEADER.pack(*header.values()) + batch[_HEADER.size :])


def _changes(fields: dict[str, int], what: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Return names and values of changed fields."""
    for name in ("base_offset", "partition_leader_epoch", "last_offset_delta", "records_count"):
        for by in (-1, 1):
            yield f"{name}{by:+}", {name: fields[name] + by}
    for name, by in (("base_timestamp", -1), ("max_timestamp", 1)):
        yield f"{name}{by:+}", {name: fields[name] + by}
    yield "transactional_bit", {"attributes": fields["attributes"] ^ TRANSACTIONAL}
    yield "control_bit", {"attributes": fields["attributes"] ^ CONTROL}
    if what != "plain":
        yield "producer_id", {"producer_id": fields["producer_id"] + 1_000_000}
        for by in (-1, 1):
            yield f"producer_epoch{by:+}", {"producer_epoch": fields["producer_epoch"] + by}
    if what in ("producer", "transactional"):
        for by in (-1, 1):
            yield f"base_sequence{by:+}", {"base_sequence": fields["base_sequence"] + by}


def _of_file(log: Path, path: Path) -> Iterator[Mutant]:
    data, file = path.read_bytes(), str(path.relative_to(log))
    batches: list[tuple[dict[str, int], bytes]] = []
    for headers in HeaderScan(data).headers():
        for header in headers:
            position = int(header["position"])
            batch = data[position : position + int(header["batch_length"]) + 12]
            batches.append((dict(zip(_FIELDS, _HEADER.unpack_from(batch), strict=True)), batch))
    whole = [batch for _, batch in batches]
    end = batches[-1][0]["base_offset"] + batches[-1][0]["last_offset_delta"] + 1 if batches else 0
    for number, (fields, batch) in enumerate(batches):
        what = (
            "marker"
            if fields["attributes"] & CONTROL
            else "transactional"
            if fields["attributes"] & TRANSACTIONAL
            else "producer"
            if fields["producer_id"] >= 0
            else "plain"
        )
        rest = whole[:number], whole[number + 1 :]

        def mutant(kind: str, *parts: bytes, rest: tuple[list[bytes], list[bytes]] = rest, at: int = fields["base_offset"], what: str = what) -> Mutant:
            return Mutant(log, file, at, kind, what, b"".join((*rest[0], *parts, *rest[1])))

        for kind, changed in _changes(fields, what):
            yield mutant(kind, with_fields(batch, **changed))
        yield mutant("gone")
        yield mutant("last_byte", sealed(batch[:-1] + bytes([batch[-1] ^ 1])))
        again = with_fields(batch, base_offset=end)
        yield Mutant(log, file, fields["base_offset"], "again", what, data + again)
        if what == "marker":
            body = _HEADER.size
            kind_at = body + 1 + 1 + 1 + 1 + 1 + 2 + 1  # length, attributes, deltas, key length, key version, type
            yield mutant("other_type", sealed(batch[:kind_at] + bytes([batch[kind_at] ^ 1]) + batch[kind_at + 1 :]))
        if number + 1 < len(batches):
            following = batches[number + 1]
            first, second = fields["base_offset"], following[0]
            moved = with_fields(following[1], base_offset=first)
            later = with_fields(batch, base_offset=first + second["last_offset_delta"] + 1)
            yield Mutant(log, file, first, "swapped", what, b"".join((*rest[0], moved, later, *whole[number + 2 :])))


def mutants(log: Path) -> Iterator[Mutant]:
    """Return the mutants of all logs of a directory."""
    for path in sorted(log.glob("*/*.log")):
        yield from _of_file(log, path)


def written(mutant: Mutant, directory: Path) -> Path:
    """Write a log directory with a mutant; the other files are links."""
    for path in sorted(mutant.log.rglob("*")):
        if path.is_file():
            target = directory / path.relative_to(mutant.log)
            target.parent.mkdir(exist_ok=True)
            if str(path.relative_to(mutant.log)) == mutant.file:
                target.write_bytes(mutant.data)
            else:
                target.symlink_to(path)
    return directory
