"""``kraftlog.replay``: produces the records of a log directory to a live broker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.extract import chosen_partitions
from kraftlog.broker.client import Client, Place
from kraftlog.broker.mapping import MappingFile
from kraftlog.broker.pace import Pace
from kraftlog.broker.run import Replay, ReplayRun, start_of
from kraftlog.broker.state import State, path_of
from kraftlog.broker.target import batch_bytes, check_empty, check_topics
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.layout.discover import Discovery, LogPaths
from kraftlog.layout.segment import Segment
from kraftlog.log_store.errors import InvalidTopicError
from kraftlog.log_store.topics import check_name
from kraftlog.metadata.image import Image
from kraftlog.read.log_pass import Progress
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.unread_files import note_unreadable
from kraftlog.tables.user_options import read_options
from kraftlog.topics import INTERNAL_TOPICS, names

DEFAULT_TIMEOUT = 60.0


def replay(
    paths: LogPaths,
    to: str,
    mapping: str | Path,
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: datetime | str | int | None = None,
    end_timestamp: datetime | str | int | None = None,
    rename: Mapping[str, str] | None = None,
    create_topics: bool = False,
    append: bool = False,
    rate: int | str | None = None,
    compression: str | None = None,
    include_deleted: bool = False,
    heal: bool = True,
    strict: bool = False,
    client_settings: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    redact: Iterable[str] = (),
    redact_key: bytes | None = None,
    exclude_keys: str | Path | None = None,
) -> Replay:
    """Produce the records of partitions to a live broker: those that a ``read_committed`` consumer would get.

    Keys, values, partitions, timestamps and headers are unchanged. Records are sent in transactions, each of which
    commits the source offset in a group of the target. After a crash or a lost broker, the same call with the same
    mapping resumes after the last committed transaction; no record is lost or duplicated. A transaction of the log is
    never divided: its records in one partition become visible together.

    Parameters
    ----------
    paths : path or iterable of paths
        As in ``kraftlog.open``.
    to : str
        HOST:PORT of one or more brokers, separated by commas.
    mapping : path
        The file with the offset mapping, as CSV with the columns ``source_topic``, ``partition``, ``source_offset``,
        ``target_topic``, ``target_offset`` and ``records_count``: a line for records that are consecutive on both
        sides, and at the end one with a count of 0 for each partition. A file next to it that ends in ``.state`` has
        the options of the replay.
    topics : str or iterable of str, optional
        Only these topics; by default all except internal ones.
    partitions : iterable of int, optional
        Only these partitions.
    start_offset, end_offset : int, optional
        Offsets in [start_offset, end_offset), in each partition.
    start_timestamp, end_timestamp : datetime, str or int, optional
        Timestamps in [start_timestamp, end_timestamp).
    rename : mapping of str to str, optional
        New names of topics.
    create_topics : bool
        Create missing topics with the same number of partitions and the target's default settings.
    append : bool
        Allow target partitions with records.
    rate : int or str, optional
        Maximum records per second, or bytes of keys and values, such as ``"10MB"``.
    compression : {"none", "gzip", "snappy", "lz4", "zstd"}, optional
        Compression of the produced batches; default: none.
    include_deleted : bool
        Include records before the log start offset.
    heal : bool
        Read missing or damaged offsets of the chosen replica from replicas that agree with it.
    strict : bool
        Raise at the first fault; committed records remain.
    client_settings : mapping of str to str, optional
        Properties of librdkafka, such as ``security.protocol``.
    timeout : float
        Seconds after which a broker that does not answer is given up.
    redact : iterable of str
        Redaction rules, as in ``kraftlog.extract``.
    redact_key : bytes, optional
    exclude_keys : path, optional
        A file with a key on each line, whose records are left out: UTF-8 or ``base64:...``, after a topic and a tab
        only those of this topic.

    Returns
    -------
    Replay

    Raises
    ------
    ReplayError
        When the target lacks a topic or partitions, holds records already, refuses a record, or does not answer.
    ValueError
        When the mapping belongs to another replay, a topic does not exist, or a setting is invalid.
    RecordError
        With ``strict``.
    ImportError
        When confluent-kafka is not installed.

    Examples
    --------
    >>> import kraftlog
    >>> done = kraftlog.replay(  # doctest: +SKIP
    ...     "backup", "localhost:9092", "orders.csv", topics=["orders"], create_topics=True
    ... )
    >>> [(one.topic, one.partition, one.records) for one in done.partitions]  # doctest: +SKIP
    [('orders', 0, 118), ('orders', 1, 60), ('orders', 2, 29)]
    """
    paths = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, str) else paths
    given_topics = names(topics)
    options = read_options(
        start_offset=start_offset,
        end_offset=end_offset,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        isolation_level=READ_COMMITTED,
        include_deleted=include_deleted,
        heal=heal,
        strict=strict,
    )
    redaction = Redaction.of(redact, redact_key)
    whole = open_log(paths, topics=given_topics)
    return replay_log(
        whole if partitions is None else open_log(paths, topics=given_topics, partitions=partitions),
        whole,
        Target(
            *(to, Path(mapping), create_topics, append, rate, compression, client_settings or {}, timeout, redaction),
            ExcludedKeys.of_file(exclude_keys),
        ),
        options,
        rename or {},
        is_chosen=given_topics is not None,
    )


@dataclass(frozen=True)
class Target:
    """Target and options of a replay, as in ``replay``."""

    to: str
    mapping: Path
    creates: bool = False
    appends: bool = False
    rate: int | str | None = None
    compression: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT
    redaction: Redaction | None = None
    excluded: ExcludedKeys | None = None


def replay_log(
    log: Log,
    whole: Log,
    target: Target,
    options: ReadOptions,
    rename: Mapping[str, str],
    *,
    is_chosen: bool = False,
    on_progress: Progress | None = None,
) -> Replay:
    """Replay from an open log.

    ``whole`` has all partitions, including those that are not replayed; ``is_chosen`` tells whether topics were named.
    """
    notes = list(log.lines.notes(heals=options.heal))
    groups = chosen_partitions(log, rename, options, notes, is_chosen=is_chosen)
    done = Replay(notes=notes)
    note_unreadable(log.found, done.faults, strict=options.strict)
    topics = {group[0].topic for group in groups.values()}

    def counts() -> Mapping[str, int]:
        known = _counts_of(whole, topics, notes)
        return {rename.get(topic, topic): count for topic, count in known.items()}

    replay_partitions(groups, counts, target, options, rename, done, on_progress)
    return done


def replay_partitions(
    groups: Mapping[Place, list[Segment]],
    counts: Callable[[], Mapping[str, int]],
    target: Target,
    options: ReadOptions,
    rename: Mapping[str, str],
    done: Replay,
    on_progress: Progress | None = None,
) -> None:
    """Replay the segments of partitions.

    Parameters
    ----------
    groups : mapping
        Segments by topic and partition of the target.
    counts : callable
        Returns the partition counts of the target's topics, for those that it lacks.
    target : Target
    options : ReadOptions
    rename : mapping of str to str
    done : Replay
        Receives the result.
    on_progress : callable, optional
    """
    pace = Pace(target.rate)
    _check_names(groups)
    found = State.read(target.mapping)
    redact = [] if target.redaction is None else target.redaction.identity
    redact += [] if target.excluded is None else [target.excluded.identity]
    asked = State.new("", _bounds(options), dict(rename), redact)
    client = Client(target.to, (found or asked).name, target.settings, target.timeout)
    asked = replace(asked, cluster_id=client.cluster_id())
    if found is not None:
        found.check(target.mapping, asked)
    with closing(client):
        check_topics(client, _counts(groups), counts, creates=target.creates)
        state = found or asked
        new = {place: start_of(segments, options) for place, segments in groups.items() if place not in state.starts}
        if not target.appends:
            check_empty(client, new)
        state = state.with_starts(new)
        if state != found:
            state.write(target.mapping)
        try:
            lock = disk().lock(path_of(target.mapping))
        except BlockingIOError:
            raise ValueError(f"{target.mapping}: another replay is writing it") from None
        with lock:
            configs = client.configs(sorted({topic for topic, _ in groups}))
            client.open(target.compression, batch_bytes(configs))
            reached = client.reached(state.starts)
            if disk().entry(target.mapping) is not None:
                file = MappingFile.settle(target.mapping, state.starts, reached, groups)
            elif reached.items() <= state.starts.items():
                file = MappingFile.make(target.mapping)
            else:
                raise ValueError(f"{target.mapping} is missing, but part of the replay was committed: restore the file")
            with closing(file):
                client.begin()
                client.commit(reached := state.starts | reached)
                run = ReplayRun(
                    client, file, pace, options, configs, done, on_progress, target.redaction, target.excluded
                )
                for place, segments in groups.items():
                    run.partition(place, segments, reached[place])
                run.finish()
    done.notes += [] if target.redaction is None else target.redaction.notes()


def _bounds(options: ReadOptions) -> dict[str, int]:
    names = ("start_offset", "end_offset", "start_timestamp", "end_timestamp")
    return {name: value for name in names if abs(value := getattr(options, name)) != NO_BOUND}


def _counts(groups: Mapping[Place, list[Segment]]) -> dict[str, int]:
    """Return the required number of partitions of each target topic."""
    counts: dict[str, int] = {}
    for topic, partition in groups:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts


def _counts_of(log: Log, topics: Collection[str | None], notes: list[str]) -> dict[str, int]:
    """Return the number of partitions of topics.

    A directory has folders only of the partitions that lie in it: the metadata log knows how many there are.
    """
    counts: dict[str, int] = {}
    for segment in log.found.segments:
        if segment.topic in topics and segment.topic is not None and segment.partition is not None:
            counts[segment.topic] = max(counts.get(segment.topic, 0), segment.partition + 1)
    known: dict[str, int] = {}
    if log.found.metadata_log:
        at = log.of_files(Discovery(segments=log.found.metadata_log)).image(strict=False)
        known = partition_counts(at.image)
        notes += [f"the metadata log may lack partitions: {fault.message}" for fault in at.faults[:1]]
    for topic in sorted(counts.keys() - known.keys()):
        notes.append(
            f"{topic}: its number of partitions is taken from the folders, {counts[topic]}, since no metadata log among"
            " the files has the topic; a log directory may lack some"
        )
    return {topic: max(count, known.get(topic, 0)) for topic, count in counts.items()}


def partition_counts(image: Image) -> dict[str, int]:
    """Return the number of partitions of each topic of a metadata image."""
    tables = image.tables(["TopicRecord", "PartitionRecord"])
    names = {row["topic_id"]: row["name"] for row in tables["TopicRecord"].select(["topic_id", "name"]).to_pylist()}
    counts: dict[str, int] = {}
    for row in tables["PartitionRecord"].select(["topic_id", "partition_id"]).to_pylist():
        if (name := names.get(row["topic_id"])) is not None:
            counts[name] = max(counts.get(name, 0), row["partition_id"] + 1)
    return counts


def _check_names(groups: Mapping[Place, list[Segment]]) -> None:
    for topic, _ in groups:
        if topic in INTERNAL_TOPICS:
            raise ValueError(f"{topic} belongs to the coordinators of a cluster: brokers do not accept records for it")
        try:
            check_name(topic, ())
        except InvalidTopicError as error:
            raise ValueError(str(error)) from None
