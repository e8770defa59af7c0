"""Mutants of logs: a batch with one field changed and its checksum right, a batch that is gone, twice or elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
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
    batches : sequence of bytes
        Those of the file before the change.
    number : int
        Of the changed batch among these.
    """

    log: Path
    file: str
    offset: int
    kind: str
    what: str
    data: bytes
    batches: Sequence[bytes]
    number: int

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
    header = fields_of(batch) | fields
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


def fields_of(batch: bytes) -> dict[str, int]:
    """Return the fields of the header of a batch."""
    return dict(zip(_FIELDS, _HEADER.unpack_from(batch), strict=True))


def _what(fields: dict[str, int]) -> str:
    if fields["attributes"] & CONTROL:
        return "marker"
    if fields["attributes"] & TRANSACTIONAL:
        return "transactional"
    return "producer" if fields["producer_id"] >= 0 else "plain"


def _other_type(marker: bytes) -> bytes:
    """Return a COMMIT as an ABORT, and an ABORT as a COMMIT."""
    at = _HEADER.size + 8  # behind length, attributes, two deltas, length and version of the key, half of the type
    return sealed(marker[:at] + bytes([marker[at] ^ 1]) + marker[at + 1 :])


def _of_file(log: Path, path: Path) -> Iterator[Mutant]:
    data, file = path.read_bytes(), str(path.relative_to(log))
    batches = []
    for headers in HeaderScan(data).headers():
        for header in headers:
            position = int(header["position"])
            batches.append(data[position : position + int(header["batch_length"]) + 12])
    for number, batch in enumerate(batches):
        fields = fields_of(batch)
        what, offset = _what(fields), fields["base_offset"]
        before, behind = b"".join(batches[:number]), b"".join(batches[number + 1 :])
        changed = {kind: with_fields(batch, **values) for kind, values in _changes(fields, what)}
        changed["gone"] = b""
        changed["last_byte"] = sealed(batch[:-1] + bytes([batch[-1] ^ 1]))
        if what == "marker":
            changed["other_type"] = _other_type(batch)
        for kind, instead in changed.items():
            yield Mutant(log, file, offset, kind, what, before + instead + behind, batches, number)
        end = _end(batches[-1])
        yield Mutant(log, file, offset, "again", what, data + with_fields(batch, base_offset=end), batches, number)
        if number + 1 < len(batches):
            following = with_fields(batches[number + 1], base_offset=offset)
            swapped = following + with_fields(batch, base_offset=_end(following))
            instead = before + swapped + b"".join(batches[number + 2 :])
            yield Mutant(log, file, offset, "swapped", what, instead, batches, number)


def _end(batch: bytes) -> int:
    fields = fields_of(batch)
    return int(fields["base_offset"] + fields["last_offset_delta"] + 1)


def mutants(log: Path) -> Iterator[Mutant]:
    """Return the mutants of all logs of a directory."""
    for path in sorted(log.glob("*/*.log")):
        yield from _of_file(log, path)


class MutantDirectory:
    """A log directory that has one mutant after another; the other files are links.

    Parameters
    ----------
    directory : Path
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._log: Path | None = None
        self._changed: str | None = None

    def of(self, mutant: Mutant) -> Path:
        """Write a mutant; returns the directory."""
        directory = self.directory / mutant.log.parent.name
        if self._log != mutant.log:
            self._log, self._changed = mutant.log, None
            for path in sorted(mutant.log.rglob("*")):
                if path.is_file():
                    target = directory / path.relative_to(mutant.log)
                    target.parent.mkdir(exist_ok=True, parents=True)
                    target.symlink_to(path)
        if self._changed not in (None, mutant.file):
            (directory / self._changed).unlink()
            (directory / self._changed).symlink_to(mutant.log / self._changed)
        self._changed = mutant.file
        (directory / mutant.file).unlink()
        (directory / mutant.file).write_bytes(mutant.data)
        return directory
