"""Records of all types as columns, decoded in one pass where their frames say it all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import message as native
from kraftlog._native.message_pass import KeyedPass, Pass
from kraftlog.messages.arrow_types import UUID_TEXT
from kraftlog.messages.columns import record_batch, record_schema, with_tombstones
from kraftlog.messages.format_of import FRAMED
from kraftlog.messages.frames import native_values
from kraftlog.messages.program import programs
from kraftlog.messages.reader import MessageReader, Typed, fault_words
from kraftlog.messages.record_type import VALUE, RecordType


@dataclass(frozen=True)
class TypedRecords:
    """Some records.

    Attributes
    ----------
    typed : dict of str to Typed
        Those of each type that is there.
    faults : dict of int to str
        The errors of records, by their numbers; of a metadata log, those of unknown types as well.
    """

    typed: dict[str, Typed] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)


class TypedReader:
    """Reads all records of one format.

    Parameters
    ----------
    reader : MessageReader
        Reads what does not go in one pass: chunks with a record whose frame is odd, or, of records with keys, one that
        has a fault.
    """

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader
        of_name = reader.format.by_name
        types = [one for name in of_name for one in of_name[name] if len(of_name[name]) == 1]
        self._types = {one.api_key: one for one in types} if reader.format.name in FRAMED else {}
        self._schemas = {key: record_schema(one, reader.uuid, with_key=False) for key, one in self._types.items()}
        self._pass = Pass({key: programs(one.value) for key, one in self._types.items() if one.value is not None})
        keyed = {} if self._types else {name: of_name[name] for name in of_name if _is_keyed(of_name[name])}
        self._keyed_types = {name: every[-1] for name, every in keyed.items()}
        self._keyed_schemas = {
            name: record_schema(one, reader.uuid, with_key=True) for name, one in self._keyed_types.items()
        }
        self._keyed_pass = KeyedPass(
            {
                name: ([one.api_key for one in every], programs(every[-1].key), programs(every[-1].value))
                for name, every in keyed.items()
                if every[-1].key is not None and every[-1].value is not None
            }
        )

    def read(self, keys: pa.BinaryArray | None, values: pa.BinaryArray) -> TypedRecords:
        """Decode records.

        Parameters
        ----------
        keys : pyarrow.BinaryArray or None
            None for a format whose records have no keys.
        values : pyarrow.BinaryArray
            As many.
        """
        if not self._types and keys is not None and (typed := self._read_keyed(keys, values)) is not None:
            return TypedRecords(typed)
        found = self._pass.decode(native_values(values), self._reader.uuid == UUID_TEXT) if self._types else None
        if found is None:
            messages = self._reader.read(keys, values)
            typed = {name: messages.typed(name) for name in messages.types_there}
            return TypedRecords(typed, messages.faults)
        records = TypedRecords()
        for api_key, columns, rows, faults in found:
            is_bad = np.zeros(len(rows), bool)
            for fault in faults:
                is_bad[fault[0]] = True
                row = int(rows[fault[0]])
                records.faults.setdefault(row, _words(self._types[api_key], values[row].as_py(), fault))
            batch = record_batch([columns], len(rows), self._schemas[api_key])
            records.typed[self._types[api_key].name] = _without(is_bad, rows, batch) if faults else _all(rows, batch)
        return records

    def _read_keyed(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> dict[str, Typed] | None:
        """Return records with keys; None when they do not go in one pass."""
        uuid = self._reader.uuid
        found = self._keyed_pass.decode(native_values(keys), native_values(values), uuid == UUID_TEXT)
        if found is None:
            return None
        typed = {}
        for name, key, value, rows, is_tombstone in found:
            if is_tombstone.any():
                of_values = [] if is_tombstone.all() else [value]
                batch = with_tombstones(self._keyed_types[name], uuid, [key], of_values, is_tombstone)
            else:
                batch = record_batch([key, value], len(rows), self._keyed_schemas[name])
            typed[name] = Typed(rows, batch, is_tombstone)
        return typed


def _is_keyed(every: list[RecordType]) -> bool:
    """Return whether the record types of one name can be decoded together."""
    last = every[-1]
    return last.key is not None and last.key.versions.first == 0 and all(one.value == last.value for one in every)


def _all(rows: native.Int64s, batch: pa.RecordBatch) -> Typed:
    return Typed(rows, batch, np.zeros(len(rows), bool))


def _without(is_bad: npt.NDArray[np.bool_], rows: native.Int64s, batch: pa.RecordBatch) -> Typed:
    return _all(rows[~is_bad], batch.filter(pa.array(~is_bad)))


def _words(record_type: RecordType, value: bytes, fault: native.MessageFault) -> str:
    assert record_type.value is not None
    version = value[2]  # each number of the frame has one byte
    return fault_words(record_type.value, version, fault, VALUE)
