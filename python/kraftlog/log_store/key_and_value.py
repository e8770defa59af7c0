"""A record of a coordinator's topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class KeyAndValue(NamedTuple):
    """A record; a tombstone if it has no value."""

    key: bytes
    value: bytes | None


def rows_of_records(records: Sequence[KeyAndValue]) -> pa.RecordBatch:
    """Return records as columns key and value."""
    import pyarrow as pa

    from kraftlog.codec.arrow_arrays import bytes_of

    keys, values = bytes_of([one.key for one in records]), bytes_of([one.value for one in records])
    return pa.RecordBatch.from_arrays([keys, values], ["key", "value"])
