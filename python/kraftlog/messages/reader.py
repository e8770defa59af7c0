"""Records of an internal topic as typed messages: their types, their fields as columns, and Kafka's JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import message as native
from kraftlog._native import status
from kraftlog._native.message_json import write_json
from kraftlog.codec.arrow_arrays import array_of, texts_of
from kraftlog.messages.arrow_types import UUID_TEXT, uuid_form
from kraftlog.messages.columns import record_batch, record_schema, with_tombstones
from kraftlog.messages.definition import Definition
from kraftlog.messages.format_of import FRAMED, UNNAMED_KEYS, VERSIONLESS
from kraftlog.messages.frames import (
    NO_VERSION,
    UNKNOWN_TYPE,
    Frames,
    RowsOfType,
    Side,
    fault_sentence,
    framed,
    keyed,
    native_values,
    rows_by_type,
    unnamed,
)
from kraftlog.messages.layout import field_path, layout
from kraftlog.messages.program import program, programs
from kraftlog.messages.record_type import KEY, VALUE, RecordFormat, RecordType
from kraftlog.messages.typed_pass import OfType, OnePass, Typed

_TRAILING = status.CODES.index("message_trailing_bytes")
_NO_PROGRAM = -1


@dataclass(frozen=True)
class FoundFault:
    """A fault of a key or value, before its message is formatted.

    Attributes
    ----------
    definition : Definition
    version : int
    native : tuple
        Row among the decoded ones, index of the field, status, position, and two numbers of the status.
    """

    definition: Definition
    version: int
    native: native.MessageFault

    @property
    def is_trailing(self) -> bool:
        """Whether the message is complete and more bytes follow."""
        return self.native[2] == _TRAILING


class MessageReader:
    """Reads the records of one format.

    Parameters
    ----------
    format : RecordFormat
    uuid : {"text", "binary"}
        Form of UUIDs in ``Messages.typed``.
    """

    def __init__(self, format: RecordFormat, uuid: str = UUID_TEXT) -> None:
        self.format = format
        self.uuid = uuid_form(uuid)
        self._one_pass = OnePass(format, self.uuid)

    def read(self, keys: pa.BinaryArray | None, values: pa.BinaryArray) -> Messages:
        """Return records as messages, which are decoded on demand.

        Parameters
        ----------
        keys : pyarrow.BinaryArray or None
            None for a format whose records have no keys.
        values : pyarrow.BinaryArray
            The values, one for each key.
        """
        if self.format.name in FRAMED:
            source = native_values(values)
            of_frames = partial(self._one_pass.framed, source)
            return Messages(self.format, partial(framed, values), self.uuid, of_frames)
        if keys is None:
            raise ValueError(f"records of {self.format.name} have keys")
        if self.format.name in UNNAMED_KEYS:
            has_versions = self.format.name not in VERSIONLESS
            return Messages(self.format, partial(unnamed, keys, values, has_versions=has_versions), self.uuid)
        both = native_values(keys), native_values(values)
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys, but {len(values)} values")
        return Messages(self.format, partial(keyed, keys, values), self.uuid, partial(self._one_pass.keyed, *both))


class Messages:
    """Some records, read as messages.

    Regular records are decoded in one pass. Otherwise, or once a property needs the types of all records, they are
    grouped by type, and each type is decoded separately.

    Parameters
    ----------
    format : RecordFormat
    frames : callable
        Reads the frames of the records.
    uuid : {"text", "binary"}
    one_pass : callable, optional
        Decodes the records of a type, or all for None, in one pass; returns None if it cannot.

    Attributes
    ----------
    found : dict of (int, str) to FoundFault
        Faults of keys and values of the records decoded so far.
    """

    def __init__(
        self,
        format: RecordFormat,
        frames: Callable[[], Frames],
        uuid: str = UUID_TEXT,
        one_pass: Callable[[str | None], list[OfType] | None] = lambda _: None,
    ) -> None:
        self.format = format
        self.uuid = uuid
        self.found: dict[tuple[int, str], FoundFault] = {}
        self._read_frames = frames
        self._one_pass: Callable[[str | None], list[OfType] | None] | None = one_pass
        self._is_passed = False  # whether a pass covered all records, which then have frames and known types
        self._faults: dict[int, str] = {}
        self._readable: set[int] = set()  # rows that are included despite a fault
        self._unknown_types: dict[int, int] = {}

    @property
    def faults(self) -> dict[int, str]:
        """The errors of the records read so far; records of unknown types have none."""
        return self._faults if self._is_passed else self._sorted()._faults

    @property
    def unknown_types(self) -> dict[int, int]:
        """Number of records of each unknown type."""
        return self._unknown_types if self._is_passed else self._sorted()._unknown_types

    @property
    def types(self) -> npt.NDArray[np.int32]:
        """The api key of each record, known or not; ``UNKNOWN_TYPE`` if it cannot be read."""
        return self._frames.types

    @property
    def is_tombstone(self) -> npt.NDArray[np.bool_]:
        """Whether each record has a key but no value."""
        return self._frames.is_tombstone

    @property
    def key_versions(self) -> npt.NDArray[np.int32]:
        """The api key at the start of each key; ``NO_VERSION`` for none."""
        if self._frames.key is None:
            return np.full(len(self.types), NO_VERSION, np.int32)
        return np.where(self.types == UNKNOWN_TYPE, NO_VERSION, self.types).astype(np.int32)

    @property
    def value_versions(self) -> npt.NDArray[np.int32]:
        """The version of each value; ``NO_VERSION`` for none."""
        return self._frames.value.versions

    @property
    def types_there(self) -> list[str]:
        """Names of the known types among the records."""
        found = (self._type(api_key) for api_key in self._groups)
        return list(dict.fromkeys(one.name for one in found if one is not None))

    @property
    def type_names(self) -> pa.StringArray:
        """The name of each record's type; null if unknown."""
        groups = self._groups
        known = [self._type(api_key) for api_key in groups]
        names = texts_of([None if one is None else one.name for one in known])
        codes = np.empty(len(self.types), np.int32)
        for code, group in enumerate(groups.values()):
            codes[group.rows] = code
        return names.take(array_of(codes))

    @property
    def errors(self) -> pa.StringArray:
        """The error of each record so far, or its type if that is unknown; else null."""
        if not self.faults and not self.unknown_types:
            return pa.nulls(len(self.types), pa.string())
        words = {row: f"unknown type {self.types[row]}" for row in self.of_unknown_type().tolist()} | self.faults
        return pa.array([words.get(row) for row in range(len(self.types))], pa.string())

    def of_unknown_type(self) -> npt.NDArray[np.int64]:
        """Return the rows with an unknown type."""
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
        found = self._in_one_pass(name)
        if found is not None and name in found:
            return found[name]
        return self._of_rows(of_name[-1], self._good_rows_of(name) if found is None else np.empty(0, np.int64))

    def every_typed(self) -> dict[str, Typed]:
        """Return the records of each type that is there."""
        found = self._in_one_pass(None)
        return {name: self.typed(name) for name in self.types_there} if found is None else found

    def rows_of(self, name: str) -> npt.NDArray[np.int64]:
        """Return the rows of a type, those that cannot be decoded among them."""
        return _merged([self._groups[one].rows for one in self._api_keys(name) if one in self._groups])

    def json(self) -> tuple[pa.StringArray, pa.StringArray]:
        """Return keys and values as JSON with Kafka's field names; null for what is null or cannot be read."""
        nothing = pa.nulls(len(self.types), pa.string())
        keys = nothing if self._frames.key is None else self._json(self._frames.key, KEY)
        return keys, self._json(self._frames.value, VALUE)

    def _type(self, api_key: int) -> RecordType | None:
        found = self.format.types.get(api_key)
        return None if found is None or found.value is None else found

    @cached_property
    def _frames(self) -> Frames:
        return self._read_frames()

    @cached_property
    def _groups(self) -> dict[int, RowsOfType]:
        """The rows of each type; what is wrong with frames is noted when they are sorted."""
        self._one_pass = None
        self._faults = dict(self._frames.faults) | self._faults
        groups = rows_by_type(self.types, self.value_versions)
        for api_key, group in groups.items():
            if api_key != UNKNOWN_TYPE:
                self._look_up(api_key, group)
        return groups

    def _sorted(self) -> Messages:
        self._groups  # noqa: B018 - notes what is wrong with frames
        return self

    def _in_one_pass(self, name: str | None) -> dict[str, Typed] | None:
        """Return the records of a type, or of all; None when they must be sorted by type."""
        every = None if self._one_pass is None else self._one_pass(name)
        if every is None:
            self._one_pass = None
            return None
        self._is_passed = True
        return {one.record_type.name: self._without_bad(one) for one in every}

    def _without_bad(self, of_type: OfType) -> Typed:
        """Return the records that one pass found of a type but those that cannot be shown, which are noted."""
        value, typed = of_type.record_type.value, of_type.typed
        if not of_type.faults:
            return typed
        assert value is not None
        is_bad = np.zeros(len(typed.rows), bool)
        for fault in of_type.faults:
            row = int(typed.rows[fault[0]])
            is_bad[fault[0]] |= self._note(row, value, int(self.value_versions[row]), fault, VALUE)
        return typed.without(is_bad) if is_bad.any() else typed

    def _of_rows(self, record_type: RecordType, rows: npt.NDArray[np.int64]) -> Typed:
        """Return records of a type, which are in these rows."""
        has_tombstones = bool(len(rows)) and bool(self.is_tombstone[rows].any())
        is_tombstone = self.is_tombstone[rows] if has_tombstones else np.zeros(len(rows), bool)
        bad: list[npt.NDArray[np.int64]] = []
        decoded: list[native.Columns] = []
        has_key = record_type.key is not None
        if len(rows) and record_type.key is not None and self._frames.key is not None:
            decoded.append(self._decode(record_type.key, rows, self._frames.key, KEY, bad))
        if has_tombstones:
            values = self._present_values(record_type, rows, is_tombstone, bad)
            batch = with_tombstones(record_type, self.uuid, decoded, values, is_tombstone)
        else:
            if len(rows) and record_type.value is not None:
                decoded.append(self._decode(record_type.value, rows, self._frames.value, VALUE, bad))
            batch = record_batch(decoded, len(rows), record_schema(record_type, self.uuid, with_key=has_key))
        typed = Typed(rows, batch, is_tombstone)
        if not bad:
            return typed
        is_bad = np.zeros(len(rows), bool)
        is_bad[np.concatenate(bad)] = True
        return typed.without(is_bad)

    def _api_keys(self, name: str) -> list[int]:
        return [one.api_key for one in self.format.by_name.get(name, [])]

    def _good_rows_of(self, name: str) -> npt.NDArray[np.int64]:
        """Return the rows of a type that no fault has kept from being shown so far."""
        rows = self.rows_of(name)
        lost = self._faults.keys() - self._readable
        return rows[~np.isin(rows, list(lost))] if lost else rows

    def _look_up(self, api_key: int, group: RowsOfType) -> None:
        """Note a type that is not known, or versions of its values that are not."""
        record_type = self._type(api_key)
        if record_type is None:
            self._unknown_types[api_key] = len(group.rows)
            for row in group.rows.tolist():
                self._faults.pop(row, None)  # coordinators skip them, whatever their bytes are
                if self._frames.key is None:  # the metadata log must not
                    self._faults[row] = f"value: unknown type {api_key}"
            return
        assert record_type.value is not None
        known = record_type.value.versions
        if group.last_version == NO_VERSION or (group.first_version in known and group.last_version in known):
            return
        versions = self.value_versions[group.rows]
        is_unknown = ((versions < known.first) | (versions > known.last)) & (versions != NO_VERSION)
        for row, version in zip(group.rows[is_unknown].tolist(), versions[is_unknown].tolist(), strict=True):
            what = f"value: version {version} of {record_type.name}"
            self._faults.setdefault(row, f"{what} is not between {known.first} and {known.last}")

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
        if row not in self._faults or (is_lost and row in self._readable):
            self._faults[row] = fault_words(definition, version, fault, side)
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


def _merged(groups: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return groups[0] if len(groups) == 1 else np.sort(np.concatenate([np.empty(0, np.int64), *groups]))
