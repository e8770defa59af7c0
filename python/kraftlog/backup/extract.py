"""``kraftlog.extract``: partitions, or ranges of them, as a separate log directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.new_folder import check_new_folder, new_folder
from kraftlog.codec.batch_encoder import compression_type
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, READ_UNCOMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.disk.remote_path import local_path
from kraftlog.errors import Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.layout.names import PARTITION_METADATA
from kraftlog.layout.segment import Segment
from kraftlog.log_store.errors import InvalidTopicError
from kraftlog.log_store.topics import check_name
from kraftlog.read.index_interval import shown_interval
from kraftlog.read.log_pass import Progress
from kraftlog.read.partitions import by_partition
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.unread_files import note_unreadable
from kraftlog.tables.user_options import read_options
from kraftlog.topics import CLUSTER_METADATA, INTERNAL_TOPICS, names
from kraftlog.transactions.cut import Cut, CutTime, Side
from kraftlog.write.extracted_batches import ExtractedBatches
from kraftlog.write.extracted_log import Written, write_extracted
from kraftlog.write.recovery_points import record_recovery_points

FIRST_EPOCH = 0  # leader epoch of a new topic


@dataclass(frozen=True)
class ExtractedPartition:
    """The written part of a partition.

    Attributes
    ----------
    topic, partition : str, int
        Names in the new log directory.
    source_topic : str
        Name of the topic in the source log.
    written : Written
    open_transactions : dict
        Producer ids and start offsets of transactions that do not end in the log.
    """

    topic: str
    partition: int
    source_topic: str
    written: Written
    open_transactions: Mapping[int, int] = field(default_factory=dict)


@dataclass
class Extract:
    """The result of ``extract``.

    Attributes
    ----------
    partitions : list of ExtractedPartition
        Written partitions; those without records have no folder.
    faults : list of Fault
        Faults; their data is missing in the copy.
    notes : list of str
        Offsets at which a read_committed reader stops, transactions without an end, and the length of a torn tail.
    """

    partitions: list[ExtractedPartition] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def extract(
    paths: LogPaths,
    target: str | Path,
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: datetime | str | int | None = None,
    end_timestamp: datetime | str | int | None = None,
    rename: Mapping[str, str] | None = None,
    committed: bool = False,
    cut: str | CutTime | Cut | None = None,
    per_partition: bool = False,
    compression: str | None = None,
    include_deleted: bool = False,
    heal: bool = True,
    strict: bool = False,
    redact: Iterable[str] = (),
    redact_key: bytes | None = None,
    exclude_keys: str | Path | None = None,
) -> Extract:
    """Write partitions, or ranges of them, as a separate log directory with all files that a broker requires.

    Offsets are unchanged. Batches are copied as bytes if all of their records are kept and the compression does not
    change. Transactions with copied records keep their markers, also outside the bounds.

    Parameters
    ----------
    paths : path or iterable of paths
        As in ``kraftlog.open``.
    target : path
        A new or empty folder. It gets its name when everything is on disk.
    topics : str or iterable of str, optional
        Only these topics; by default all except internal ones.
    partitions : iterable of int, optional
        Only these partitions.
    start_offset, end_offset : int, optional
        Offsets in [start_offset, end_offset), in each partition.
    start_timestamp, end_timestamp : datetime, str or int, optional
        Timestamps in [start_timestamp, end_timestamp). The log ends at the cut before ``end_timestamp``, so that no
        transaction is torn, unless ``per_partition`` is given.
    rename : mapping of str to str, optional
        New names of topics. The batches of a renamed topic get leader epoch 0, the first epoch of a new topic, and it
        has no topic id.
    committed : bool
        Only records of committed transactions and non-transactional records, up to the last stable offset.
    cut : str or Cut, optional
        As in ``kraftlog.open``: ends of partitions. Transactions that are open at the cut get an ABORT marker.
    per_partition : bool
        Compare ``end_timestamp`` with each record, which may tear transactions. A transaction that is still open at
        the time gets an ABORT marker, at the offset of its own one; with ``committed`` its records are those of a
        reader with these bounds.
    compression : {"none", "gzip", "snappy", "lz4", "zstd"}, optional
        Compression of all batches; by default unchanged.
    include_deleted : bool
        Include records before the log start offset.
    heal : bool
        Read missing or damaged offsets of the chosen replica from replicas that agree with it.
    strict : bool
        Raise at the first fault; nothing is written then.
    redact : iterable of str
        Redaction rules: ``key``, ``value``, ``header.NAME`` or a JSON path such as ``value.customer.email``, followed
        by ``=null``, ``=hash`` or ``=mask``. All batches are then rewritten.
    redact_key : bytes, optional
        HMAC key for ``hash``, at least 16 bytes.
    exclude_keys : path, optional
        A file with a key on each line, whose records are left out: UTF-8 or ``base64:...``, after a topic and a tab
        only those of this topic.

    Returns
    -------
    Extract

    Raises
    ------
    ValueError
        When the target is not empty or is inside a source, a topic does not exist, or a name is invalid.
    RecordError
        With ``strict``.
    OSError
        When a write fails. Nothing is left at the target.

    Examples
    --------
    >>> import tempfile, kraftlog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = kraftlog.extract(
    ...         "tests/golden/transactions/log", f"{folder}/copy", topics=["orders"], partitions=[0], start_offset=100
    ...     )
    ...     kraftlog.open(f"{folder}/copy").partitions[0].start_offset
    100
    """
    given_topics = names(topics)
    log = open_log(paths, topics=given_topics, partitions=partitions, cut=cut)
    options = read_options(
        start_offset=start_offset,
        end_offset=end_offset,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        isolation_level=READ_COMMITTED if committed else READ_UNCOMMITTED,
        include_deleted=include_deleted,
        heal=heal,
        strict=strict,
    )
    redaction = Redaction.of(redact, redact_key)
    return extract_log(
        *(log, local_path(target), options, rename or {}, compression, redaction),
        is_chosen=given_topics is not None,
        per_partition=per_partition,
        excluded=ExcludedKeys.of_file(exclude_keys),
    )


def extract_log(
    log: Log,
    target: Path,
    options: ReadOptions,
    rename: Mapping[str, str],
    compression: str | None = None,
    redaction: Redaction | None = None,
    *,
    is_chosen: bool = False,
    per_partition: bool = False,
    excluded: ExcludedKeys | None = None,
    on_progress: Progress | None = None,
) -> Extract:
    """Extract from an open log; ``is_chosen`` tells whether topics were named."""
    if options.end_timestamp != NO_BOUND and not per_partition:
        log = log.cut_at(CutTime(Side.AT_OR_BEFORE, options.end_timestamp - 1))
        options = replace(options, end_timestamp=NO_BOUND)
    codec = None if compression is None else compression_type(compression)
    notes = list(log.lines.notes(heals=options.heal))
    groups = chosen_partitions(log, rename, options, notes, is_chosen=is_chosen)
    check_new_folder(target, log.folders)
    done = Extract(notes=notes)
    note_unreadable(log.found, done.faults, strict=options.strict)
    excluded_records = 0
    with new_folder(target) as temporary:
        for (topic, partition), group in groups.items():
            change = None if redaction is None else redaction.records
            is_excluded = None if excluded is None else excluded.of_topic(group[0].topic)
            batches = ExtractedBatches(group, options, codec, on_progress, change, is_excluded)
            is_renamed = topic != group[0].topic
            folder = temporary / f"{topic}-{partition}"
            written = write_extracted(
                folder,
                batches.pieces(),
                index_interval_bytes=shown_interval(group[:1]),
                leader_epoch=FIRST_EPOCH if is_renamed else None,
            )
            if disk().entry(folder) is not None and not is_renamed:
                copy_topic_id(group[0], folder)
            done.partitions.append(
                ExtractedPartition(topic, partition, group[0].topic or "", written, dict(batches.open_producers))
            )
            done.faults += [fault for fault in batches.faults if fault not in done.faults]
            done.notes += [*batches.notes, *_open_notes(folder.name, batches.open_producers)]
            excluded_records += batches.excluded_records
        ends = {(one.topic, one.partition): one.written.end_offset for one in done.partitions if one.written.end_offset}
        if ends:
            record_recovery_points(temporary, ends)
    done.notes += [] if redaction is None else redaction.notes()
    done.notes += [] if excluded is None else [excluded.note(excluded_records)]
    return done


def chosen_partitions(
    log: Log, rename: Mapping[str, str], options: ReadOptions, notes: list[str], *, is_chosen: bool
) -> dict[tuple[str, int], list[Segment]]:
    """Return the segments of each partition, by its new name; notes receive offsets read from other replicas."""
    for old, new in rename.items():
        if old not in log.topics:
            raise ValueError(f"rename: there is no topic {old!r}, only {', '.join(log.topics)}")
        try:
            check_name(new, ())
        except InvalidTopicError as error:
            raise ValueError(f"rename {old}={new}: {error}") from None
    partitions: dict[tuple[str, int], list[Segment]] = {}
    files = log.healed(log.lines.found, options, notes)
    live = [one for one in files.segments if not one.state and one.base_offset is not None]
    for group in by_partition(live):
        topic, partition = group[0].topic, group[0].partition
        if topic is None or partition is None or (topic in INTERNAL_TOPICS and not is_chosen):
            continue
        if topic == CLUSTER_METADATA:
            raise ValueError(f"{topic}: a broker cannot use the metadata log of another cluster; leave it out")
        key = rename.get(topic, topic), partition
        if key in partitions:
            both = f"{partitions[key][0].folder} and {group[0].folder}"
            raise ValueError(f"{both} would both be {'-'.join(map(str, key))}; choose one of them")
        partitions[key] = group
    if not partitions:
        raise ValueError("expected a partition folder of a topic, found only internal ones, which must be named")
    return partitions


def copy_topic_id(segment: Segment, folder: Path) -> None:
    """Copy ``partition.metadata``, if there is one, to another folder of the partition."""
    path = segment.folder / PARTITION_METADATA
    if disk().entry(path) is not None:
        write_file(folder / PARTITION_METADATA, disk().read_bytes(path))


def _open_notes(name: str, producers: Mapping[int, int]) -> list[str]:
    return [
        f"{name}: the transaction of producer {producer_id} from offset {offset} on has no end in the log: "
        "consumers with read_committed stop there; --committed leaves it out"
        for producer_id, offset in sorted(producers.items())
    ]
