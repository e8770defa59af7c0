"""The request of a Spark job, in plain values that can be sent to executors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.disk.remote_path import StorageOptions
from kraftlog.disk.shown_uri import shown_uri
from kraftlog.layout.discover import Discovery, discover
from kraftlog.layout.identity import Identity
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.schema import RECORDS
from kraftlog.spark.offsets import Interval
from kraftlog.spark.selection import Selection
from kraftlog.spark.tables import library_columns, spark_names, spark_schema
from kraftlog.tables.all_tables import table_named
from kraftlog.tables.log import Log
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.table import Table
from kraftlog.tables.user_options import catalog_of
from kraftlog.transactions.cut import CutTime
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
        Arguments of the file system, for paths that are URIs.
    remote_tier : RemoteTier or None
    identity : Identity or None
        The topic ids and the cluster id to choose.
    selection : Selection
    cut : CutTime or None
        At which cut the log ends.
    interval : Interval
        Where reading begins and ends in each partition.
    definitions : str or None
        A folder of message definitions.
    range_bytes : int or None
        Bytes of log per task; None lets the plan choose.
    min_partitions : int
        Minimum number of tasks, if there are that many batches.
    fail_on_data_loss : bool
        Whether offsets that are no longer in the log fail the job.
    quarantine : str or None
        A folder for the table ``errors`` of this read.
    options : ReadOptions
    max_offsets_per_trigger, min_offsets_per_trigger : int or None
        Maximum offsets of a micro-batch, and the minimum that it waits for.
    max_trigger_delay_ms : int
        Maximum wait for the minimum.
    high_watermark : {"auto", "true", "false"}
        Whether a stream stops at the broker's high watermark.
    typed : ResolvedTypes or None
        Formats of keys and values, with the schemas at the time when the options were parsed.
    redaction : Redaction or None
        Fields that are removed from records before they are typed. Spark applies filters to the redacted records.
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
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 0
    high_watermark: str = "auto"
    cut: CutTime | None = None
    typed: ResolvedTypes | None = None
    redaction: Redaction | None = field(default=None, repr=False)  # has a key

    def found(self) -> Discovery:
        """List the files of the selected partitions now."""
        wants = None if self.selection.is_all else self.selection.wants
        others = [one for one in (self.remote_tier, self.identity) if one is not None]
        return discover([*self.paths, *others], self.storage_options, wants)

    @property
    def shown_paths(self) -> list[str]:
        """The paths without passwords."""
        tier = [] if self.remote_tier is None else [str(self.remote_tier.path)]
        return [*map(shown_uri, self.paths), *tier]

    def log(self) -> Log:
        """List and open the log files now."""
        log = Log(self.selection.of(self.found()), catalog_of(self.definitions))
        cut = log.found.cut if self.cut is None else self.cut
        return log if cut is None else log.cut_at(cut)

    @property
    def schema(self) -> pa.Schema:
        """The columns of every record batch."""
        if self.typed is not None:
            names = zip(self.record_schema, spark_names(self.columns), strict=True)
            return pa.schema([field.with_name(name) for field, name in names])
        return spark_schema(self.table, self.columns, self.definitions)

    @property
    def record_schema(self) -> pa.Schema:
        """The columns of records, under the library's names."""
        names = library_columns(self.columns)
        if self.typed is None:
            return RECORDS.select(names)
        return self.typed.records(names, strict=self.options.strict).schema

    @property
    def definition(self) -> Table:
        """The table's definition."""
        return table_named(self.table, catalog_of(self.definitions))

    def with_columns(self, columns: tuple[str, ...]) -> Request:
        """Return the same request for other columns."""
        return replace(self, columns=columns)
