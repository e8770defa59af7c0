"""Records that begin, end and abort a transaction of the metadata log (KIP-868).

Like every metadata record: frame version, api key and version as unsigned varints, then a flexible message. Begin and
Abort have one field, a tagged nullable string (tag 0); End has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kraftlog._native.message import FIRST_MARKER_KEY, FRAME_VERSION, LAST_MARKER_KEY
from kraftlog.codec.cursor import Cursor, uvarint
from kraftlog.errors import InvalidRecordError
from kraftlog.types import Buffer

if TYPE_CHECKING:
    import pyarrow as pa

BEGIN_TRANSACTION, END_TRANSACTION, ABORT_TRANSACTION = range(FIRST_MARKER_KEY, LAST_MARKER_KEY + 1)  # api keys
MARKER_NAMES = {
    BEGIN_TRANSACTION: "BeginTransactionRecord",
    END_TRANSACTION: "EndTransactionRecord",
    ABORT_TRANSACTION: "AbortTransactionRecord",
}
LONGEST_TEXT = 255  # bytes of UTF-8; what KIP-868 says of names and reasons
_RECORD_VERSION = 0
_TEXT_TAG = 0


class Marker(NamedTuple):
    """A transaction marker: its kind, one of ``MARKER_NAMES``, and its name or reason."""

    kind: str
    text: str | None


def begin_transaction(name: str | None = None) -> bytes:
    """Return a BeginTransactionRecord.

    Parameters
    ----------
    name : str, optional
        At most 255 bytes of UTF-8. None differs from the empty name.

    Raises
    ------
    ValueError
        When the name is longer.

    Examples
    --------
    >>> begin_transaction("txn-1").hex(" ")
    '01 17 00 01 00 06 06 74 78 6e 2d 31'
    """
    return _marker(BEGIN_TRANSACTION, "name", name)


def begin_transactions(names: pa.Array) -> pa.Array:
    """Return a BeginTransactionRecord for each name; a name that is null gives a record without one.

    Raises
    ------
    ValueError
        When a name is longer than ``begin_transaction`` allows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc  # costs more than the rest of the codec

    texts = names.cast(pa.binary())
    sizes = pc.binary_length(texts)
    longest = pc.max(sizes).as_py() or 0
    if longest > LONGEST_TEXT:
        begin_transaction("." * longest)
    heads = [begin_transaction("." * size)[: -size or None] for size in range(longest + 1)]
    nameless = pa.array([*heads, begin_transaction()], pa.binary()).take(pc.fill_null(sizes, longest + 1))
    return pc.binary_join_element_wise(nameless, pc.fill_null(texts, b""), b"")


def end_transaction() -> bytes:
    """Return an EndTransactionRecord."""
    return _marker(END_TRANSACTION, "", None)


def abort_transaction(reason: str | None = None) -> bytes:
    """Return an AbortTransactionRecord; ``reason`` is like the name in ``begin_transaction``."""
    return _marker(ABORT_TRANSACTION, "reason", reason)


def _marker(api_key: int, what: str, text: str | None) -> bytes:
    head = uvarint(FRAME_VERSION) + uvarint(api_key) + uvarint(_RECORD_VERSION)
    if text is None:
        return head + uvarint(0)
    encoded = text.encode()
    if len(encoded) > LONGEST_TEXT:
        raise ValueError(f"a {what} of {len(encoded)} bytes; KIP-868 allows {LONGEST_TEXT}")
    field = uvarint(len(encoded) + 1) + encoded
    return head + uvarint(1) + uvarint(_TEXT_TAG) + uvarint(len(field)) + field


def read_marker(value: Buffer) -> Marker | None:
    """Read a transaction marker from the value of a metadata record.

    Overlong varints, and texts longer than KIP-868 allows, are accepted; unknown tagged fields are skipped.

    Parameters
    ----------
    value : buffer

    Returns
    -------
    Marker or None
        None for a metadata record of another type.

    Raises
    ------
    InvalidRecordError
        When the frame or the marker has an unknown version, or the marker is malformed.

    Examples
    --------
    >>> read_marker(bytes.fromhex("01 19 00 00"))
    Marker(kind='AbortTransactionRecord', text=None)
    """
    cursor = Cursor(value, "metadata record")
    _expect("frame version", cursor.uvarint(), FRAME_VERSION)
    api_key = cursor.uvarint()
    if api_key not in MARKER_NAMES:
        return None
    cursor.what = MARKER_NAMES[api_key]
    _expect(f"{cursor.what}: version", cursor.uvarint(), _RECORD_VERSION)
    fields = cursor.tagged_fields()
    if cursor.left:
        raise cursor.fault(f"{cursor.left} bytes left behind the record")
    if api_key == END_TRANSACTION or _TEXT_TAG not in fields:
        return Marker(cursor.what, None)
    text = Cursor(fields[_TEXT_TAG], cursor.what)
    return Marker(cursor.what, text.nullable_string())


def _expect(what: str, found: int, known: int) -> None:
    if found != known:
        raise InvalidRecordError(f"metadata record: {what} {found} is not {known}")
