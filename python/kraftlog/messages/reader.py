"""Records of an internal topic as typed messages: their types, their fields as columns, and Kafka's JSON."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import message as native
from kraftlog._native import status
from kraftlog._native.message_json import write_json
from kraftlog.messages.arrow_types import UUID_TEXT, uuid_form
from kraftlog.messages.columns import record_batch, record_schema, with_tombstones
from kraftlog.messages.definition import Definition
from kraftlog.messages.format_of import FRAMED
from kraftlog.messages.frames import NO_VERSION, UNKNOWN_TYPE, Frames, Side, fault_sentence, framed, keyed
from kraftlog.messages.layout import field_path, layout
from kraftlog.messages.program import program, programs
from kraftlog.messages.record_type import KEY, VALUE, RecordFormat, RecordType

_TRAILING = status.CODES.index("message_trailing_bytes")
_NO_PROGRAM = -1


@dataclass(frozen=True)
class Typed:
    """Records of one type.

    Attributes
    ----------
    rows : numpy.ndarray of int64
        Where they are among the records that were read, rising; those that cannot be decoded are left out.
    fields : pyarrow.RecordBatch
        A column for each field of the key and of the value, and ``unknown_tagged_fields`` of the value. Fields of the
        value are null in a tombstone.
    is_tombstone : numpy.ndarray of bool
    """

    rows: npt.NDArray[np.int64]
    fields: pa.RecordBatch
    is_tombstone: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FoundFault:
    """What is wrong with a key or value, before it is put into words.

    Attributes
    ----------
    definition : Definition
    version : int
    native : tuple
        Row among those that were decoded, index of the field, status, position, and two numbers of the status.
    """

    definition: Definition
    version: int
    native: native.MessageFault

    @property
    def is_trailing(self) -> bool:
        """Whether all was read, and more bytes follow."""
        return self.native[2] == _TRAILING


class MessageReader:
    """Reads the records of one format.

    Parameters
    ----------
    format : RecordFormat
    uuid : {"text", "binary"}
        How ``Messages.typed`` shows uuids.
    """

    def __init__(self, format: RecordFormat, uuid: str = UUID_TEXT) -> None:
        self.format = format
        self.uuid = uuid_form(uuid)

    def read(self, keys: pa.BinaryArray | None, values: pa.BinaryArray) -> Messages:
        """Find the type and version of each record; fields are decoded when they are asked for.

        Parameters
        ----------
        keys : pyarrow.BinaryArray or None
            None for a format whose records have no keys.
        values : pyarrow.BinaryArray
            As many.
        """
        if self.format.name in FRAMED:
            return Messages(self.format, framed(values), self.uuid)
        if keys is None:
            raise ValueError(f"records of {self.format.name} have keys")
        return Messages(self.format, keyed(keys, values), self.uuid)


class Messages:
    """Some records, read as messages.

    Parameters
    ----------
    format : RecordFormat
    frames : Frames
    uuid : {"text", "binary"}

    Attributes
    ----------
    types : numpy.ndarray of int32
        The api key of each record, known or not; ``UNKNOWN_TYPE`` where it cannot be read.
    key_versions, value_versions : numpy.ndarray of int32
        ``NO_VERSION`` where there is none; a key's is its api key.
    is_tombstone : numpy.ndarray of bool
    faults : dict of int to str
        The errors of records, as far as they were read; records of unknown types have none.
    found : dict of (int, str) to FoundFault
        What is wrong with the key or the value of records, as far as they were decoded.
    unknown_types : dict of int to int
        How many records there are of each type that is not known.
    """

    def __init__(self, format: RecordFormat, frames: Frames, uuid: str = UUID_TEXT) -> None:
        self.format = format
        self.uuid = uuid
        self.types = frames.types
        self.is_tombstone = frames.is_tombstone
        self._has_tombstones = bool(frames.is_tombstone.any())
        self.faults = dict(frames.faults)
        self.found: dict[tuple[int, str], FoundFault] = {}
        self._readable: set[int] = set()  # rows with a fault that are shown all the same
        self.unknown_types: dict[int, int] = {}
        self._frames = frames
        self._groups = _group(self.types, self.value_versions)
        for api_key, group in self._groups.items():
            if api_key != UNKNOWN_TYPE:
                self._look_up(api_key, group)

    @property
    def key_versions(self) -> npt.NDArray[np.int32]:
        """The type that each key begins with; ``NO_VERSION`` where there is none."""
        if self._frames.key is None:
            return np.full(len(self.types), NO_VERSION, np.int32)
        return np.where(self.types == UNKNOWN_TYPE, NO_VERSION, self.types).astype(np.int32)

    @property
    def value_versions(self) -> npt.NDArray[np.int32]:
        """The version of each value; ``NO_VERSION`` where there is none."""
        return self._frames.value.versions

    @property
    def types_there(self) -> list[str]:
        """Names of the known types that records are of."""
        found = (self._type(api_key) for api_key in self._groups)
        return list(dict.fromkeys(one.name for one in found if one is not None))

    @property
    def type_names(self) -> pa.StringArray:
        """The name of each record's type; null where it is not known."""
        known = [self._type(api_key) for api_key in self._groups]
        names = pa.array([None if one is None else one.name for one in known], pa.string())
        codes = np.empty(len(self.types), np.int32)
        for code, group in enumerate(self._groups.values()):
            codes[group.rows] = code
        return names.take(pa.array(codes))

    @property
    def errors(self) -> pa.StringArray:
        """The error of each record, as far as it was read, or its type when that is unknown; else null."""
        if not self.faults and not self.unknown_types:
            return pa.nulls(len(self.types), pa.string())
        words = {row: f"unknown type {self.types[row]}" for row in self.of_unknown_type().tolist()} | self.faults
        return pa.array([words.get(row) for row in range(len(self.types))], pa.string())

    def of_unknown_type(self) -> npt.NDArray[np.int64]:
        """Return the rows whose type is not known."""
        return np.flatnonzero(np.isin(self.types, list(self.unknown_types)))

    def typed(self, name: str) -> Typed:
        """Return the records of a type, as columns.

        Raises
        ------
        ValueError
            When the format has no such type.
        """
        of_name = self.format.by_name.get(name)
        if not of_name:
            raise ValueError(f"{self.format.name} has no records of type {name!r}")
        record_type = of_name[-1]
        rows = self._rows_of([one.api_key for one in of_name])
        is_tombstone = self.is_tombstone[rows] if self._has_tombstones else np.zeros(len(rows), bool)
        bad: list[npt.NDArray[np.int64]] = []
        decoded: list[native.Columns] = []
        has_key = record_type.key is not None and self._frames.key is not None
        if len(rows) and record_type.key is not None and self._frames.key is not None:
            decoded.append(self._decode(record_type.key, rows, self._frames.key, KEY, bad))
        if self._has_tombstones and is_tombstone.any():
            values = self._present_values(record_type, rows, is_tombstone, bad)
            batch = with_tombstones(record_type, self.uuid, decoded, values, is_tombstone)
        else:
            if len(rows) and record_type.value is not None:
                decoded.append(self._decode(record_type.value, rows, self._frames.value, VALUE, bad))
            batch = record_batch(decoded, len(rows), record_schema(record_type, self.uuid, with_key=has_key))
        if not bad:
            return Typed(rows, batch, is_tombstone)
        is_good = np.ones(len(rows), bool)
        is_good[np.concatenate(bad)] = False
        return Typed(rows[is_good], batch.filter(pa.array(is_good)), is_tombstone[is_good])

    def json(self) -> tuple[pa.StringArray, pa.StringArray]:
        """Return keys and values as JSON with Kafka's field names; null for what is null or cannot be read."""
        nothing = pa.nulls(len(self.types), pa.string())
        keys = nothing if self._frames.key is None else self._json(self._frames.key, KEY)
        return keys, self._json(self._frames.value, VALUE)

    def _type(self, api_key: int) -> RecordType | None:
        found = self.format.types.get(api_key)
        return None if found is None or found.value is None else found

    def _rows_of(self, api_keys: list[int]) -> npt.NDArray[np.int64]:
        """Return the rows of types that no fault has kept from being shown so far."""
        groups = [self._groups[api_key].rows for api_key in api_keys if api_key in self._groups]
        lost = self.faults.keys() - self._readable
        if len(groups) == 1 and not lost:
            return groups[0]
        is_wanted = np.zeros(len(self.types), bool)
        for rows in groups:
            is_wanted[rows] = True
        is_wanted[list(lost)] = False
        return np.flatnonzero(is_wanted)

    def _look_up(self, api_key: int, group: _Group) -> None:
        """Note a type that is not known, or versions of its values that are not."""
        record_type = self._type(api_key)
        if record_type is None:
            self.unknown_types[api_key] = len(group.rows)
            for row in group.rows.tolist():
                self.faults.pop(row, None)  # coordinators skip them, whatever their bytes are
                if self._frames.key is None:  # the metadata log must not
                    self.faults[row] = f"value: unknown type {api_key}"
            return
        assert record_type.value is not None
        known = record_type.value.versions
        if group.last_version == NO_VERSION or (group.first_version in known and group.last_version in known):
            return
        versions = self.value_versions[group.rows]
        is_unknown = ((versions < known.first) | (versions > known.last)) & (versions != NO_VERSION)
        for row, version in zip(group.rows[is_unknown].tolist(), versions[is_unknown].tolist(), strict=True):
            what = f"value: version {version} of {record_type.name}"
            self.faults.setdefault(row, f"{what} is not between {known.first} and {known.last}")

    def _decode(
        self,
        definition: Definition,
        rows: npt.NDArray[np.int64],
        side: Side,
        name: str,
        bad: list[npt.NDArray[np.int64]],
    ) -> native.Columns:
        """Return the messages of rows; ``bad`` receives which of these cannot be shown."""
        columns = native.Columns(layout(definition).columns, self.uuid == UUID_TEXT)
        faults = columns.decode(programs(definition), side.values, rows, side.starts, side.versions)
        if faults:
            lost = [
                fault[0]
                for fault in faults
                if self._note(int(rows[fault[0]]), definition, int(side.versions[rows[fault[0]]]), fault, name)
            ]
            bad.append(np.array(lost, np.int64))
        return columns

    def _present_values(
        self,
        record_type: RecordType,
        rows: npt.NDArray[np.int64],
        is_tombstone: npt.NDArray[np.bool_],
        bad: list[npt.NDArray[np.int64]],
    ) -> list[native.Columns]:
        """Return the values of rows that have one."""
        assert record_type.value is not None
        places = np.flatnonzero(~is_tombstone)
        bad_values: list[npt.NDArray[np.int64]] = []
        value = record_type.value
        decoded = [self._decode(value, rows[places], self._frames.value, VALUE, bad_values)] if len(places) else []
        bad += [places[one] for one in bad_values]
        return decoded

    def _note(self, row: int, definition: Definition, version: int, fault: native.MessageFault, side: str) -> bool:
        """Note a fault; returns whether the record cannot be shown because of it."""
        is_lost = fault[2] != _TRAILING or self._frames.is_strict
        self.found.setdefault((row, side), FoundFault(definition, version, fault))
        if row not in self.faults or (is_lost and row in self._readable):
            self.faults[row] = fault_words(definition, version, fault, side)
            self._readable.discard(row)
            if not is_lost:
                self._readable.add(row)
        return is_lost

    def _json(self, side: Side, name: str) -> pa.StringArray:
        codes = np.full(len(self.types), _NO_PROGRAM, np.int32)
        definitions: list[Definition] = []
        compiled: list[native.Program] = []
        for api_key, group in self._groups.items():
            definition = getattr(self._type(api_key), name, None)
            if definition is None:
                continue
            known = definition.versions
            versions = side.versions[group.rows]
            is_known = (versions >= known.first) & (versions <= known.last)
            codes[group.rows[is_known]] = versions[is_known] - known.first + len(definitions)
            definitions += [definition] * (known.last + 1 - known.first)
            compiled += [program(definition, version) for version in range(known.first, known.last + 1)]
        is_there = codes != _NO_PROGRAM
        is_there[list(self._frames.faults)] &= name == KEY
        most = max((one.columns for one in compiled), default=0)
        ends, data, faults = write_json(compiled, most, side.values, codes, side.starts)
        for fault in faults:
            row = fault[0]
            if self._note(row, definitions[int(codes[row])], int(side.versions[row]), fault, name):
                is_there[row] = False
        valid = pa.py_buffer(np.packbits(is_there, bitorder="little"))
        nulls = len(is_there) - int(is_there.sum())
        return pa.Array.from_buffers(pa.string(), len(is_there), [valid, pa.py_buffer(ends), pa.py_buffer(data)], nulls)


