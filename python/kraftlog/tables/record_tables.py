"""``RecordTables``: the records of log files, and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.stream import Stream
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log_files import LogFiles
from kraftlog.tables.options import CountOptions, ErrorOptions, RecordOptions
from kraftlog.tables.user_options import read_options
from kraftlog.topics import names
from kraftlog.types import IsolationLevel

if TYPE_CHECKING:
    from pathlib import Path

    from pyarrow.compute import Expression

    from kraftlog.tables.redaction import Redaction
    from kraftlog.tables.search import Texts
    from kraftlog.tables.space import Housekeeping
    from kraftlog.values.first_values import Sample
    from kraftlog.values.schema_store import SchemaStore


class RecordTables(LogFiles):
    """The records of log files, and their checks."""

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
        json_sample: Sample | None = None,
        schemas: SchemaStore | str | Path | None = None,
        redact: Iterable[str] = (),
        redact_key: bytes | None = None,
    ) -> Stream:
        """Stream the records.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns of the ``records`` table; only these are decoded. ``transaction_state`` is committed, aborted, open,
            or unknown if offsets of a metadata log are missing; it is null outside transactions. ``visible_at`` is the
            offset of the record that made this one visible to read_committed readers, or null if none did.
        isolation_level : {"read_uncommitted", "read_committed"}
            ``read_committed`` leaves out records that a consumer of that level would not see: records of aborted
            transactions, and records from the last stable offset on; for a metadata log, records of transactions that
            are not committed.
        start_offset, end_offset : int, optional
            Offsets in [start_offset, end_offset), in each partition.
        start_timestamp, end_timestamp : datetime, str or int, optional
            Timestamps in [start_timestamp, end_timestamp). Text is ISO 8601, or a time such as ``-1h`` or ``yesterday
            14:00``, UTC where it names no zone; integers are milliseconds since the epoch.
        include_control : bool
            Whether to include records of control batches.
        include_deleted : bool
            Whether to include records before the log start offset in ``log-start-offset-checkpoint`` of the log
            directory. Consumers do not see them; ``notes`` of the stream gives their number.
        salvage : bool
            Whether to search for batches, by magic and checksum, after damage that leaves no header at which to
            continue. A batch found in this way may be part of a producer's value. The column ``salvaged`` marks its
            records, ``notes`` gives their number, and ``read_committed`` never returns them.
        strict : bool
            Raise at the first fault instead of adding it to ``errors``.
        check_crc : bool
            Whether to verify the checksum of each batch; ``read_committed`` always does.
        heal : bool
            Whether to read missing or damaged offsets of a partition from other replicas that agree with the chosen
            one; ``notes`` lists these offsets. If False, damage is in ``errors``.
        workers : int
            Number of threads; rows and their order do not depend on it.
        batch_rows, batch_bytes : int
            Size of a record batch: rows, or bytes of log.
        max_decompressed_bytes : int
            Maximum size of a batch after decompression, in bytes.
        filter : pyarrow.compute.Expression, optional
            Only rows for which it is true. It may use columns that are not returned, and fields of decoded values.
            Partitions, offsets and times that cannot match are not read.
        transaction : (int, int), optional
            Only records of the transaction with this producer id and epoch in the table ``transactions``, in all its
            partitions, also if it is open or aborted.
        committed_only : bool
            End each partition at the high watermark that its files prove (``high_watermark_at_least`` of
            ``partition_offsets``); ``notes`` gives this offset and its proof.
        value_format, key_format : str, optional
            What values and keys are: avro, protobuf, json, string, long, integer, short, double, float, uuid, hex,
            base64, bytes. One that does not fit is null, or lacks the fields that its type lacks; ``value_error`` or
            ``key_error`` says why, ``value_raw`` or ``key_raw`` has its bytes, and ``errors`` a row for each partition
            of them.
        value_schema, key_schema : str, optional
            The schema that all of them are read by: an id, a subject, a subject and a version with a colon between
            them, or a file ``.avsc``, ``.proto`` or ``.json`` (JSON Schema). By default the newest of the topic's
            subject, such as ``orders-value``; of JSON the type of a sample.
        value_framing, key_framing : {"confluent", "apicurio", "none"}, optional
            What stands before a value that was written by a schema: a byte 0 and an id of four or of eight bytes, or
            nothing. The first one is the default. A header that names a schema counts before it.
        json_sample : int or "all", optional
            How many values of each partition say the type of JSON, by default the first 2,000. With "all" the log is
            read twice, and every field has a column.
        schemas : path or SchemaStore, optional
            Folder of schemas; default: the topic ``_schemas`` in the same log directory.
        redact : iterable of str
            Redaction rules: ``key``, ``value``, ``header.NAME`` or a JSON path such as ``value.customer.email``,
            followed by ``=null``, ``=hash`` or ``=mask``. They are applied before values are decoded: a JSON number
            that is hashed or masked cannot be decoded. ``filter`` applies to the original data; with formats, to the
            redacted data.
        redact_key : bytes, optional
            HMAC key for ``hash``, at least 16 bytes.

        Returns
        -------
        Stream
            Rows in the order of topic, partition and position. Record batches own their memory.

        Raises
        ------
        RecordError
            While rows are read, with ``strict``; the message names file, byte and record.
        ValueError
            When ``filter`` uses an unknown column, or compares incompatible types.

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
            committed_only=committed_only,
        )
        typed = None
        given = (value_format, key_format, value_schema, key_schema, value_framing, key_framing)
        if any(one is not None for one in (*given, json_sample, schemas)):
            from kraftlog.values.typed_options import TypedOptions

            typed = TypedOptions.of(*given, json_sample=json_sample, schemas=schemas)
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
        )

    def grep(
        self,
        columns: Sequence[str] | None = None,
        *,
        text: Texts = (),
        key: Texts = (),
        value: Texts = (),
        header: Texts = (),
        json_path: str | Sequence[str] = (),
        key_equals: Texts = (),
        regex: bool = False,
        ignore_case: bool = False,
        invert: bool = False,
        any_of: bool = False,
        key_partitions: int | None = None,
        redact: Iterable[str] = (),
        redact_key: bytes | None = None,
        strict: bool = False,
        workers: int = 1,
        **options: Unpack[RecordOptions],
    ) -> Stream:
        """Stream the records that contain a text.

        Batches are searched as bytes; only those that contain the texts are decoded. Damage is reported as by
        ``records``, except in records of batches with a matching checksum and without the texts.

        Parameters
        ----------
        columns : sequence of str, optional
            Of the table ``records``.
        text : str, bytes or sequence of these
            Texts in the key, in the value or in the value of a header.
        key, value, header : str, bytes or sequence of these
            Texts in the key, the value, or the value of a header; ``NAME=TEXT`` limits the search to headers with this
            name. Each parameter must match with at least one of its texts.
        json_path : str or sequence of str
            ``PATH=TEXT``: the value is a JSON document in which a text, number, true, false or null at the path is
            equal to it; ``PATH`` alone: it has something there; ``PATH>100`` and the like: it compares so. Of several
            all must hold.
        key_equals : str, bytes or sequence of these
            Whole keys.
        regex : bool
            Texts are RE2 regular expressions over bytes.
        ignore_case : bool
            Ignore the case of ASCII letters.
        invert : bool
            Records that do not match; all batches are decoded then.
        any_of : bool
            Records for which one of all conditions holds.
        key_partitions : int, optional
            Number of partitions of the topic, if its producers partition by Kafka's murmur2 of the key, like Java's and
            librdkafka's murmur2_random. Only the partitions of ``key_equals`` are then read.
        redact, redact_key
            As in ``records``. The search applies to the original data; the matches are redacted.
        strict : bool
            Raise at the first fault instead of adding it to ``errors``.
        workers : int
        **options
            As in ``records``: offsets, timestamps, ``isolation_level``, and others.

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
            text=text,
            key=key,
            value=value,
            header=header,
            json_path=json_path,
            key_equals=key_equals,
            regex=regex,
            ignore_case=ignore_case,
            invert=invert,
            any_of=any_of,
            key_partitions=key_partitions,
        )
        how: dict[str, Any] = {"search": search, "redaction": _redaction(redact, redact_key)}
        return self._stream("records", columns, {**options, "strict": strict}, workers=workers, **how)

    def errors(
        self, columns: Sequence[str] | None = None, *, workers: int = 1, **options: Unpack[ErrorOptions]
    ) -> pa.Table:
        """Read and check all files, and return unreadable data and ignored files."""
        return self._stream("errors", columns, options, workers=workers).to_table()

    def verify(
        self,
        options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
        on_progress: Progress | None = None,
        notes: list[str] | None = None,
        *,
        workers: int = 1,
    ) -> Iterator[Fault]:
        """Check batches, records, offsets, index files, transactions and messages; yields faults as they are found.

        Messages are the records of internal topics. Torn transactions, over all their partitions, come last.

        Parameters
        ----------
        options : ReadOptions
            With bounds, only records are checked that may lie within them. ``strict`` raises for the first fault.
        on_progress : callable, optional
            Called with the number of log bytes read since the last call.
        notes : list of str, optional
            Receives the position of a torn tail, which is not a fault.
        workers : int
            Number of decoding threads.
        """
        read = Pass(options, catalog=self.catalog, workers=workers, on_progress=on_progress)
        try:
            for fault in self._verified(read):
                if options.strict:
                    raise error_from_fault(fault)
                yield fault
        finally:
            if notes is not None:
                notes.extend(read.notes)

    def _verified(self, read: Pass) -> Iterator[Fault]:
        from kraftlog.check.partitions import check_segments
        from kraftlog.tables.message_tables import note_bad_messages
        from kraftlog.tables.transactions import TransactionCheck

        yield from self.unreadable()
        yield from self.not_needed()
        options = read.options
        try:
            transactions = TransactionCheck(self.lines.found.segments, self.found)
        except ValueError as error:  # each replica is checked by itself; which cluster transactions are of is not known
            transactions = TransactionCheck([], Discovery())
            read.notes.append(f"transactions are not compared across partitions: {error}")
        yield from check_segments(self.found.segments, read, observe=transactions.observe)
        messages = replace(read, options=replace(options, include_deleted=True), faults=[])
        note_bad_messages(self.found.segments, messages)
        yield from messages.faults
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

        ``heal`` is as in ``records``.
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
        """Add up bytes by kind; see ``kraftlog.tables.space.space``; ``heal`` is as in ``records``.

        Examples
        --------
        >>> import kraftlog
        >>> faults = []
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.space(faults).select(["partition", "size_in_bytes", "value_bytes"]).slice(0, 1).to_pylist()
        [{'partition': 0, 'size_in_bytes': 56058, 'value_bytes': 49330}]
        """
        from kraftlog.tables.space import space

        read = Pass(faults=faults, on_progress=on_progress)
        return space(self.line_files(heal=heal).segments, read, housekeeping)

    def key_stats(
        self, faults: list[Fault], *, most_bytes: int | None = None, **options: Unpack[CountOptions]
    ) -> pa.Table:
        """Count keys, tombstones and duplicates of each partition.

        Parameters
        ----------
        faults : list of Fault
            Receives the faults.
        most_bytes : int, optional
            Memory for keys per partition, by default 512 MiB; beyond it counts are estimates by the sketches of
            datasketches, and ``is_estimate`` is true.
        **options
            As in ``records``.
        """
        from kraftlog.tables.key_counts import MOST_BYTES, count_keys, key_stats

        read = Pass(_of_counts(options), faults)
        files = self.healed(self.lines.found, read.options, [])
        return key_stats(count_keys(files, read, most_bytes=most_bytes or MOST_BYTES))

    def top_keys(
        self, count: int, faults: list[Fault], *, most_bytes: int | None = None, **options: Unpack[CountOptions]
    ) -> pa.Table:
        """Return the keys with the most records; parameters as in ``key_stats``.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/codecs/log", topics=["codec-lz4"])
        >>> log.top_keys(2, []).select(["key", "records"]).to_pylist()
        [{'key': b'', 'records': 51}, {'key': b'key-386', 'records': 5}]
        """
        from kraftlog.tables.key_counts import MOST_BYTES, count_keys, top_keys

        read = Pass(_of_counts(options), faults)
        files = self.healed(self.lines.found, read.options, [])
        return top_keys(count_keys(files, read, most_bytes=most_bytes or MOST_BYTES), count)

    def writes(self, unit: str, faults: list[Fault], **options: Unpack[CountOptions]) -> pa.Table:
        """Count records by their timestamps in each minute, hour or day; see ``kraftlog.tables.writes.writes``."""
        from kraftlog.tables.writes import writes

        read = Pass(_of_counts(options), faults)
        return writes(self.healed(self.lines.found, read.options, []), unit, read)


def _of_counts(options: CountOptions) -> ReadOptions:
    """Return how records are read that are counted: to the end of the log."""
    if "committed_only" in options:
        raise TypeError("counts of records have no option committed_only: they go on to the end of the log")
    return TABLES["records"].read_options(options)


def _redaction(rules: Iterable[str], key: bytes | None) -> Redaction | None:
    if not (texts := names(rules)) and key is None:
        return None
    from kraftlog.tables.redaction import Redaction

    return Redaction.of(texts or (), key)
