"""``Log``: files of one or many partitions as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self, Unpack

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.read.partitions import is_metadata
from kraftlog.read.records import Progress
from kraftlog.stream import Stream, raising
from kraftlog.tables.log_files import whole
from kraftlog.tables.options import (
    BatchOptions,
    ChangeOptions,
    FoldOptions,
    LineOptions,
    MessageOptions,
    MetadataTransactionOptions,
    OffsetBounds,
    ProducerOptions,
    ReplicaOptions,
    TransactionOptions,
)
from kraftlog.tables.record_tables import RecordTables
from kraftlog.tables.unread_files import note_unreadable
from kraftlog.tables.user_options import given_numbers
from kraftlog.topics import CONSUMER_OFFSETS, names
from kraftlog.transactions.cut import Cut, CutTime
from kraftlog.types import IsolationLevel

if TYPE_CHECKING:
    from kraftlog.metadata_log.image_at import ImageAt


class Log(RecordTables):
    """Log files that ``open`` found. Reading never writes to them, locks them or creates files beside them.

    Methods that return a ``pyarrow.Table`` take ``strict`` and ``faults``. Where a fault may change the answer, such as
    the offset of a group, ``strict`` is True by default: the first fault raises a ``RecordError``. With
    ``strict=False`` the table has what can be read, and each fault is appended to the list ``faults``; without such a
    list, a warning says how many there were. Tables that show what is in the files (``segments``, ``batches``,
    ``replicas``, ``index_entries``) are not strict by default.

    Examples
    --------
    >>> import kraftlog
    >>> log = kraftlog.open("tests/golden/coordinator_future/log")
    >>> faults = []
    >>> log.offsets(strict=False, faults=faults).num_rows, len(faults)
    (20, 59)
    """

    def segments(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[OffsetBounds],
    ) -> pa.Table:
        """Return a row for each segment that can hold the offsets; ``strict`` and ``faults`` are as ``Log`` says."""
        return self._table("segments", columns, {**options, "strict": strict}, faults)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[BatchOptions],
    ) -> pa.Table:
        """Return a row for each record batch, from its header alone; ``check_crc=True`` reads the batches as well.

        ``strict`` and ``faults`` are as ``Log`` says.
        """
        return self._table("batches", columns, {**options, "strict": strict}, faults)

    def replicas(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[ReplicaOptions],
    ) -> pa.Table:
        """Return what each log directory, remote tier, or folder that Kafka marked, holds of each partition.

        Parameters
        ----------
        columns : sequence of str, optional
            Without ``damaged`` no batches are read but the last ones, and those of partitions with several replicas for
            ``missing``; of which, without ``check_crc``, the headers are.
        strict, faults
            As ``Log`` says.
        **options
            ``check_crc``, by default true: all batches are read and their checksums compared; what has another one is
            damaged and missing.

        Returns
        -------
        pyarrow.Table
            A row for each replica. ``kind`` is ``live``, ``remote``, ``future``, ``stray`` or ``delete``; the last
            three are folders that Kafka marked, which are listed in log directories as well, and never read as the
            partition. ``is_chosen`` says which one is: that of the leader which a metadata log among the files names,
            else the one with the greatest last epoch and end offset. ``agrees_until`` is the offset up to which the
            records are those of the chosen one, by leader epochs (KIP-101, KIP-279), or the end of the replica.
            ``missing`` are offsets between ``log_start_offset`` and ``agrees_until`` that no sound batch of the replica
            has, though another replica of the same history does; what the cleaner may have removed
            (``cleaner-offset-checkpoint``) does not count. ``damaged`` are stretches of bytes that cannot be read. What
            no file says is null: ``node_id`` (``meta.properties``), ``high_watermark``
            (``replication-offset-checkpoint``, some seconds old), ``in_isr`` (a metadata log), ``agrees_until`` and
            ``missing`` where there are no leader epochs.

        Raises
        ------
        ValueError
            When the directories are of several clusters, or a name is that of several topics.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.replicas(["partition", "kind", "end_offset", "high_watermark", "missing"]).to_pylist()[0]
        {'partition': 0, 'kind': 'live', 'end_offset': 130, 'high_watermark': 130, 'missing': []}
        """
        return self._table("replicas", columns, {**options, "strict": strict}, faults)

    def cut(self, time: str | CutTime, *, faults: list[Fault] | None = None) -> Cut:
        """Return the cut of the partitions at a time; the headers of all batches are read for it.

        Parameters
        ----------
        time : str
            ``at-or-before:TIME``, ``at-or-after:TIME`` or ``end``, as ``kraftlog.open`` takes them.
        faults : list of Fault, optional
            Receives what cannot be read, so that the cut may be another one; without it, the first fault raises.

        Returns
        -------
        Cut

        Raises
        ------
        RecordError
            For the first fault, without ``faults``.
        ValueError
            When there is no such cut.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> cut = log.cut("at-or-before:2024-01-01T00:01:00Z")
        >>> for note in cut.notes():
        ...     print(note)
        """
        from kraftlog.tables.cut import find_cut

        asked = CutTime.of(time) if isinstance(time, str) else time
        notes: list[str] = []
        segments = self.line_files(notes).segments
        found: list[Fault] = []
        cut = find_cut(self.found, segments, asked, found, notes)
        if faults is not None:
            faults += found
        elif found:
            raise error_from_fault(found[0])
        return replace(cut, unknown=tuple(notes))

    def cut_at(self, time: CutTime) -> Self:
        """Return the log as it was at the cut at a time, with a note where faults may have moved the cut."""
        faults: list[Fault] = []
        cut = self.cut(time, faults=faults)
        if faults:
            count = f" (the first of {len(faults)} faults)" if len(faults) > 1 else ""
            moved = f"the cut may lie elsewhere than in the whole log: {faults[0].message}{count}"
            cut = replace(cut, unknown=(*cut.unknown, moved))
        return self.at(cut)

    def at(self, cut: Cut) -> Self:
        """Return the log as it was at a cut.

        Transactions that are open at the cut count as aborted: they hold no reader back.

        Parameters
        ----------
        cut : Cut
            Partitions that it does not have stay as they are.

        Raises
        ------
        RecordError
            When a segment that is cut cannot be read.
        """
        from kraftlog.tables.cut import files_at

        return type(self)(files_at(self.found, cut), self.catalog)

    def messages(
        self,
        columns: Sequence[str] | None = None,
        *,
        type: str | None = None,
        strict: bool = False,
        workers: int = 1,
        committed_only: bool = False,
        **options: Unpack[MessageOptions],
    ) -> Stream:
        """Stream the records of internal topics and of the metadata log, typed.

        Parameters
        ----------
        columns : sequence of str, optional
        type : str, optional
            Only records of this type, their fields as columns: ``PartitionRecord``, ``OffsetCommit``. Without it keys
            and values are JSON text with Kafka's field names.
        strict : bool
            Raise at the first fault instead of noting it in ``errors``.
        workers : int
            Threads that decode messages, beside the one that reads the log.
        committed_only : bool
            As ``records`` has it.
        **options
            As ``records`` has them; and ``show_secrets``, which is False by default: whether salt and keys of SCRAM
            credentials, and passwords in configs, are shown. Without it, ``raw_key`` and ``raw_value`` are null where
            there is one.

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
        table = "messages"
        if type is not None:
            from kraftlog.tables.message_tables import check_type

            table = check_type(type, self.catalog)
        return self._stream(
            table, columns, {**options, "strict": strict}, workers=workers, committed_only=committed_only
        )

    def image(
        self, offset: int | None = None, *, strict: bool = True, cache: bool = True, heal: bool = True
    ) -> ImageAt:
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
        heal : bool
            Read what the chosen replica lacks, or has damaged, from others that agree with it.

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
        metadata = Discovery(segments=[one for one in self.lines.found.segments if is_metadata(one)])
        log = MetadataLog(self.healed(metadata, ReadOptions(heal=heal), []).segments)
        found = image_at(log, offset, faults, cache=ImageCache() if cache else None)
        if faults and strict:
            raise error_from_fault(faults[0])
        return replace(found, faults=tuple(faults))

    def transactions(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[LineOptions],
    ) -> pa.Table:
        """Return producers' transactions, each over all its partitions.

        Parameters
        ----------
        columns : sequence of str, optional
            ``contradiction`` on request: what a torn transaction has where, and what was expected.
        strict, faults
            As ``Log`` says.
        **options
            Of ``LineOptions``.

        Returns
        -------
        pyarrow.Table
            A row for each transaction, by producer id and epoch. ``producer_epoch`` is the epoch of its markers, or
            that they will have. ``state`` is committed or aborted; open where a partition has no marker yet; torn
            where some partitions have COMMIT and others ABORT, or where they contradict ``__transaction_state`` of
            their log directory. ``partitions`` lists what each partition has. Its state is null where the partition is
            not among the files, or may have lost its records to retention or compaction, and ``missing`` where a
            whole log lacks a marker that its coordinator completed. ``decision_timestamp`` is that of the
            coordinator's decision, or else of the first marker. ``ended_by`` is client, timeout, newer producer or
            admin, null where records do not tell. ``input_offsets`` are the offsets that it committed.
            ``identified_by`` says how its partitions were found: by ``marker_epoch``, which under transaction version
            2 (KIP-890) no other transaction has, by ``transaction_state``, or not at all: by ``partition``, each of
            which has a row of its own then.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log")
        >>> rows = log.transactions(["transactional_id", "producer_epoch", "state", "ended_by"])
        >>> rows.filter(pa.compute.field("transactional_id") == "tx-h").to_pylist()
        [{'transactional_id': 'tx-h', 'producer_epoch': 1, 'state': 'aborted', 'ended_by': 'timeout'}]
        """
        return self._table("transactions", columns, {**options, "strict": strict}, faults)

    def partition_transactions(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[TransactionOptions],
    ) -> pa.Table:
        """Return what each partition has of producers' transactions: ended ones by their markers, then open ones.

        It is read from batch headers. ``strict`` and ``faults`` are as ``Log`` says.
        """
        return self._table("partition_transactions", columns, {**options, "strict": strict}, faults)

    def metadata_transactions(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[MetadataTransactionOptions],
    ) -> pa.Table:
        """Return the transactions of the metadata log (KIP-868).

        ``strict`` and ``faults`` are as ``Log`` says.
        """
        return self._table("metadata_transactions", columns, {**options, "strict": strict}, faults)

    def metadata_changes(
        self,
        columns: Sequence[str] | None = None,
        *,
        kinds: Sequence[str] | None = None,
        topics: Sequence[str] | None = None,
        brokers: Sequence[int] | None = None,
        strict: bool = False,
        **options: Unpack[ChangeOptions],
    ) -> Stream:
        """Stream what the visible records of the metadata log change, in bounded memory.

        Parameters
        ----------
        columns : sequence of str, optional
            ``topic``, ``partition`` and ``brokers`` say what a row concerns.
        kinds : str or sequence of str, optional
            Only changes of these: ``topic``, ``partition``, ``broker``, ``config``, ``client_quota``, ``acl`` ...
        topics : str or sequence of str, optional
            Only changes of these topics, of their partitions and configs.
        brokers : sequence of int, optional
            Only changes of these brokers and their configs, and of fields of partitions in which they come or go:
            the old and the new leader, who leaves the ISR.
        strict : bool
            Raise at the first fault.
        **options
            Bounds as ``records`` has them, of the offset at which a change becomes visible, and of the timestamp of
            that record's batch; ``show_secrets``; and ``include_image``: the image from which changes start comes
            first, each of its records as ``added`` at the offset that it stands for. That image is the one at the
            offset before ``start_offset``, or of the snapshot with which the log begins.

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

            where = ChangeFilter(names(kinds), names(topics), given_numbers("brokers", brokers))
        return self._stream("metadata_changes", columns, {**options, "strict": strict}, where=where)

    def producers(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> pa.Table:
        """Return the state of each producer in each partition, as a broker would rebuild it from the log.

        ``strict`` and ``faults`` are as ``Log`` says.
        """
        return self._table("producers", columns, {**options, "strict": strict}, faults)

    def hanging_transactions(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[LineOptions],
    ) -> pa.Table:
        """Return open transactions that no coordinator will end; ``__transaction_state`` must be among the files.

        ``strict`` and ``faults`` are as ``Log`` says.
        """
        return self._table("hanging_transactions", columns, {**options, "strict": strict}, faults)

    def offsets(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[FoldOptions],
    ) -> pa.Table:
        """Return the offsets that groups have committed, and those that open transactions would.

        Parameters
        ----------
        columns : sequence of str, optional
        strict : bool
            Raise when something cannot be read: any fault may change an offset.
        faults : list of Fault, optional
            Receives what could not be read, with ``strict=False``; without it there is a warning.
        **options
            ``at``: the last offset that counts, in each partition of ``__consumer_offsets``; ``include_deleted``: count
            also what lies before the log start offset.

        Raises
        ------
        RecordError
            With ``strict``, for the first fault.
        """
        return self._table("offsets", columns, {**options, "strict": strict}, faults)

    def groups(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[FoldOptions],
    ) -> pa.Table:
        """Return the groups and their members as ``__consumer_offsets`` has them; parameters as of ``offsets``."""
        return self._table("groups", columns, {**options, "strict": strict}, faults)

    def transactional_ids(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[FoldOptions],
    ) -> pa.Table:
        """Return the transactional ids as ``__transaction_state`` has them; parameters as of ``offsets``."""
        return self._table("transactional_ids", columns, {**options, "strict": strict}, faults)

    def schemas(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[FoldOptions],
    ) -> pa.Table:
        """Return the schemas that the topic ``_schemas`` of a registry has; parameters as of ``offsets``.

        One that was deleted softly is there, and values that name its id can be read; one that was deleted for good is
        not.
        """
        return self._table("schemas", columns, {**options, "strict": strict}, faults)

    def last_stable_offsets(
        self, *, strict: bool = True, heal: bool = True, faults: list[Fault] | None = None
    ) -> pa.Table:
        """Return topic, partition and last_stable_offset: where a read_committed consumer stops.

        It is what the log alone says: the first offset of the earliest open transaction, or the offset behind the last
        record. A broker's own is never behind its high watermark, which the log does not hold. ``strict`` and
        ``faults`` are as ``Log`` says; without ``strict`` it is null where it is not known. ``heal`` is as ``records``
        has it.
        """
        from kraftlog.tables.partition_offsets import last_stable_offset_rows

        def produce(found: list[Fault]) -> Iterator[pa.RecordBatch]:
            note_unreadable(self.found, found, strict=strict)
            notes.extend(self.lines.notes(heals=heal))
            rows = last_stable_offset_rows(self.line_files(notes, heal=heal).segments, found)
            return raising(rows, found) if strict else rows

        notes: list[str] = []
        stream = Stream(schema.LAST_STABLE_OFFSETS.select(), produce, notes=notes)
        return whole(stream, "last_stable_offsets", faults, stacklevel=3)

    def partition_offsets(
        self,
        time: datetime | int | Literal["earliest", "latest", "max-timestamp"] = "latest",
        columns: Sequence[str] | None = None,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        strict: bool = True,
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
            ``log_start_offset``, ``last_stable_offset`` and ``log_end_offset`` on request; and
            ``high_watermark_at_least`` and ``high_watermark_at_most``: records before the first are committed, those
            from the second on are not. Both are one where all replicas in sync, of which a metadata log must be among
            the files, or all voters of a metadata log are given; else ``replication-offset-checkpoint`` has the first.
        isolation_level : {"read_uncommitted", "read_committed"}
        strict : bool
            Raise at the first fault while rows are read. Without it, faults are on the stream.
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
            notes.extend(self.lines.notes(heals=False))
            rows = partition_offset_rows(self.lines, at, arrow_schema, options, faults, on_progress)
            yield from raising(rows, faults) if strict else rows
            notes.extend(note for note in self.lines.metadata_notes if note not in notes)

        notes: list[str] = []
        return Stream(arrow_schema, produce, notes=notes)

    def lag(
        self,
        columns: Sequence[str] | None = None,
        *,
        groups: Sequence[str] | None = None,
        topics: Sequence[str] | None = None,
        strict: bool = True,
        heal: bool = True,
        on_progress: Progress | None = None,
    ) -> Stream:
        """Stream what groups have committed against the ends of the logs, as kafka-consumer-groups describes it.

        Parameters
        ----------
        columns : sequence of str, optional
            ``log_start_offset``, ``client_id`` and ``client_host`` on request.
        groups, topics : str or sequence of str, optional
            Only these.
        strict : bool
            Raise at the first fault while rows are read. Without it, faults are on the stream.
        heal : bool
            Read what the chosen replicas of ``__consumer_offsets`` lack, or have damaged, from others that agree.
        on_progress : callable, optional

        Returns
        -------
        Stream
            A row for each group and partition with a committed offset, or which a member has (``member_id``). ``lag``
            is what lies between the offset and the end of the log, ``read_committed_lag`` between it and the last
            stable offset; both are null where ``reason`` says why. Offsets that wait for the end of a transaction are
            not committed.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/groups/log")
        >>> log.lag(["topic", "current_offset", "lag", "reason"], groups=["grp-reborn"]).to_table().to_pylist()
        [{'topic': 'grp-a', 'current_offset': 33, 'lag': None, 'reason': 'no log of grp-a-0 among the files'}]
        """
        from kraftlog.tables.lag import Wanted, lag_rows

        arrow_schema, options = schema.LAG.select(columns), ReadOptions(strict=strict, heal=heal)
        wanted = Wanted(*(None if one is None else frozenset(names(one)) for one in (groups, topics)))

        def produce(faults: list[Fault]) -> Iterator[pa.RecordBatch]:
            note_unreadable(self.found, faults, strict=strict)
            notes.extend(self.lines.notes(heals=heal))
            found = self.lines.found
            committed = self.healed(found.only(lambda topic, _: topic == CONSUMER_OFFSETS), options, notes)
            segments = [one for one in found.segments if one.topic != CONSUMER_OFFSETS] + committed.segments
            rows = lag_rows(segments, wanted, arrow_schema, options, faults, on_progress)
            return raising(rows, faults) if strict else rows

        notes: list[str] = []
        return Stream(arrow_schema, produce, notes=notes)

    def index_entries(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[OffsetBounds],
    ) -> pa.Table:
        """Return the entries of the index files, of segments that can hold the offsets.

        ``strict`` and ``faults`` are as ``Log`` says.
        """
        return self._table("index_entries", columns, {**options, "strict": strict}, faults)
