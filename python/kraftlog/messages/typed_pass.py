"""Records of all types as columns, decoded in one pass where their frames say it all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import message as native
from kraftlog.messages.arrow_types import UUID_TEXT
from kraftlog.messages.columns import record_batch, record_schema
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
        Reads what does not go in one pass: records with keys, and chunks with a record whose frame is odd.
    """

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader
        of_name = reader.format.by_name
        types = [one for name in of_name for one in of_name[name] if len(of_name[name]) == 1]
        self._types = {one.api_key: one for one in types} if reader.format.name in FRAMED else {}
        self._schemas = {key: record_schema(one, reader.uuid, with_key=False) for key, one in self._types.items()}
        self._pass = native.Pass(
            {key: programs(one.value) for key, one in self._types.items() if one.value is not None}
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


def _all(rows: native.Int64s, batch: pa.RecordBatch) -> Typed:
    return Typed(rows, batch, np.zeros(len(rows), bool))


def _without(is_bad: npt.NDArray[np.bool_], rows: native.Int64s, batch: pa.RecordBatch) -> Typed:
    return _all(rows[~is_bad], batch.filter(pa.array(~is_bad)))


def _words(record_type: RecordType, value: bytes, fault: native.MessageFault) -> str:
    assert record_type.value is not None
    version = value[2]  # each number of the frame has one byte
    return fault_words(record_type.value, version, fault, VALUE)
