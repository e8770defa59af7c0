"""``Log``: files of one or many partitions as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.read.partitions import is_metadata
from kraftlog.read.ranges import Range
from kraftlog.read.records import Progress
from kraftlog.stream import Stream
from kraftlog.tables.partition import Partition, as_html, as_text, partitions_of, summary
from kraftlog.tables.table_rows import (
    Pass,
    check_type,
    left_alone,
    note_unreadable,
    record_ranges,
    table_rows,
    table_schema,
    unreadable,
)
from kraftlog.tables.user_options import read_options, read_until
from kraftlog.types import IsolationLevel

if TYPE_CHECKING:
    from pyarrow.compute import Expression

    from kraftlog.metadata.diff.change_filter import ChangeFilter
    from kraftlog.metadata_log.image_at import ImageAt
    from kraftlog.tables.search import Search, Texts
    from kraftlog.tables.space import Housekeeping


class Log:
    """Log files that ``open`` found. Reading never writes to them, locks them or creates files beside them."""

    def __init__(self, found: Discovery, catalog: Catalog = BUILT_IN) -> None:
        self.found = found
        self.catalog = catalog

    @classmethod
    def of_segment(cls, segment: Segment) -> Log:
        """Return a log of one segment."""
        return cls(Discovery(segments=[segment]))

    def of_files(self, found: Discovery) -> Log:
        """Return a log of some of the files, which reads messages as this one does."""
        return Log(found, self.catalog)

    def scan(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
        *,
        workers: int = 1,
        range_bytes: int | None = None,
        on_progress: Progress | None = None,
        where: ChangeFilter | None = None,
        filter: Expression | None = None,
        search: Search | None = None,
    ) -> Stream:
        """Stream a table by its name; the methods named like tables are short forms of this.

        Parameters
        ----------
        table : str
            One of ``kraftlog.schema.TABLES``, or a type of message such as ``PartitionRecord``.
        columns : sequence of str, optional
            Only these are read; by default those that the table shows.
        options : ReadOptions
        workers : int
            Threads that decode records; rows and their order do not depend on it.
        range_bytes : int, optional
            Bytes of log that one worker takes at once.
        on_progress : callable, optional
            Is called with the bytes of log that were read since the last call.
        where : ChangeFilter, optional
            Which rows of ``metadata_changes`` are wanted.
        filter : pyarrow.compute.Expression, optional
            Only rows for which it is true. Of records and messages, partitions, offsets and times that it rules out are
            not read.
        search : Search, optional
            Only records that it finds; of the table records alone, and without a filter.
        """
        if workers < 1:
            raise ValueError(f"workers {workers} is less than 1")
        if search is not None and (table != "records" or filter is not None):
            raise ValueError(
                f"a search is of the table records, without a filter; found table {table}, filter {filter}"
            )
        definition = table_schema(table, self.catalog)
        arrow_schema = definition.select(columns)
        filtered = None
        if filter is not None:
            from kraftlog.tables.filtered import Filtered

            filtered = Filtered(filter, definition, arrow_schema.names)

        def produce(faults: list[Fault]) -> Iterator[pa.RecordBatch]:
            def read(found: Discovery, wanted: pa.Schema, bounds: ReadOptions) -> Iterator[pa.RecordBatch]:
                how = Pass(bounds, faults, stream.notes, workers, range_bytes, on_progress, where)
                return table_rows(found, self.catalog, table, wanted, how)

            if search is not None:
                return search.rows(self.found, options, arrow_schema, read)
            if filtered is None:
                return read(self.found, arrow_schema, options)
            return filtered.rows(self.found, options, read)

        stream = Stream(arrow_schema, produce)
        return stream

    def ranges(
        self,
        options: ReadOptions,
        range_bytes: int | None,
        columns: Sequence[str],
        faults: list[Fault],
        notes: list[str],
    ) -> Iterator[Range]:
        """Return the byte ranges that hold what the options ask for; each starts at a batch boundary."""
        return record_ranges(self.found, options, range_bytes, columns, faults, notes)

    def segments(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row for each segment."""
        return self.scan("segments", columns).to_table()

    def batches(self, columns: Sequence[str] | None = None, *, check_crc: bool = False, **bounds: object) -> pa.Table:
        """Return a row for each record batch, from its header alone; ``check_crc`` reads the batches as well."""
        return self.scan("batches", columns, read_options(check_crc=check_crc, **bounds)).to_table()  # type: ignore[arg-type]

    def messages(self, columns: Sequence[str] | None = None, *, type: str | None = None, **bounds: object) -> Stream:
        """Stream the records of internal topics and of the metadata log, typed.

        Parameters
        ----------
        columns : sequence of str, optional
        type : str, optional
            Only records of this type, their fields as columns: ``PartitionRecord``, ``OffsetCommit``. Without it keys
            and values are JSON text with Kafka's field names.
        **bounds
            As ``records`` has them; and ``show_secrets``, which is True by default: whether salt and keys of SCRAM
            credentials, and passwords in configs, are shown.

        Returns
        -------
        Stream
            A record that cannot be read is a row with an ``error``.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/metadata/log")
        >>> log.messages(["offset", "name"], type="TopicRecord").to_table().slice(0, 2).to_pylist()
        [{'offset': 11, 'name': 'meta-0'}, {'offset': 16, 'name': 'meta-1'}]
        """
        table = "messages" if type is None else check_type(type, self.catalog)
        return self.scan(table, columns, read_options(**bounds))  # type: ignore[arg-type]

    def image(self, offset: int | None = None, *, strict: bool = True, cache: bool = True) -> ImageAt:
        """Return the metadata image at an offset, from the metadata log among the files.

        Parameters
        ----------
        offset : int, optional
            The last one whose record counts; by default the end of the log.
        strict : bool
            Raise when the image may lack something. With False it is what can be read, transactions whole or left out,
            and ``faults`` says what is missing.
        cache : bool
            Keep the image of a log of more than a million records below ``$XDG_CACHE_HOME/kraftlog``, and start from
            such an image where the log still has the batch that it ends with.

        Returns
        -------
        ImageAt
            ``image.tables()`` has the records that a snapshot would hold, as Arrow tables.

        Raises
        ------
        RecordError
            With ``strict``, when a record cannot be read, or changes what is not there.
        ValueError
            When there is no metadata log, or more than one.

        Examples
        --------
        >>> import kraftlog
        >>> at = kraftlog.open("tests/golden/metadata/log").image(85)
        >>> at.offset, at.epoch, at.image.tables()["TopicRecord"].num_rows
        (85, 1, 13)
        """
        from kraftlog.metadata_log.files import MetadataLog
        from kraftlog.metadata_log.image import image_at
        from kraftlog.metadata_log.image_cache import ImageCache

        faults: list[Fault] = []
        log = MetadataLog([one for one in self.found.segments if is_metadata(one)])
        found = image_at(log, offset, faults, cache=ImageCache() if cache else None)
        if faults and strict:
            raise error_from_fault(faults[0])
        return replace(found, faults=tuple(faults))

    def transactions(self, columns: Sequence[str] | None = None, **bounds: object) -> pa.Table:
        """Return producers' transactions, from batch headers: ended ones by their markers, then open ones."""
        return self.scan("transactions", columns, read_options(**bounds)).to_table()  # type: ignore[arg-type]

    def metadata_transactions(self, columns: Sequence[str] | None = None, **bounds: object) -> pa.Table:
        """Return the transactions of the metadata log (KIP-868)."""
        return self.scan("metadata_transactions", columns, read_options(**bounds)).to_table()  # type: ignore[arg-type]

    def metadata_changes(
        self,
        columns: Sequence[str] | None = None,
        *,
        kinds: Sequence[str] | None = None,
        topics: Sequence[str] | None = None,
        brokers: Sequence[int] | None = None,
        include_image: bool = False,
        **bounds: object,
    ) -> Stream:
        """Stream what the visible records of the metadata log change, in bounded memory.

        Parameters
        ----------
        columns : sequence of str, optional
            ``topic``, ``partition`` and ``brokers`` say what a row concerns.
        kinds : sequence of str, optional
            Only changes of these: ``topic``, ``partition``, ``broker``, ``config``, ``client_quota``, ``acl`` ...
        topics : sequence of str, optional
            Only changes of these topics, of their partitions and configs.
        brokers : sequence of int, optional
            Only changes of these brokers and their configs, and of fields of partitions in which they come or go:
            the old and the new leader, who leaves the ISR.
        include_image : bool
            Whether the image from which changes start comes first, each of its records as ``added`` at the offset that
            it stands for. That image is the one at the offset before ``start_offset``, or of the snapshot with which
            the log begins.
        **bounds
            As ``records`` has them, of the offset at which a change becomes visible, and of the timestamp of that
            record's batch; ``show_secrets``, which is True by default; and ``strict``.

        Returns
        -------
        Stream
            A row for each field that changed, ``before`` and ``after`` as text; one for each record that was ``added``
            or ``removed``, as JSON, or of a config or quota its value. Changes of a transaction come at the offset of
            its End, those of an aborted one never. Several changes of a field at one offset are one.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/metadata/log")
        >>> changes = log.metadata_changes(["offset", "key", "field", "before", "after"], topics=["meta-1"])
        >>> changes.to_table().slice(10, 1).to_pylist()
        [{'offset': 94, 'key': 'meta-1-0', 'field': 'leader', 'before': '1', 'after': '-1'}]
        """
        where = None
        if kinds is not None or topics is not None or brokers is not None:
            from kraftlog.metadata.diff.change_filter import ChangeFilter

            where = ChangeFilter(kinds, topics, brokers)
        options = read_options(include_image=include_image, **bounds)  # type: ignore[arg-type]
        return self.scan("metadata_changes", columns, options, where=where)

    def producers(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the state of each producer in each partition, as a broker would rebuild it from the log."""
        return self.scan("producers", columns).to_table()

    def hanging_transactions(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return open transactions that no coordinator will end; ``__transaction_state`` must be among the files."""
        return self.scan("hanging_transactions", columns).to_table()

    def offsets(self, columns: Sequence[str] | None = None, *, at: int | None = None) -> pa.Table:
        """Return the offsets that groups have committed, and those that open transactions would.

        Parameters
        ----------
        columns : sequence of str, optional
        at : int, optional
            The last offset that counts, in each partition of ``__consumer_offsets``.
        """
        return self.scan("offsets", columns, read_until(at)).to_table()

    def groups(self, columns: Sequence[str] | None = None, *, at: int | None = None) -> pa.Table:
        """Return the groups and their members as ``__consumer_offsets`` has them; ``at`` as in ``offsets``."""
        return self.scan("groups", columns, read_until(at)).to_table()

    def transactional_ids(self, columns: Sequence[str] | None = None, *, at: int | None = None) -> pa.Table:
        """Return the transactional ids as ``__transaction_state`` has them; ``at`` as in ``offsets``."""
        return self.scan("transactional_ids", columns, read_until(at)).to_table()

    def last_stable_offsets(self) -> pa.Table:
        """Return topic, partition and last_stable_offset: where a read_committed consumer stops.

        It is what the log alone says: the first offset of the earliest open transaction, or the offset behind the last
        record. A broker's own is never behind its high watermark, which the log does not hold.
        """
        from kraftlog.tables.partition_offsets import last_stable_offsets

        return last_stable_offsets(self.found.segments)

    def partition_offsets(
        self,
        time: datetime | int | Literal["earliest", "latest", "max-timestamp"] = "latest",
        columns: Sequence[str] | None = None,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        strict: bool = False,
        on_progress: Progress | None = None,
    ) -> Stream:
        """Stream the offset of each partition at a time, as a broker answers ListOffsets.

        Parameters
        ----------
        time : {"earliest", "latest", "max-timestamp"}, datetime or int
            ``earliest`` is the log start offset, ``latest`` the log end offset, or with ``read_committed`` the last
            stable offset; ``max-timestamp`` the first record with the largest timestamp. A time, or milliseconds since
            the epoch, mean the first record with that timestamp or a later one.
        columns : sequence of str, optional
            ``log_start_offset``, ``last_stable_offset`` and ``log_end_offset`` on request.
        isolation_level : {"read_uncommitted", "read_committed"}
        strict : bool
        on_progress : callable, optional

        Returns
        -------
        Stream
            A row for each partition; ``offset`` is null where there is no such record, or where it cannot be read.
            The end is that of the files: a broker that runs may not have given it to consumers yet.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.partition_offsets().to_table()["offset"].to_pylist()
        [130, 69, 38]
        """
        from kraftlog.tables.partition_offsets import checked_time, partition_offset_rows

        at = checked_time(time)
        options = ReadOptions(isolation_level=isolation_level, strict=strict)
        arrow_schema = schema.PARTITION_OFFSETS.select(columns)

        def produce(faults: list[Fault]) -> Iterator[pa.RecordBatch]:
            note_unreadable(self.found, faults, strict=strict)
            return partition_offset_rows(self.found.segments, at, arrow_schema, options, faults, on_progress)

        return Stream(arrow_schema, produce)

    def lag(
        self,
        columns: Sequence[str] | None = None,
        *,
        groups: Sequence[str] | None = None,
        topics: Sequence[str] | None = None,
        strict: bool = False,
        on_progress: Progress | None = None,
    ) -> Stream:
        """Stream what groups have committed against the ends of the logs, as kafka-consumer-groups describes it.

        Parameters
        ----------
        columns : sequence of str, optional
            ``log_start_offset`` on request.
        groups, topics : sequence of str, optional
            Only these.
        strict : bool
        on_progress : callable, optional

        Returns
        -------
        Stream
            A row for each group and partition with a committed offset. ``lag`` is what lies between it and the end of
            the log, ``read_committed_lag`` between it and the last stable offset; both are null where ``reason`` says
            why. Offsets that wait for the end of a transaction are not committed.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/groups/log")
        >>> log.lag(["topic", "current_offset", "lag", "reason"], groups=["grp-migrated"]).to_table().to_pylist()
        [{'topic': 'grp-b', 'current_offset': 1, 'lag': None, 'reason': 'no log of grp-b-0 among the files'}]
        """
        from kraftlog.tables.lag import Wanted, lag_rows

        arrow_schema, options = schema.LAG.select(columns), ReadOptions(strict=strict)
        wanted = Wanted(None if groups is None else frozenset(groups), None if topics is None else frozenset(topics))

        def produce(faults: list[Fault]) -> Iterator[pa.RecordBatch]:
            note_unreadable(self.found, faults, strict=strict)
            return lag_rows(self.found.segments, wanted, arrow_schema, options, faults, on_progress)

        return Stream(arrow_schema, produce)

    def index_entries(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the entries of the index files."""
        return self.scan("index_entries", columns).to_table()

    def errors(self, *, workers: int = 1) -> pa.Table:
        """Read and check everything, and return what cannot be read, and files that were left alone."""
        return self.scan("errors", workers=workers).to_table()

    def records(
        self,
        columns: Sequence[str] | None = None,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: datetime | str | int | None = None,
        end_timestamp: datetime | str | int | None = None,
        include_control: bool = False,
        include_deleted: bool = False,
        salvage: bool = False,
        strict: bool = False,
        check_crc: bool = True,
        workers: int = 1,
        batch_rows: int = ReadOptions.batch_rows,
        batch_bytes: int = ReadOptions.batch_bytes,
        max_decompressed_bytes: int = ReadOptions.max_decompressed_bytes,
        filter: Expression | None = None,
    ) -> Stream:
        """Stream the records.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns of the ``records`` table; only these are decoded. ``transaction_state`` is committed, aborted,
            open, or unknown where offsets of a metadata log are missing; null outside of transactions. ``visible_at``
            is the offset whose record made this one visible to read_committed readers, null for one that never was.
        isolation_level : {"read_uncommitted", "read_committed"}
            ``read_committed`` leaves out what a consumer of that level would not see: records of aborted transactions,
            and all from the last stable offset on; of a metadata log, all but records outside of transactions and in
            committed ones.
        start_offset, end_offset : int, optional
            Offsets in [start_offset, end_offset), in every partition.
        start_timestamp, end_timestamp : datetime, str or int, optional
            Timestamps in [start_timestamp, end_timestamp). Text is ISO 8601, UTC where it names no zone; integers are
            milliseconds since the epoch.
        include_control : bool
            Whether records of control batches are shown.
        include_deleted : bool
            Whether records before the log start offset are shown, which ``log-start-offset-checkpoint`` of the log
            directory names. A consumer does not see them; ``notes`` of the stream says how many there are.
        salvage : bool
            Whether batches are searched for, by magic and checksum, where damage leaves no header to go on with. What
            is found may be a batch that a producer stored as a value: the column ``salvaged`` marks these records,
            ``notes`` says how many there are, and ``read_committed`` never has them.
        strict : bool
            Raise at the first fault instead of noting it in ``errors``.
        check_crc : bool
            Whether the checksum of each batch is compared.
        workers : int
            Threads; rows and their order do not depend on it.
        batch_rows, batch_bytes : int
            Size at which a record batch is handed out: rows, or bytes of log.
        max_decompressed_bytes : int
            Most bytes that one batch may take after decompression.
        filter : pyarrow.compute.Expression, optional
            Only rows for which it is true; it may name columns that are not returned. Partitions, offsets and times
            that it rules out are not read.

        Returns
        -------
        Stream
            Rows in the order of topic, partition and position. Record batches own their memory.

        Raises
        ------
        RecordError
            While rows are read, with ``strict``; the message names file, byte and record.
        ValueError
            When ``filter`` names a column that there is not, or compares what cannot be compared.

        Examples
        --------
        >>> import kraftlog, pyarrow.compute as pc
        >>> log = kraftlog.open("tests/golden/transactions/log")
        >>> wanted = (pc.field("topic") == "orders") & (pc.field("offset") < 2)
        >>> log.records(["partition", "offset"], filter=wanted).to_table().num_rows
        6
        """
        bounds = read_options(
            start_offset=start_offset,
            end_offset=end_offset,
            start_timestamp=start_timestamp,
            end_timestamp=end_timestamp,
        )
        options = replace(
            bounds,
            isolation_level=isolation_level,
            include_control=include_control,
            include_deleted=include_deleted,
            salvage=salvage,
            strict=strict,
            check_crc=check_crc,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        return self.scan("records", columns, options, workers=workers, filter=filter)

    def grep(
        self,
        columns: Sequence[str] | None = None,
        *,
        key: Texts = (),
        value: Texts = (),
        header: Texts = (),
        json_path: str | Sequence[str] = (),
        key_equals: Texts = (),
        regex: bool = False,
        ignore_case: bool = False,
        invert: bool = False,
        key_partitions: int | None = None,
        workers: int = 1,
        **bounds: object,
    ) -> Stream:
        """Stream the records that hold a text.

        Batches are searched as bytes; only those that hold the texts are decoded. What is damaged is reported as
        ``records`` does, but for records of a batch whose checksum matches and that does not hold the texts.

        Parameters
        ----------
        columns : sequence of str, optional
            Of the table ``records``.
        key, value, header : str, bytes or sequence of these
            Texts in the key, in the value, or in the value of a header; ``NAME=TEXT`` in that of headers of a name.
            Of each that is given, one must be found.
        json_path : str or sequence of str
            ``PATH=TEXT``: the value is a JSON document in which a text, number, true, false or null at the path is
            equal to it; ``PATH`` alone: it has something there.
        key_equals : str, bytes or sequence of these
            Whole keys.
        regex : bool
            Texts are regular expressions of RE2, over bytes.
        ignore_case : bool
            Of the letters of ASCII.
        invert : bool
            Records that do not match; all batches are decoded then.
        key_partitions : int, optional
            How many partitions the topic has, if its producers choose them by Kafka's murmur2 of the key, as Java's and
            librdkafka's murmur2_random do: only those of ``key_equals`` are read.
        workers : int
        **bounds
            As ``records`` has them: offsets, timestamps, ``isolation_level``, ``strict``, and others.

        Returns
        -------
        Stream

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.grep(["partition", "offset", "key"], value="lamb", key="-1", regex=True).to_table().num_rows
        44
        """
        from kraftlog.tables.search import Search

        search = Search(
            key=key,
            value=value,
            header=header,
            json_path=json_path,
            key_equals=key_equals,
            regex=regex,
            ignore_case=ignore_case,
            invert=invert,
            key_partitions=key_partitions,
        )
        return self.scan("records", columns, read_options(**bounds), workers=workers, search=search)  # type: ignore[arg-type]

    @property
    def topics(self) -> list[str]:
        """The names of the topics, sorted.

        Examples
        --------
        >>> import kraftlog
        >>> kraftlog.open("tests/golden/transactions/log").topics
        ['__consumer_offsets', '__transaction_state', 'orders']
        """
        return sorted({segment.topic for segment in self.found.segments if segment.topic is not None})

    @property
    def partitions(self) -> list[Partition]:
        """The partitions, by topic and number: their segments, sizes, and first and last offsets.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> [(each.topic, each.partition, each.start_offset, each.end_offset) for each in log.partitions]
        [('orders', 0, 0, 130), ('orders', 1, 0, 69), ('orders', 2, 0, 38)]
        """
        return partitions_of(self.found.segments)

    def __repr__(self) -> str:
        partitions = self.partitions
        return f"<kraftlog.Log: {summary(partitions)}>\n{as_text(partitions)}"

    def _repr_html_(self) -> str:
        partitions = self.partitions
        return f"<p>kraftlog.Log: {summary(partitions)}</p>{as_html(partitions)}"

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all log files, as they were listed."""
        return sum(segment.size for segment in self.found.segments)

    @property
    def folders(self) -> set[LogPath]:
        """The folders that segments were found in."""
        return {segment.path.parent for segment in [*self.found.segments, *self.found.set_aside]}

    @property
    def segments_count(self) -> int:
        """How many live segments were found."""
        return len(self.found.segments)

    def verify(
        self,
        options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
        on_progress: Progress | None = None,
        notes: list[str] | None = None,
    ) -> Iterator[Fault]:
        """Check batches, records, offsets, index files and transactions; returns what does not hold as it is found.

        Parameters
        ----------
        options : ReadOptions
        on_progress : callable, optional
            Is called with the bytes of log that were read since the last call.
        notes : list of str, optional
            Receives where a torn tail is, which is no fault.
        """
        from kraftlog.check.partitions import check_segments

        yield from self.unreadable()
        yield from check_segments(self.found.segments, options, on_progress=on_progress, notes=notes)

    def stats(
        self,
        faults: list[Fault],
        *,
        by_producer: bool = False,
        decompress: bool = False,
        on_progress: Progress | None = None,
    ) -> pa.Table:
        """Add up batches, records and bytes; see ``kraftlog.tables.stats.collect``."""
        from kraftlog.tables.stats import collect

        return collect(
            self.found.segments, faults, by_producer=by_producer, decompress=decompress, on_progress=on_progress
        )

    def space(
        self,
        faults: list[Fault],
        housekeeping: Housekeeping | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> pa.Table:
        """Add up bytes by what they are; see ``kraftlog.tables.space.space``.

        Examples
        --------
        >>> import kraftlog
        >>> faults = []
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.space(faults).select(["partition", "size_in_bytes", "value_bytes"]).slice(0, 1).to_pylist()
        [{'partition': 0, 'size_in_bytes': 56058, 'value_bytes': 49330}]
        """
        from kraftlog.tables.space import space

        return space(self.found.segments, faults, housekeeping, on_progress=on_progress)

    def key_stats(self, faults: list[Fault], *, most_bytes: int | None = None, **bounds: object) -> pa.Table:
        """Count keys, tombstones and duplicates of each partition.

        Parameters
        ----------
        faults : list of Fault
            Receives what could not be read.
        most_bytes : int, optional
            Of keys that are kept of a partition, by default 512 MiB; of more keys there are estimates, by the sketches
            of datasketches, and ``is_estimate`` says so.
        **bounds
            As ``records`` has them.
        """
        from kraftlog.tables.key_counts import MOST_BYTES, count_keys, key_stats

        options = read_options(**bounds)  # type: ignore[arg-type]
        return key_stats(count_keys(self.found, options, faults, [], most_bytes=most_bytes or MOST_BYTES))

    def top_keys(self, count: int, faults: list[Fault], *, most_bytes: int | None = None, **bounds: object) -> pa.Table:
        """Return the keys with the most records; parameters as of ``key_stats``.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/codecs/log", topics=["codec-lz4"])
        >>> log.top_keys(2, []).select(["key", "records"]).to_pylist()
        [{'key': b'', 'records': 51}, {'key': b'key-386', 'records': 5}]
        """
        from kraftlog.tables.key_counts import MOST_BYTES, count_keys, top_keys

        options = read_options(**bounds)  # type: ignore[arg-type]
        return top_keys(count_keys(self.found, options, faults, [], most_bytes=most_bytes or MOST_BYTES), count)

    def writes(self, unit: str, faults: list[Fault], **bounds: object) -> pa.Table:
        """Count records by their timestamps in each minute, hour or day; see ``kraftlog.tables.writes.writes``."""
        from kraftlog.tables.writes import writes

        return writes(self.found, unit, read_options(**bounds), faults, [])  # type: ignore[arg-type]

    def unreadable(self) -> list[Fault]:
        """Return the folders that could not be listed."""
        return unreadable(self.found)

    def left_alone(self) -> list[Fault]:
        """Return the files and folders that are not read, as rows of the ``errors`` table with error ``not_read``."""
        return left_alone(self.found)
