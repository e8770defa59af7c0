"""``RecordTables``: the records of log files, and what a check of them finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.read.records import Progress
from kraftlog.stream import Stream
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log_files import LogFiles
from kraftlog.tables.options import ErrorOptions, RecordOptions
from kraftlog.tables.user_options import read_options
from kraftlog.topics import names
from kraftlog.types import IsolationLevel

if TYPE_CHECKING:
    from pathlib import Path

    from pyarrow.compute import Expression

    from kraftlog.tables.redaction import Redaction
    from kraftlog.tables.search import Texts
    from kraftlog.tables.space import Housekeeping
    from kraftlog.values.schema_store import SchemaStore


class RecordTables(LogFiles):
    """The records of log files, and what a check of them finds."""

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
        heal: bool = True,
        workers: int = 1,
        batch_rows: int = ReadOptions.batch_rows,
        batch_bytes: int = ReadOptions.batch_bytes,
        max_decompressed_bytes: int = ReadOptions.max_decompressed_bytes,
        filter: Expression | None = None,
        transaction: tuple[int, int] | None = None,
        committed_only: bool = False,
        value_format: str | None = None,
        key_format: str | None = None,
        value_schema: str | None = None,
        key_schema: str | None = None,
        value_framing: str | None = None,
        key_framing: str | None = None,
        schemas: SchemaStore | str | Path | None = None,
        redact: Iterable[str] = (),
        redact_key: bytes | None = None,
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
        heal : bool
            Of a partition with several replicas: whether what the one that is read lacks, or has damaged, is read from
            others that agree with it; ``notes`` says what that is. Without it, damage is in ``errors``.
        workers : int
            Threads; rows and their order do not depend on it.
        batch_rows, batch_bytes : int
            Size at which a record batch is handed out: rows, or bytes of log.
        max_decompressed_bytes : int
            Most bytes that one batch may take after decompression.
        filter : pyarrow.compute.Expression, optional
            Only rows for which it is true; it may name columns that are not returned, and fields of typed values.
            Partitions, offsets and times that it rules out are not read.
        transaction : (int, int), optional
            Only records of the transaction with this producer id and epoch, as the table ``transactions`` shows them:
            of all its partitions, also where it is open or aborted.
        committed_only : bool
            End each partition at the high watermark that its files prove (``high_watermark_at_least`` of
            ``partition_offsets``); ``notes`` says where that is, and what proves it.
        value_format, key_format : str, optional
            What values and keys are: avro, protobuf, json, string, long, integer, short, double, float, uuid, hex,
            base64, bytes. One that does not fit is null, and ``value_error`` or ``key_error`` says why; ``errors`` has
            a row for each partition of them.
        value_schema, key_schema : str, optional
            The schema that all of them are read by: an id, a subject, or a subject and a version with a colon between
            them. By default the newest of the topic's subject, such as ``orders-value``.
        value_framing, key_framing : {"confluent", "apicurio", "none"}, optional
            What stands before a value that was written by a schema: a byte 0 and an id of four or of eight bytes, or
            nothing. The first one is the default. A header that names a schema counts before it.
        schemas : path or SchemaStore, optional
            A folder of schemas; by default they come from the topic ``_schemas`` in the same log directory.
        redact : iterable of str
            What is taken out of records: ``key``, ``value``, ``header.NAME`` or a JSON path such as
            ``value.customer.email``, with ``=null``, ``=hash`` or ``=mask`` behind it. It is done before values are
            typed: a number of JSON that is hashed or masked does not fit then. ``filter`` is on what was there; with
            formats, on what is left.
        redact_key : bytes, optional
            Of the HMAC that ``hash`` stands for, 16 bytes or more.

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
        options = read_options(
            start_offset=start_offset,
            end_offset=end_offset,
            start_timestamp=start_timestamp,
            end_timestamp=end_timestamp,
            isolation_level=isolation_level,
            include_control=include_control,
            include_deleted=include_deleted,
            salvage=salvage,
            strict=strict,
            check_crc=check_crc,
            heal=heal,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        typed = None
        given = (value_format, key_format, value_schema, key_schema, value_framing, key_framing)
        if any(one is not None for one in (*given, schemas)):
            from kraftlog.values.typed_options import TypedOptions

            typed = TypedOptions.of(*given, schemas=schemas)
        redaction = _redaction(redact, redact_key)
        return self.scan(
            "records",
            columns,
            options,
            workers=workers,
            filter=filter,
            typed=typed,
            redaction=redaction,
            transaction=transaction,
            committed_only=committed_only,
        )

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
        redact: Iterable[str] = (),
        redact_key: bytes | None = None,
        strict: bool = False,
        workers: int = 1,
        **options: Unpack[RecordOptions],
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
        redact, redact_key
            As ``records`` has them. The search is in what was there, and what is found is redacted.
        strict : bool
            Raise at the first fault instead of noting it in ``errors``.
        workers : int
        **options
            As ``records`` has them: offsets, timestamps, ``isolation_level``, and others.

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
        how: dict[str, Any] = {"search": search, "redaction": _redaction(redact, redact_key)}
        return self._stream("records", columns, {**options, "strict": strict}, workers=workers, **how)

    def errors(
        self, columns: Sequence[str] | None = None, *, workers: int = 1, **options: Unpack[ErrorOptions]
    ) -> pa.Table:
        """Read and check everything, and return what cannot be read, and files that were left alone."""
        return self._stream("errors", columns, options, workers=workers).to_table()

    def verify(
        self,
        options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
        on_progress: Progress | None = None,
        notes: list[str] | None = None,
    ) -> Iterator[Fault]:
        """Check batches, records, offsets, index files and transactions; returns what does not hold as it is found.

        Transactions that are torn, over all their partitions, come last.

        Parameters
        ----------
        options : ReadOptions
        on_progress : callable, optional
            Is called with the bytes of log that were read since the last call.
        notes : list of str, optional
            Receives where a torn tail is, which is no fault.
        """
        from kraftlog.check.partitions import check_segments
        from kraftlog.tables.transactions import TransactionCheck

        yield from self.unreadable()
        yield from self.not_needed()
        notes = [] if notes is None else notes
        try:
            transactions = TransactionCheck(self.lines.found.segments, self.found)
        except ValueError as error:  # each replica is checked by itself; which cluster transactions are of is not known
            transactions = TransactionCheck([], Discovery())
            notes.append(f"transactions are not compared across partitions: {error}")
        yield from check_segments(
            self.found.segments, options, on_progress=on_progress, notes=notes, observe=transactions.observe
        )
        if not (options.bounds_offsets or options.bounds_timestamps):
            yield from transactions.torn()

    def stats(
        self,
        faults: list[Fault],
        *,
        by_producer: bool = False,
        decompress: bool = False,
        heal: bool = True,
        on_progress: Progress | None = None,
    ) -> pa.Table:
        """Add up batches, records and bytes; see ``kraftlog.tables.stats.collect``.

        ``heal`` is as ``records`` has it.
        """
        from kraftlog.tables.stats import collect

        files = self.line_files(heal=heal)
        return collect(files.segments, faults, by_producer=by_producer, decompress=decompress, on_progress=on_progress)

    def space(
        self,
        faults: list[Fault],
        housekeeping: Housekeeping | None = None,
        *,
        heal: bool = True,
        on_progress: Progress | None = None,
    ) -> pa.Table:
        """Add up bytes by what they are; see ``kraftlog.tables.space.space``; ``heal`` is as ``records`` has it.

        Examples
        --------
        >>> import kraftlog
        >>> faults = []
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.space(faults).select(["partition", "size_in_bytes", "value_bytes"]).slice(0, 1).to_pylist()
        [{'partition': 0, 'size_in_bytes': 56058, 'value_bytes': 49330}]
        """
        from kraftlog.tables.space import space

        return space(self.line_files(heal=heal).segments, faults, housekeeping, on_progress=on_progress)

    def key_stats(
        self, faults: list[Fault], *, most_bytes: int | None = None, **options: Unpack[RecordOptions]
    ) -> pa.Table:
        """Count keys, tombstones and duplicates of each partition.

        Parameters
        ----------
        faults : list of Fault
            Receives what could not be read.
        most_bytes : int, optional
            Of keys that are kept of a partition, by default 512 MiB; of more keys there are estimates, by the sketches
            of datasketches, and ``is_estimate`` says so.
        **options
            As ``records`` has them.
        """
        from kraftlog.tables.key_counts import MOST_BYTES, count_keys, key_stats

        read = TABLES["records"].read_options(options)
        return key_stats(
            count_keys(self.healed(self.lines.found, read, []), read, faults, [], most_bytes=most_bytes or MOST_BYTES)
        )

    def top_keys(
        self, count: int, faults: list[Fault], *, most_bytes: int | None = None, **options: Unpack[RecordOptions]
    ) -> pa.Table:
        """Return the keys with the most records; parameters as of ``key_stats``.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/codecs/log", topics=["codec-lz4"])
        >>> log.top_keys(2, []).select(["key", "records"]).to_pylist()
        [{'key': b'', 'records': 51}, {'key': b'key-386', 'records': 5}]
        """
        from kraftlog.tables.key_counts import MOST_BYTES, count_keys, top_keys

        read = TABLES["records"].read_options(options)
        return top_keys(
            count_keys(self.healed(self.lines.found, read, []), read, faults, [], most_bytes=most_bytes or MOST_BYTES),
            count,
        )

    def writes(self, unit: str, faults: list[Fault], **options: Unpack[RecordOptions]) -> pa.Table:
        """Count records by their timestamps in each minute, hour or day; see ``kraftlog.tables.writes.writes``."""
        from kraftlog.tables.writes import writes

        read = TABLES["records"].read_options(options)
        return writes(self.healed(self.lines.found, read, []), unit, read, faults, [])


def _redaction(rules: Iterable[str], key: bytes | None) -> Redaction | None:
    if not (texts := names(rules)) and key is None:
        return None
    from kraftlog.tables.redaction import Redaction

    return Redaction.of(texts or (), key)
