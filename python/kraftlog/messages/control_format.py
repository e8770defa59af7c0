"""Control records as messages: transaction markers, and the control records of a Raft quorum."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.messages.arrow_types import UUID_TEXT
from kraftlog.messages.catalog import Catalog
from kraftlog.messages.frames import UNKNOWN_TYPE, control
from kraftlog.messages.reader import Messages
from kraftlog.messages.record_type import RecordFormat, RecordType

CONTROL = "control"
_MARKER = "EndTxnMarker"
_MESSAGES = {
    "ABORT": _MARKER,
    "COMMIT": _MARKER,
    "LEADER_CHANGE": "LeaderChangeMessage",
    "SNAPSHOT_HEADER": "SnapshotHeaderRecord",
    "SNAPSHOT_FOOTER": "SnapshotFooterRecord",
    "KRAFT_VERSION": "KRaftVersionRecord",
    "KRAFT_VOTERS": "VotersRecord",
}


def control_format(catalog: Catalog) -> RecordFormat:
    """Return the types of control records by the numbers in their keys."""
    numbers = {CONTROL_TYPES.index(name): message for name, message in _MESSAGES.items()}
    return RecordFormat(
        CONTROL,
        {number: RecordType(name, number, None, catalog.messages[name]) for number, name in numbers.items()},
    )


def read_control(
    format: RecordFormat, control_types: Sequence[str | None], values: pa.BinaryArray, uuid: str = UUID_TEXT
) -> Messages:
    """Read control records.

    Parameters
    ----------
    format : RecordFormat
        The result of ``control_format``.
    control_types : sequence of str
        Values of the column ``control_type``.
    values : pyarrow.BinaryArray
    uuid : {"text", "binary"}
    """
    types = [CONTROL_TYPES.index(name) if name in CONTROL_TYPES else UNKNOWN_TYPE for name in control_types]
    prefixed = [_MESSAGES.get(name or "") == _MARKER for name in control_types]
    return Messages(format, lambda: control(types, values, prefixed), uuid)
