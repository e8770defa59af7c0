"""Records as typed columns, decoded in one pass where nothing of them is odd."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import message as native
from kraftlog._native.message_pass import KeyedPass, Pass
from kraftlog.messages.arrow_types import UUID_TEXT
from kraftlog.messages.columns import record_batch, record_schema
from kraftlog.messages.format_of import FRAMED
from kraftlog.messages.program import programs
from kraftlog.messages.record_type import RecordFormat, RecordType


class Typed(NamedTuple):
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

    def without(self, is_bad: npt.NDArray[np.bool_]) -> Typed:
        """Return those that are not bad."""
        return Typed(self.rows[~is_bad], self.fields.filter(pa.array(~is_bad)), self.is_tombstone[~is_bad])


class OfType(NamedTuple):
    """What one pass found of a type: rows with a fault are among its records.

    Attributes
    ----------
    record_type : RecordType
    typed : Typed
    faults : list of tuple
        Of values; their rows count among those of ``typed``.
    """

    record_type: RecordType
    typed: Typed
    faults: list[native.MessageFault]


class OnePass:
    """Decodes records of a format, those of all types or of one.

    Parameters
    ----------
    format : RecordFormat
    uuid : {"text", "binary"}
    """

    def __init__(self, format: RecordFormat, uuid: str) -> None:
        self._uuid = uuid
        self._is_framed = format.name in FRAMED
        self._schemas: dict[str, pa.Schema] = {}
        names = format.by_name
        if self._is_framed:
            self._types = {every[0].api_key: every[0] for every in names.values() if len(every) == 1}
            self._pass = Pass({key: programs(one.value) for key, one in self._types.items() if one.value is not None})
            return
        keyed = {name: every for name, every in names.items() if _is_keyed(every)}
        self._keyed_types = {name: every[-1] for name, every in keyed.items()}
        self._keyed_pass = KeyedPass(
            {
                name: ([one.api_key for one in every], programs(every[-1].key), programs(every[-1].value))
                for name, every in keyed.items()
                if every[-1].key is not None and every[-1].value is not None
            }
        )

    def framed(self, values: native.Values, name: str | None) -> list[OfType] | None:
        """Decode values that begin with a frame.

        Parameters
        ----------
        values : native.Values
        name : str or None
            Of the type that is wanted; None for all.

        Returns
        -------
        list of OfType or None
            Of the types that are there and wanted; None when the frame of a record is odd.
        """
        wanted = None if name is None else [key for key, one in self._types.items() if one.name == name]
        found = self._pass.decode(values, self._uuid == UUID_TEXT, wanted)
        if found is None:
            return None
        every = []
        for api_key, columns, rows, faults in found:
            record_type = self._types[api_key]
            batch = record_batch([columns], len(rows), self._schema(record_type))
            every.append(OfType(record_type, Typed(rows, batch, np.zeros(len(rows), bool)), faults))
        return every

    def keyed(self, keys: native.Values, values: native.Values, name: str | None) -> list[OfType] | None:
        """Decode records with keys; None when a key or value begins oddly, or one that is wanted has a fault."""
        found = self._keyed_pass.decode(keys, values, self._uuid == UUID_TEXT, name)
        if found is None:
            return None
        every = []
        for of_type, key, value, rows, is_tombstone in found:
            record_type = self._keyed_types[of_type]
            batch = record_batch([key, value], len(rows), self._schema(record_type), is_tombstone)
            every.append(OfType(record_type, Typed(rows, batch, is_tombstone), []))
        return every

    def _schema(self, record_type: RecordType) -> pa.Schema:
        """Return the columns of a type; its name is found sooner than the whole of it."""
        found = self._schemas.get(record_type.name)
        if found is None:
            found = record_schema(record_type, self._uuid, with_key=not self._is_framed)
            self._schemas[record_type.name] = found
        return found


def _is_keyed(every: list[RecordType]) -> bool:
    """Return whether the record types of one name can be decoded together."""
    last = every[-1]
    return last.key is not None and last.key.versions.first == 0 and all(one.value == last.value for one in every)