def fault_words(definition: Definition, version: int, fault: native.MessageFault, side: str) -> str:
    """Return what is wrong with a message; ``side`` is that of its record, ``"key"`` or ``"value"``."""
    _, field, number, position, expected, actual = fault
    what = [f"version {version} of {definition.name.removesuffix(side.title())}", field_path(definition, field)]
    where = ", ".join(part for part in what if part)
    return f"{side}: {where}: {fault_sentence(number, expected, actual)}, at byte {position}"


@dataclass(frozen=True)
class _Group:
    """The rows of a type, and the lowest and highest version of their values; ``NO_VERSION`` when none has one."""

    first_version: int
    last_version: int
    rows: native.Int64s


def _group(types: native.Int32s, versions: native.Int32s) -> dict[int, _Group]:
    """Return the rows of each type."""
    found = native.group_rows(types, versions)
    if found is not None:
        return {api_key: _Group(first, last, rows) for api_key, first, last, rows in found}
    groups = {}
    for api_key in np.unique(types).tolist():
        rows = np.flatnonzero(types == api_key)
        there = versions[rows][versions[rows] != NO_VERSION]
        first, last = (int(there.min()), int(there.max())) if len(there) else (NO_VERSION, NO_VERSION)
        groups[api_key] = _Group(first, last, rows)
    return groups
