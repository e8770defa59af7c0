"""Keys whose records are left out of a copy, as requests for erasure need it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.disk.disk import disk
from kraftlog.log_store.errors import InvalidTopicError
from kraftlog.log_store.topics import check_name
from kraftlog.topics import INTERNAL_TOPICS
from kraftlog.write.excluded_records import IsExcluded

BASE64 = "base64:"
_TAB = "\t"


class ExcludedKeys:
    r"""Keys of records that are left out, of all topics or of one.

    Parameters
    ----------
    text : str
        A key on each line, as UTF-8, or as ``base64:`` and its bytes in base64. With a topic and a tab before it, only
        records of this topic are left out. Empty lines count for nothing. Kafka's own topics are not changed.

    Attributes
    ----------
    sha256 : str
        Of the keys and topics, in any order.

    Raises
    ------
    ValueError
        When a line is no key.

    Examples
    --------
    >>> excluded = ExcludedKeys("anna\norders\tbase64:/w==\n")
    >>> is_excluded = excluded.of_topic("orders")
    >>> is_excluded(pa.array([b"anna", b"\xff", b"bert", None], pa.binary())).to_pylist()
    [True, True, False, False]
    """

    def __init__(self, text: str) -> None:
        self._keys: dict[str | None, set[bytes]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            entry = line.removesuffix("\r")
            if entry:
                topic, key = _parsed(entry, number)
                self._keys.setdefault(topic, set()).add(key)
        if not self._keys:
            raise ValueError("excluded keys: expected a key on each line, found none")
        lines = sorted(
            f"{topic or ''}{_TAB}{base64.b64encode(key).decode()}" for topic, keys in self._keys.items() for key in keys
        )
        self.sha256 = hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @classmethod
    def of_file(cls, path: str | Path | None) -> ExcludedKeys | None:
        """Read a file; None without one.

        Raises
        ------
        ValueError
            When a line is no key, or the file is not UTF-8.
        """
        if path is None:
            return None
        try:
            return cls(disk().read_bytes(Path(path)).decode())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @property
    def identity(self) -> str:
        """What is equal for equal keys."""
        return f"excluded keys {self.sha256}"

    @staticmethod
    def note(records_count: int) -> str:
        """Return the note for readers of a copy."""
        what = "1 record was" if records_count == 1 else f"{records_count:,} records were"
        return f"{what} left out, since their keys are excluded"

    def of_topic(self, topic: str | None) -> IsExcluded | None:
        """Return which keys of a topic are excluded; None if all of its records stay."""
        if topic is None or topic in INTERNAL_TOPICS:
            return None
        keys = self._keys.get(None, set()) | self._keys.get(topic, set())
        if not keys:
            return None
        excluded = pa.array(sorted(keys), pa.binary())
        return lambda column: pc.is_in(column, value_set=excluded)


def _parsed(entry: str, number: int) -> tuple[str | None, bytes]:
    """Return the topic and the key of a line."""
    where = f"excluded keys, line {number}"
    topic, tab, text = entry.rpartition(_TAB)
    if tab:
        if topic in INTERNAL_TOPICS:
            raise ValueError(f"{where}: {topic} is Kafka's own; its records are not changed")
        try:
            check_name(topic, ())
        except InvalidTopicError as error:
            raise ValueError(f"{where}: {error}") from None
    if not text.startswith(BASE64):
        return (topic or None), text.encode()
    try:
        return (topic or None), base64.b64decode(text.removeprefix(BASE64), validate=True)
    except binascii.Error:
        raise ValueError(f"{where}: expected base64 after {BASE64}, found {text.removeprefix(BASE64)!r}") from None
