"""What a Spark job asks for, in plain values that can be sent to executors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.disk.remote_path import StorageOptions
from kraftlog.disk.shown_uri import shown_uri
from kraftlog.layout.discover import Discovery
from kraftlog.layout.identity import Identity
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.schema import RECORDS
from kraftlog.spark.narrowing import EVERYTHING, Narrowing
from kraftlog.spark.offsets import Interval
from kraftlog.spark.selection import Selection
from kraftlog.spark.tables import library_columns, spark_names, spark_schema
from kraftlog.tables.all_tables import table_named
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.table import Table
from kraftlog.tables.user_options import catalog_of
from kraftlog.values.typed_options import ResolvedTypes


@dataclass(frozen=True)
class Request:
    """One read of one table.

    Attributes
    ----------
    table : str
        Or the name of a type of message.
    paths, columns : tuple of str
    storage_options : mapping
        Of the file system, for paths that are URIs.
    remote_tier : RemoteTier or None
    identity : Identity or None
        Which topics and which cluster are meant.
    selection : Selection
    interval : Interval
        Where reading begins and ends in each partition.
    definitions : str or None
        A folder of definitions of messages.
    range_bytes : int or None
        Bytes of log that one task takes; None leaves it to the plan.
    min_partitions : int
        How many tasks there are at least, where there are as many batches.
    fail_on_data_loss : bool
        Whether offsets that are not there any more fail the job.
    quarantine : str or None
        A folder that takes what could not be read, as the table ``errors``.
    options : ReadOptions
    narrowing : Narrowing
        What Spark's filters leave of it.
    max_offsets_per_trigger, min_offsets_per_trigger : int or None
        How many offsets a micro-batch takes at most, and how many it waits for.
    max_trigger_delay_ms : int
        Milliseconds that it waits for them.
    takes_filters : bool
        Whether Spark's filters may narrow it.
    stops_at_high_watermark : bool
        Whether a stream reads only what the broker knows to be replicated.
    typed : ResolvedTypes or None
        Formats of keys and values, with the schemas that were there when the options were read.
    redaction : Redaction or None
        What is taken out of records before they are typed. Spark applies filters to what is left.
    """

    table: str
    paths: tuple[str, ...] = field(repr=False)  # a URI may hold a password
    columns: tuple[str, ...]
    selection: Selection
    interval: Interval
    storage_options: StorageOptions = field(repr=False)
    remote_tier: RemoteTier | None = field(repr=False)
    identity: Identity | None
    definitions: str | None
    range_bytes: int | None
    min_partitions: int
    fail_on_data_loss: bool
    quarantine: str | None
    options: ReadOptions
    narrowing: Narrowing = EVERYTHING
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 0
    takes_filters: bool = False
    stops_at_high_watermark: bool = False
    typed: ResolvedTypes | None = None
    redaction: Redaction | None = field(default=None, repr=False)  # has a key

    def found(self) -> Discovery:
        """Return all files of this moment, of whatever topic."""
        others = [one for one in (self.remote_tier, self.identity) if one is not None]
        return open_log([*self.paths, *others], storage_options=self.storage_options).found

    @property
    def shown_paths(self) -> list[str]:
        """What is read, without passwords."""
        tier = [] if self.remote_tier is None else [str(self.remote_tier.path)]
        return [*map(shown_uri, self.paths), *tier]

    def log(self) -> Log:
        """Open the log files: those of this moment."""
        return Log(self.selection.of(self.found()), catalog_of(self.definitions))

    @property
    def schema(self) -> pa.Schema:
        """The columns of every record batch."""
        if self.typed is not None:
            names = zip(self.record_schema, spark_names(self.columns), strict=True)
            return pa.schema([field.with_name(name) for field, name in names])
        return spark_schema(self.table, self.columns, self.definitions)

    @property
    def record_schema(self) -> pa.Schema:
        """The columns of records, by the names of the library."""
        names = library_columns(self.columns)
        if self.typed is None:
            return RECORDS.select(names)
        return self.typed.records(names, strict=self.options.strict).schema

    @property
    def definition(self) -> Table:
        """What the table is."""
        return table_named(self.table, catalog_of(self.definitions))

    def with_columns(self, columns: tuple[str, ...]) -> Request:
        """Return the same request for other columns."""
        return replace(self, columns=columns)
