"""The definition of a table, for all interfaces: Python, the command line, SQL, Spark and the reference.

This module does not import pyarrow, so that help and start of the command line are fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlog.codec.options import ReadOptions
    from kraftlog.schema.table import TableSchema


class TaskCut(Enum):
    """How Spark divides a table into tasks."""

    RANGES = auto()
    """Each reads a stretch of a segment, from one batch to another; transactions decide which of its rows are shown."""
    CHECKS = auto()
    """Each reads a stretch of a segment, and one more what is known of a whole partition alone."""
    SEGMENTS = auto()
    PARTITIONS = auto()
    REPLICAS = auto()
    """Each reads all replicas of a partition."""
    WHOLE = auto()
    """One task reads it: what it says of a partition is in other partitions."""


class Replicas(Enum):
    """The replicas of a partition that a table reads."""

    LINE = auto()
    """The one that has what the cluster would serve (``Lines``)."""
    EACH = auto()
    """All of them: it is a table of files."""
    CHOSEN_BY_TABLE = auto()
    """All are handed over: the table looks beside them, and chooses then."""
    COMPARED = auto()
    """All are handed over: rows, and not notes, say how they differ."""


class Narrows(Enum):
    """The parts of a log that a condition on columns can exclude."""

    NOTHING = auto()
    PARTITIONS = auto()
    """Topic and partition of a row are those of the log."""
    RECORDS = auto()
    """Offset and timestamp, too: a row is a record."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table.

    Attributes
    ----------
    name : str
    columns : str or TableSchema
        The columns, or their name in ``kraftlog.schema``.
    rows : str
        The function that returns the rows of a ``Read``: its module in ``kraftlog``, and its name.
    options : type
        A ``TypedDict`` with the options, for all interfaces.
    cut : TaskCut
    replicas : Replicas
    narrows : Narrows
    topic : str or None
        The topic from which the table is built.
    key : tuple of str
        Key columns of a table that is built from a topic; required for following.
    is_of_files : bool
        Whether it shows everything on disk, including records that are deleted for consumers.
    is_of_metadata : bool
        Whether it only reads the metadata log.
    is_of_faults : bool
        Whether its rows are faults.
    shows_unread : bool
        Whether it also has rows for ignored files.
    choices : mapping of str to str
        Options of the command that choose rows, and the columns with the chosen values.
    defaults : mapping
        Defaults of options that differ from ``ReadOptions``.
    task, command, summary, example : str
        Under which heading the command line has it, the name of its command, what that does, and how it is used.
    module : str
        Module of ``kraftlog.cli`` that has the command; by default that of all tables.
    """

    name: str
    columns: str | TableSchema = field(repr=False)
    rows: str
    options: type
    cut: TaskCut
    replicas: Replicas = Replicas.LINE
    narrows: Narrows = Narrows.NOTHING
    topic: str | None = None
    key: tuple[str, ...] = ()
    is_of_files: bool = False
    is_of_metadata: bool = False
    is_of_faults: bool = False
    shows_unread: bool = False
    choices: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    task: str
    command: str
    summary: str
    example: str
    module: str = "tables"

    @cached_property
    def schema(self) -> TableSchema:
        """The columns."""
        if not isinstance(self.columns, str):
            return self.columns
        found: TableSchema = getattr(import_module("kraftlog.schema"), self.columns)
        return found

    @cached_property
    def rows_of(self) -> Callable[[Any], Iterator[pa.RecordBatch]]:
        """The function that returns the rows of a ``Read``."""
        module, function = self.rows.rsplit(".", 1)
        found: Callable[[Any], Iterator[pa.RecordBatch]] = getattr(import_module(f"kraftlog.{module}"), function)
        return found

    @cached_property
    def option_names(self) -> tuple[str, ...]:
        """The names of the options, in the order of their definition; all tables have ``strict``."""
        return (*self.options.__annotations__, "strict")

    @property
    def has_records(self) -> bool:
        """Whether a row is a record of the log."""
        return self.narrows is Narrows.RECORDS

    @property
    def has_log_partitions(self) -> bool:
        """Whether topic and partition of a row are those of the log from which it was read."""
        return self.narrows is not Narrows.NOTHING

    @property
    def can_be_followed(self) -> bool:
        """Whether new rows can be distinguished from earlier ones."""
        return self.has_records or bool(self.key)

    def read_options(self, given: Mapping[str, Any]) -> ReadOptions:
        """Return ``ReadOptions`` for options given by users.

        Parameters
        ----------
        given : mapping
            Values by names in ``option_names``. Bounds may be None, timestamps datetimes or ISO 8601 text.

        Raises
        ------
        TypeError
            For an unknown option; the message lists the known ones.
        ValueError
            For an invalid value.

        Examples
        --------
        >>> from kraftlog.tables.all_tables import TABLES
        >>> TABLES["offsets"].read_options({"at": 41}).end_offset
        42
        >>> TABLES["offsets"].read_options({"isolation_level": "read_committed"})
        Traceback (most recent call last):
        TypeError: table offsets has no option isolation_level; it has heal, at, include_deleted, strict
        """
        from kraftlog.codec.options import NO_BOUND, checked_integer
        from kraftlog.tables.user_options import read_options

        unknown = [name for name in given if name not in self.option_names]
        if unknown:
            raise TypeError(f"table {self.name} has no option {unknown[0]}; it has {', '.join(self.option_names)}")
        wanted = {**self.defaults, **given}
        if "at" in wanted:
            at = wanted.pop("at")
            wanted["end_offset"] = None if at is None else checked_integer("at", at, -NO_BOUND - 1, NO_BOUND - 1) + 1
        return read_options(**wanted)
