"""The last record of each key of a coordinator's topic, by the bytes of keys: only these are decoded.

``native/c/coordinator/key_fold.h`` says what counts. Records of a form that is not the usual one (damaged ones, keys
with bytes behind them, text that is not UTF-8) are decoded at once: their faults are noted, and their keys written as
usual.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native import key_fold as native
from kraftlog.messages.frames import int16_prefix, native_values
from kraftlog.messages.program import programs
from kraftlog.messages.reader import MessageReader, Messages
from kraftlog.messages.record_type import KEY, RecordFormat, RecordType
from kraftlog.messages.typed_pass import Typed
from kraftlog.messages.writer import encode_messages

_MOST_BYTES = (1 << 31) - 1
_NO_GROUPS, _GROUPS = -1, native.MOST_TYPES  # besides the types of records


class Markers(NamedTuple):
    """Transaction markers in the order of the log: their offsets and producers, and whether each is a commit."""

    offsets: npt.NDArray[np.int64]
    producer_ids: npt.NDArray[np.int64]
    is_commit: npt.NDArray[np.bool_]


NO_MARKERS = Markers(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool))


class OddRecords(NamedTuple):
    """Records that had to be decoded at once: their positions among the added ones, and their messages."""

    rows: npt.NDArray[np.int64]
    messages: Messages


class LastRecords:
    """The records of a coordinator's topic that a coordinator would keep after loading.

    Parameters
    ----------
    format : RecordFormat
        A format whose records have keys.
    wanted : collection of str
        Names of types; records of other types are left out.
    in_transactions : collection of str
        Types whose records in batches with a producer id are pending until a marker of their producer.
    groups : GroupRule, optional
        Rule to keep the last commit of each group, too.
    """

    def __init__(
        self,
        format: RecordFormat,
        wanted: Collection[str],
        in_transactions: Collection[str] = (),
        groups: GroupRule | None = None,
    ) -> None:
        self._reader = MessageReader(format)
        self._wanted = frozenset(wanted)
        self._fold = native.KeyFold(int.from_bytes(os.urandom(8)), _NO_GROUPS if groups is None else _GROUPS)
        for one in format.types.values():
            if one.value is None or one.key is None or one.api_key not in range(native.MOST_TYPES):
                continue
            rule = native.LAST if one.name in self._wanted else native.IGNORED
            rule = native.IN_TRANSACTION if rule == native.LAST and one.name in in_transactions else rule
            of_group = native.UNTOUCHED if groups is None else groups.of(one.name)
            same_as = _last_type(format, one.name).api_key
            self._fold.expect(one.api_key, rule, same_as, of_group, programs(one.key), programs(one.value))

    def add(self, records: pa.RecordBatch, markers: Markers = NO_MARKERS) -> OddRecords | None:
        """Add the next records and the transaction markers of the same stretch of the log.

        Parameters
        ----------
        records : pyarrow.RecordBatch
            Columns ``key``, ``value``, ``offset`` and ``producer_id``, in the order of the log.
        markers : Markers

        Returns
        -------
        OddRecords or None
            Records whose faults must be noted.
        """
        ends = native.Markers(markers.offsets, markers.producer_ids, markers.is_commit.view(np.uint8))
        rows = _rows(records, is_checked=False)
        at = self._fold.add(rows, 0, ends)
        odd = None
        if at < rows.count:
            places = self._fold.odd_rows(rows, at)
            part = records.take(pa.array(places))
            odd = OddRecords(places, self._reader.read(part.column("key"), part.column("value")))
            self._fold.add(_rows(self._as_usual(records, odd, at), is_checked=True), 0, ends)
        self._fold.add_markers(ends)
        return odd

    def typed(self, name: str) -> pa.RecordBatch:
        """Return the last records of a type, in the order of the log.

        Besides its fields there are ``offset``, ``producer_id`` of a pending record (else -1) and ``value_version``.
        """
        offsets, producers, keys, values = self._fold.columns(_last_type(self._reader.format, name).api_key)
        messages = self._reader.read(_binary(keys), _binary(values))
        typed: Typed = messages.typed(name)
        order = typed.rows[np.argsort(offsets[typed.rows], kind="stable")]
        assert len(order) == len(offsets)  # without unreadable ones
        fields = typed.fields.take(pa.array(order)) if len(order) else typed.fields
        if "producer_id" not in fields.schema.names:  # records of __transaction_state have a field of that name
            fields = fields.append_column("producer_id", pa.array(producers[order]))
        fields = fields.append_column("offset", pa.array(offsets[order]))
        return fields.append_column("value_version", pa.array(messages.value_versions[order]))

    def key_values(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        """Return the keys and values of the last records of a type, as they are in the log."""
        _, _, keys, values = self._fold.columns(_last_type(self._reader.format, name).api_key)
        return zip(_binary(keys).to_pylist(), _binary(values).to_pylist(), strict=True)

    def groups(self) -> pa.RecordBatch:
        """Return the groups with a commit after the last tombstone of their own record.

        Columns are ``group``, and ``offset`` and ``value_version`` of the last such commit.
        """
        offsets, _, keys, versions = self._fold.columns(_GROUPS)
        names = pc.binary_slice(_binary(keys), 2 * len(int16_prefix(0)), _MOST_BYTES).cast(pa.string())
        return pa.record_batch(
            {
                "group": names,
                "offset": pa.array(offsets),
                "value_version": pa.array(versions[1][: 2 * len(offsets)].view(">i2").astype(np.int32)),
            }
        )

    def _as_usual(self, records: pa.RecordBatch, odd: OddRecords, first: int) -> pa.RecordBatch:
        """Return the readable records from ``first`` on, with keys in the usual form."""
        source = np.arange(records.num_rows)
        source[odd.rows] = -1
        keys = [records.column("key")]
        count = records.num_rows
        for name in odd.messages.types_there:
            if name not in self._wanted:
                continue
            typed = odd.messages.typed(name)
            keys.append(_encoded_keys(_last_type(self._reader.format, name), typed.fields))
            source[odd.rows[typed.rows]] = count + np.arange(len(typed.rows))
            count += len(typed.rows)
        stays = first + np.flatnonzero(source[first:] >= 0)
        rest = records.take(pa.array(stays))
        usual = pa.concat_arrays(keys).take(pa.array(source[stays]))
        return rest.set_column(rest.schema.get_field_index("key"), "key", usual)


class GroupRule(NamedTuple):
    """The records that create a group, which is the first field of their keys, and those that remove it.

    Attributes
    ----------
    made_by : str
        The type whose records create a group.
    removed_by : collection of str
        The types whose tombstones remove one.
    """

    made_by: str
    removed_by: Collection[str]

    def of(self, name: str) -> int:
        """Return the effect of a type's records on a group."""
        if name == self.made_by:
            return native.MADE
        return native.REMOVED if name in self.removed_by else native.UNTOUCHED


def _last_type(format: RecordFormat, name: str) -> RecordType:
    return format.by_name[name][-1]


def _rows(records: pa.RecordBatch, *, is_checked: bool) -> native.Rows:
    keys, values = native_values(records.column("key")), native_values(records.column("value"))
    offsets, producers = np.asarray(records.column("offset")), np.asarray(records.column("producer_id"))
    return native.Rows(keys, values, offsets, producers, is_checked)


def _encoded_keys(record_type: RecordType, fields: pa.RecordBatch) -> pa.BinaryArray:
    assert record_type.key is not None
    columns = {field.column: fields.column(name) for name, field, side in record_type.columns if side == KEY}
    prefix = int16_prefix(record_type.api_key)
    return encode_messages(record_type.key, 0, pa.record_batch(columns), prefix=prefix)


def _binary(column: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]) -> pa.BinaryArray:
    ends, data = column
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])
