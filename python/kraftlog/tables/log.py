"""``Log``: files of one or many partitions as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self, Unpack

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, distinct, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.partitions import is_metadata
from kraftlog.stream import Stream
from kraftlog.tables.filtered import among
from kraftlog.tables.log_files import whole
from kraftlog.tables.options import (
    BatchOptions,
    ChangeOptions,
    FindingOptions,
    FoldOptions,
    LineOptions,
    MessageOptions,
    MetadataTransactionOptions,
    OffsetBounds,
    PartitionOffsetOptions,
    ProducerOptions,
    ReplicaOptions,
    TransactionOptions,
)
from kraftlog.tables.record_tables import RecordTables
from kraftlog.tables.user_options import given_numbers
from kraftlog.topics import names
from kraftlog.transactions.cut import Cut, CutTime

if TYPE_CHECKING:
    from kraftlog.metadata_log.image_at import ImageAt


class Log(RecordTables):
    """Log files found by ``open``. Reading never writes to them, locks them or creates files next to them.

    Methods that return a ``pyarrow.Table`` have the parameters ``strict`` and ``faults``. If a fault may change the
    result, such as the offset of a group, ``strict`` is True by default: the first fault raises a ``RecordError``. With
    ``strict=False`` the table has the readable rows, and each fault is appended to the list ``faults``; without such a
    list, a warning gives their number. Tables about files (``segments``, ``batches``, ``replicas``, ``index_entries``)
    are not strict by default.

    Examples
    --------
    >>> import kraftlog
    >>> log = kraftlog.open("tests/golden/coordinator_future/log")
    >>> faults = []
    >>> log.offsets(strict=False, faults=faults).num_rows, len(faults)
    (20, 59)
    """

    def topic_summary(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[LineOptions],
    ) -> pa.Table:
        """Return a row for each topic: partitions, records, bytes, first and last time, formats, health.

        It is read from batch headers. ``records`` leaves out control records, and is null where compressed messages of
        magic 0 and 1 do not say how many they hold. ``first_timestamp`` is that of the first record of a batch.
        ``formats`` are magic and compression, such as ``v2 lz4``. ``health`` is ``headers ok``, or how many segments
        have headers that cannot be read, or a torn tail; ``verify`` compares checksums, too. ``strict`` and ``faults``
        are as ``Log`` says.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.topic_summary(["topic", "partitions", "health"]).to_pylist()
        [{'topic': 'orders', 'partitions': 3, 'health': 'headers ok'}]
        """
        return self._table("topic_summary", columns, {**options, "strict": strict}, faults)

    def segments(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[OffsetBounds],
    ) -> pa.Table:
        """Return a row for each segment that can contain the offsets; ``strict`` and ``faults`` are as in ``Log``."""
        return self._table("segments", columns, {**options, "strict": strict}, faults)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[BatchOptions],
    ) -> pa.Table:
        """Return a row for each record batch, from its header only; ``check_crc=True`` reads the batches as well.

        ``strict`` and ``faults`` are as in ``Log``.
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
        """Return the replicas of each partition in log directories, remote tiers, and folders that Kafka marked.

        Parameters
        ----------
        columns : sequence of str, optional
            Without ``damaged`` only the last batches are read, and for ``missing`` those of partitions with several
            replicas; without ``check_crc`` only their headers.
        strict, faults
            As in ``Log``.
        **options
            ``check_crc``, True by default: all batches are read and their checksums verified; a batch with a wrong
            checksum is damaged and missing.

        Returns
        -------
        pyarrow.Table
            A row for each replica. ``kind`` is ``live``, ``remote``, ``future``, ``stray`` or ``delete``; the last
            three are folders that Kafka marked. They are listed in log directories too, but never read as the
            partition. ``is_chosen`` marks the replica that is read: that of the leader in a metadata log among the
            files, or else the one with the greatest last epoch and end offset. ``agrees_until`` is the offset up to
            which its records are those of the chosen replica, by leader epochs (KIP-101, KIP-279), or the end of the
            replica. ``missing`` are offsets between ``log_start_offset`` and ``agrees_until`` that the replica does not
            have in an intact batch, although another replica of the same history has them; offsets that the log cleaner
            may have removed (``cleaner-offset-checkpoint``) are not included. ``damaged`` are unreadable byte ranges.
            Values that no file contains are null: ``node_id`` (``meta.properties``), ``high_watermark``
            (``replication-offset-checkpoint``, some seconds old), ``in_isr`` (a metadata log), and ``agrees_until`` and
            ``missing`` without leader epochs.

        Raises
        ------
        ValueError
            When the directories belong to several clusters, or several topics have the same name.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.replicas(["partition", "kind", "end_offset", "high_watermark", "missing"]).to_pylist()[0]
        {'partition': 0, 'kind': 'live', 'end_offset': 130, 'high_watermark': 130, 'missing': []}
        """
        return self._table("replicas", columns, {**options, "strict": strict}, faults)

    def findings(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[FindingOptions],
    ) -> pa.Table:
        """Audit the files: return what they contradict or prove of replicas, transactions, offsets and configuration.

        Parameters
        ----------
        columns : sequence of str, optional
            ``sentence`` on request: the whole finding in one line.
        strict, faults
            As in ``Log``. Parts that cannot be read are not audited.
        **options
            ``against``: log directories of another cluster, a backup or a mirror; the findings are its differences.

        Returns
        -------
        pyarrow.Table
            A row for each finding, the worst first. ``severity`` is ``error`` (records are lost, or a guarantee does
            not hold), ``warning`` (an operator should look at it) or ``note`` (a healthy cluster may have it).
            ``known`` is what the files prove, ``meaning`` what it may mean, and ``next_command`` a command that shows
            more of it. A check is silent where its precondition does not hold; the page on audits lists both.

        Raises
        ------
        ValueError
            When the directories belong to several clusters, or several topics have the same name.

        Examples
        --------
        >>> import kraftlog
        >>> kraftlog.open("tests/golden/transactions/log").findings().select(["code", "offset"]).to_pylist()[0]
        {'code': 'open_transaction', 'offset': 6}
        """
        return self._table("findings", columns, {**options, "strict": strict}, faults)

    def cut(self, time: str | CutTime, *, faults: list[Fault] | None = None) -> Cut:
        """Return the cut of the partitions at a time; the headers of all batches are read.

        Parameters
        ----------
        time : str
            ``at-or-before:TIME``, ``at-or-after:TIME`` or ``end``, as in ``kraftlog.open``.
        faults : list of Fault, optional
            Receives faults, which may change the cut; without it, the first fault raises.

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
        read = Pass()
        segments = self.line_files(read.notes).segments
        cut = find_cut(self.found, segments, asked, read)
        if faults is not None:
            faults += distinct(read.faults)
        elif read.faults:
            raise error_from_fault(read.faults[0])
        return replace(cut, unknown=tuple(read.notes))

    def cut_at(self, time: CutTime) -> Self:
        """Return the log at the cut for a time; faults that may have changed the cut are noted and reported."""
        from kraftlog.tables.cut import files_at

        faults: list[Fault] = []
        cut = self.cut(time, faults=faults)
        if faults:
            count = f" (the first of {len(faults)} faults)" if len(faults) > 1 else ""
            moved = f"the cut may lie elsewhere than in the whole log: {faults[0].message}{count}"
            cut = replace(cut, unknown=(*cut.unknown, moved))
        return type(self)(files_at(self.found, cut, faults), self.catalog)

    def at(self, cut: Cut) -> Self:
        """Return the log at a cut.

        Transactions that are open at the cut count as aborted, and do not stop readers.

        Parameters
        ----------
        cut : Cut
            Partitions without an end in the cut are unchanged.
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
        **options: Unpack[MessageOptions],
    ) -> Stream:
        """Stream the decoded records of internal topics and of the metadata log.

        Parameters
        ----------
        columns : sequence of str, optional
        type : str, optional
            Only records of this type, with their fields as columns: ``PartitionRecord``, ``OffsetCommit``. Without it
            keys and values are JSON text with Kafka's field names.
        strict : bool
            Raise at the first fault instead of adding it to ``errors``.
        workers : int
            Threads that decode messages, beside the one that reads the log.
        **options
            As in ``records``; and ``show_secrets``, False by default: show salts and keys of SCRAM credentials, and
            passwords in configs. Without it, ``raw_key`` and ``raw_value`` of these records are null.

        Returns
        -------
        Stream
            A record that cannot be decoded is a row with an ``error``.

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
        return self._stream(table, columns, {**options, "strict": strict}, workers=workers)

    def image(
        self, offset: int | None = None, *, strict: bool = True, cache: bool = True, heal: bool = True
    ) -> ImageAt:
        """Return the metadata image at an offset, from the metadata log among the files.

        Parameters
        ----------
        offset : int, optional
            Last offset to apply; by default the end of the log.
        strict : bool
            Raise when the image may be incomplete. With False the image contains the readable records; transactions are
            applied completely or not at all, and ``faults`` lists what is missing.
        cache : bool
            Cache the image of a log of more than a million records in ``$XDG_CACHE_HOME/kraftlog``, and start from a
            cached image if the log still contains its last batch.
        heal : bool
            Read missing or damaged offsets of the chosen replica from replicas that agree with it.

        Returns
        -------
        ImageAt
            ``image.tables()`` returns the records of the corresponding snapshot, as Arrow tables.

        Raises
        ------
        RecordError
            With ``strict``, when a record cannot be read, or changes an entry that does not exist.
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
        """Return the transactions of producers, each over all its partitions.

        Parameters
        ----------
        columns : sequence of str, optional
            ``contradiction`` on request: the actual and the expected markers of a torn transaction.
        strict, faults
            As in ``Log``.
        **options
            As in ``LineOptions``.

        Returns
        -------
        pyarrow.Table
            A row for each transaction, by producer id and epoch. ``producer_epoch`` is the epoch of its markers,
            existing or expected. ``state`` is committed or aborted; open if a partition has no marker yet; torn if some
            partitions have COMMIT and others ABORT, or if they contradict ``__transaction_state`` of their log
            directory. ``partitions`` lists the parts of the transaction. The state of a part is null if the partition
            is not among the files, or may have lost its records to retention or compaction, and ``missing`` if a whole
            log lacks a marker that its coordinator completed. ``decision_timestamp`` is that of the coordinator's
            decision, or else of the first marker. ``ended_by`` is client, timeout, newer producer or admin, or null if
            the records do not tell. ``input_offsets`` are the offsets that it committed. ``identified_by`` is the way
            in which its partitions were identified: by ``marker_epoch``, which is unique under transaction version 2
            (KIP-890), by ``transaction_state``, or by ``partition``: then each partition has a row of its own.

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
        """Return the transactions of producers in each partition.

        Ended transactions come in the order of their markers, then open ones; they are read from batch headers.
        ``strict`` and ``faults`` are as in ``Log``.
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

        ``strict`` and ``faults`` are as in ``Log``.
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
        """Stream the changes by visible records of the metadata log, in bounded memory.

        Parameters
        ----------
        columns : sequence of str, optional
            ``topic``, ``partition`` and ``brokers`` on request: the entities of a change.
        kinds : str or sequence of str, optional
            Only changes of these kinds: ``topic``, ``partition``, ``broker``, ``config``, ``client_quota``, ``acl`` ...
        topics : str or sequence of str, optional
            Only changes of these topics and of their partitions and configs.
        brokers : sequence of int, optional
            Only changes of these brokers and their configs, and of partition fields that add or remove them, such as
            the leader or the ISR.
        strict : bool
            Raise at the first fault.
        **options
            Bounds as in ``records``, for the offset at which a change becomes visible and the timestamp of that
            record's batch; ``show_secrets``; and ``include_image``: the initial image comes first, each of its records
            as ``added`` at the offset of the image. It is the image at the offset before ``start_offset``, or the
            snapshot at the beginning of the log.

        Returns
        -------
        Stream
            A row for each field that changed, with ``before`` and ``after`` as text; a row for each record that was
            ``added`` or ``removed``, with the record as JSON, or the value of a config or quota. Changes of a
            transaction are at the offset of its End record; those of aborted transactions are left out. Several changes
            of a field at one offset are one row.

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

        ``strict`` and ``faults`` are as in ``Log``.
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

        ``strict`` and ``faults`` are as in ``Log``.
        """
        return self._table("hanging_transactions", columns, {**options, "strict": strict}, faults)

    def waits(
        self,
        columns: Sequence[str] | None = None,
        *,
        groups: Sequence[str] | None = None,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[LineOptions],
    ) -> pa.Table:
        """Return why consumers get no more records: a row for each partition, and for each group that reads it.

        Parameters
        ----------
        columns : sequence of str, optional
        groups : str or sequence of str, optional
            Only these; without it, rows without a group say where any consumer stops.
        strict, faults
            As ``Log`` says.
        **options
            Of ``LineOptions``.

        Returns
        -------
        pyarrow.Table
            ``cause`` is the first that holds of ``no_log``, ``no_leader`` (as the metadata log among the files says),
            ``unreadable_log``, ``pending_commit``, ``no_commit``, ``offset_before_log_start``,
            ``offset_behind_log_end``, ``corrupt_batch`` (at ``position``), ``hanging_transaction``,
            ``open_transaction``, ``expired_commit`` (older than ``offsets.retention.minutes`` by default), ``nothing``,
            ``no_member`` and ``lag``. ``sentence`` tells it. ``position`` is what the group has committed, or the last
            stable offset. Groups and transactional ids are looked up in the log directories of the files, whichever
            topics are asked for. ``ends_at`` is when the coordinator aborts the transaction for its timeout.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"], partitions=[0])
        >>> log.waits(["cause", "position", "sentence"]).to_pylist()[0]["sentence"]
        'orders-0: nothing holds consumers back: they read up to the end, 130'
        """
        stream = self._stream("waits", columns, {**options, "strict": strict}, filter=among({"group": groups}))
        return whole(stream, "waits", faults, stacklevel=3)

    def offsets(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[FoldOptions],
    ) -> pa.Table:
        """Return the committed offsets of groups, and those in open transactions.

        Parameters
        ----------
        columns : sequence of str, optional
        strict : bool
            Raise at the first fault: any fault may change an offset.
        faults : list of Fault, optional
            Receives the faults, with ``strict=False``; without it a warning is issued.
        **options
            ``at``: last offset to apply, in each partition of ``__consumer_offsets``; ``include_deleted``: include
            records before the log start offset.

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
        """Return the groups and their members in ``__consumer_offsets``; parameters as in ``offsets``."""
        return self._table("groups", columns, {**options, "strict": strict}, faults)

    def transactional_ids(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[FoldOptions],
    ) -> pa.Table:
        """Return the transactional ids in ``__transaction_state``; parameters as in ``offsets``."""
        return self._table("transactional_ids", columns, {**options, "strict": strict}, faults)

    def schemas(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[FoldOptions],
    ) -> pa.Table:
        """Return the schemas in the topic ``_schemas`` of a schema registry; parameters as in ``offsets``.

        Soft-deleted schemas are included, and values with their ids can be decoded; hard-deleted schemas are not.
        """
        return self._table("schemas", columns, {**options, "strict": strict}, faults)

    def last_stable_offsets(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        faults: list[Fault] | None = None,
        **options: Unpack[LineOptions],
    ) -> pa.Table:
        """Return topic, partition and last_stable_offset: where a read_committed consumer stops.

        The result is based only on the log: the first offset of the earliest open transaction, or the offset after the
        last record. A broker's last stable offset is never after its high watermark, which is not in the log.
        ``strict`` and ``faults`` are as in ``Log``; without ``strict`` an unknown offset is null. ``heal`` is as in
        ``records``.
        """
        return self._table("last_stable_offsets", columns, {**options, "strict": strict}, faults)

    def partition_offsets(
        self,
        time: datetime | int | Literal["earliest", "latest", "max-timestamp"] = "latest",
        columns: Sequence[str] | None = None,
        *,
        strict: bool = True,
        on_progress: Progress | None = None,
        **options: Unpack[PartitionOffsetOptions],
    ) -> Stream:
        """Stream the offset of each partition at a time, as a broker answers ListOffsets.

        Parameters
        ----------
        time : {"earliest", "latest", "max-timestamp"}, datetime or int
            ``earliest`` is the log start offset, ``latest`` the log end offset, or with ``read_committed`` the last
            stable offset; ``max-timestamp`` is the first record with the largest timestamp. A time, or milliseconds
            since the epoch, selects the first record with that timestamp or a later one.
        columns : sequence of str, optional
            ``log_start_offset``, ``last_stable_offset`` and ``log_end_offset`` on request; also
            ``high_watermark_at_least`` and ``high_watermark_at_most``: records before the first are committed, records
            from the second on are not. They are equal if the files include all in-sync replicas and a metadata log with
            the ISR, or all voters of a metadata log; otherwise the first comes from ``replication-offset-checkpoint``.
        strict : bool
            Raise at the first fault while rows are read. If False, faults are on the stream.
        on_progress : callable, optional
        **options
            ``isolation_level``.

        Returns
        -------
        Stream
            A row for each partition; ``offset`` is null if there is no such record, or if it cannot be read. The end is
            that of the files; a running broker may not yet serve records up to it.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/transactions/log", topics=["orders"])
        >>> log.partition_offsets().to_table()["offset"].to_pylist()
        [130, 69, 38]
        """
        given = {**options, "time": time, "strict": strict}
        return self._stream("partition_offsets", columns, given, on_progress=on_progress)

    def lag(
        self,
        columns: Sequence[str] | None = None,
        *,
        groups: Sequence[str] | None = None,
        topics: Sequence[str] | None = None,
        strict: bool = True,
        on_progress: Progress | None = None,
        **options: Unpack[LineOptions],
    ) -> Stream:
        """Stream the lag of groups, as kafka-consumer-groups describes it.

        Parameters
        ----------
        columns : sequence of str, optional
            ``log_start_offset``, ``client_id``, ``client_host`` and ``sentence`` on request.
        groups, topics : str or sequence of str, optional
            Only these groups and topics.
        strict : bool
            Raise at the first fault while rows are read. If False, faults are on the stream.
        on_progress : callable, optional
        **options
            Of ``LineOptions``: ``heal`` is of ``__consumer_offsets``.

        Returns
        -------
        Stream
            A row for each group and partition with a committed offset, or assigned to a member (``member_id``). ``lag``
            is the distance of the offset from the end of the log, ``read_committed_lag`` that from the last stable
            offset. Both are null if there is a ``reason``. ``cause`` and ``sentence`` are those of ``waits``.
            Offsets in open transactions are not committed.

        Examples
        --------
        >>> import kraftlog
        >>> log = kraftlog.open("tests/golden/groups/log")
        >>> log.lag(["topic", "current_offset", "lag", "reason"], groups=["grp-reborn"]).to_table().to_pylist()
        [{'topic': 'grp-a', 'current_offset': 33, 'lag': None, 'reason': 'no log of grp-a-0 among the files'}]
        """
        rows = among({"group": groups, "topic": topics})
        return self._stream("lag", columns, {**options, "strict": strict}, filter=rows, on_progress=on_progress)

    def index_entries(
        self,
        columns: Sequence[str] | None = None,
        *,
        strict: bool = False,
        faults: list[Fault] | None = None,
        **options: Unpack[OffsetBounds],
    ) -> pa.Table:
        """Return the entries of the index files of segments that can contain the offsets.

        ``strict`` and ``faults`` are as in ``Log``.
        """
        return self._table("index_entries", columns, {**options, "strict": strict}, faults)
