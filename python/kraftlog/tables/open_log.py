"""``kraftlog.open``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from kraftlog.disk.remote_path import AnyPath, PathLike, StorageOptions
from kraftlog.layout.discover import Discovery, LogPaths, discover, each_path
from kraftlog.layout.identity import Identity
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.tables.log import Log
from kraftlog.tables.user_options import catalog_of, given_numbers
from kraftlog.topics import names
from kraftlog.transactions.cut import Cut, CutTime

NAMES_SHOWN = 10


def open(
    paths: LogPaths = (),
    *,
    remote_tier: AnyPath | None = None,
    tier_keys: Mapping[str, AnyPath] | None = None,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    topic_ids: Iterable[str] | None = None,
    cluster_id: str | None = None,
    as_topic: str | None = None,
    definitions: PathLike | None = None,
    storage_options: StorageOptions | None = None,
    cut: str | CutTime | Cut | None = None,
) -> Log:
    """Open log files for reading. Lists folders; decodes nothing.

    Parameters
    ----------
    paths : path or iterable of paths
        A segment file (``.log``, or a ``.checkpoint`` snapshot), a partition's folder, a log directory, or a glob; or a
        backup, as ``kraftlog.Repository`` describes. On another file system a URI: ``s3://bucket/logs``, or any other
        that pyarrow or fsspec supports. Optional with ``remote_tier``.
    remote_tier : path, optional
        Tiered storage of the brokers: a folder or URI, in the layout of Aiven's plugin or of Kafka's
        ``LocalTieredStorage``. Its segments are read up to the start of the log directories.
    tier_keys : mapping of str to path, optional
        Private keys in PEM files, by the names of their key pairs, for segments encrypted by Aiven's plugin.
    topics : str or iterable of str, optional
        Only these topics.
    partitions : iterable of int, optional
        Only these partitions.
    topic_ids : str or iterable of str, optional
        Ids of the topics to read, if several topics have the same name; topics with other names are read as well. A
        topic that was deleted and recreated has another id, in ``partition.metadata``.
    cluster_id : str, optional
        Only directories of this cluster, by ``meta.properties``, and those without a cluster id.
    as_topic : str, optional
        Topic of files outside a partition's folder, such as a single copied segment of ``__consumer_offsets``.
    definitions : path, optional
        Folder with Kafka's JSON message definitions of the release that wrote the log; they replace the built-in
        definitions of the same records.
    storage_options : mapping, optional
        Options of the file systems of URIs. For S3: arguments of ``pyarrow.fs.S3FileSystem``, such as region and
        endpoint_override; for others of pyarrow: query parameters of their URIs; for fsspec: its ``storage_options``.
    cut : str or Cut, optional
        Read the log up to a cut, at which no transaction is torn, and no transaction has committed an offset after the
        end of the log: ``at-or-before:TIME``, the greatest cut without markers and plain records later than the time;
        ``at-or-after:TIME``, the least cut with all of them up to the time; ``end``, the greatest cut; or ends of
        partitions (``Log.cut``). Transactions that are open at the cut count as aborted. Only opened partitions are
        considered: with ``topics``, a transaction may have others. The headers of all batches are read.

    Returns
    -------
    Log

    Raises
    ------
    FileNotFoundError
        When a path does not exist.
    ValueError
        When a folder contains no log files or a file is not a log, a requested topic or id does not exist, or none of
        the partitions exists; when there is no such cut.

    Examples
    --------
    >>> import kraftlog
    >>> log = kraftlog.open("tests/golden/codecs/log", topics=["codec-lz4"])
    >>> log.segments().column("records").to_pylist()
    [341, 410]
    """
    topics, topic_ids = names(topics), names(topic_ids)
    numbers = given_numbers("partitions", partitions)
    wanted_topics = None if topics is None else set(topics)
    wanted_partitions = None if numbers is None else set(numbers)

    def is_wanted(topic: str | None, partition: int | None) -> bool:
        is_topic = wanted_topics is None or topic in wanted_topics
        return is_topic and (wanted_partitions is None or partition in wanted_partitions)

    given = each_path(paths)
    paths = [path for path in given if not isinstance(path, CutTime)]
    cut = next((path for path in given if isinstance(path, CutTime)), cut)
    every = with_tier(paths, remote_tier, tier_keys)
    if topic_ids is not None or cluster_id is not None:
        every = [*each_path(every), Identity(tuple(topic_ids or ()), cluster_id)]
    is_some = wanted_topics is not None or wanted_partitions is not None
    found = discover(every, storage_options, is_wanted if is_some else None)
    if as_topic is not None:
        known = [
            segment if segment.topic is not None else replace(segment, topic=as_topic) for segment in found.segments
        ]
        found = replace(found, segments=known)
    if is_some:
        wanted = found.only(is_wanted)
        unreadable = {one.topic for one in wanted.unread if one.is_fault}
        known_topics = {one.topic for one in found.segments} | unreadable
        known_topics |= {one.topic for one in found.empty_partitions}
        is_any = bool(wanted.segments or wanted.empty_partitions or unreadable)
        if not is_any or (wanted_topics is not None and not wanted_topics <= known_topics):
            raise ValueError(_not_there(found, wanted_topics, wanted_partitions))
        found = wanted
    log = Log(found, catalog_of(definitions))
    cut = found.cut if cut is None else cut
    if cut is None:
        return log
    return log.at(cut) if isinstance(cut, Cut) else log.cut_at(CutTime.of(cut) if isinstance(cut, str) else cut)


def with_tier(paths: LogPaths, remote_tier: AnyPath | None, tier_keys: Mapping[str, AnyPath] | None) -> LogPaths:
    """Return paths, including the remote tier.

    Raises
    ------
    ValueError
        When there are keys without a remote tier.
    """
    if remote_tier is None:
        if tier_keys:
            raise ValueError(f"keys of a remote tier were given ({', '.join(sorted(tier_keys))}), but no remote tier")
        return paths
    return [*each_path(paths), RemoteTier(remote_tier, dict(tier_keys or {}))]


def _not_there(found: Discovery, topics: set[str] | None, partitions: set[int] | None) -> str:
    """Return which requested topics and partitions do not exist, and which do."""
    there: dict[str, set[int]] = {}
    for segment in found.segments:
        if segment.topic is not None and segment.partition is not None:
            there.setdefault(segment.topic, set()).add(segment.partition)
    for topic, partition in found.not_wanted:
        there.setdefault(topic, set()).add(partition)
    if not there:
        return "no partition's folder among the files; topics and partitions are those of folders such as orders-0"
    unknown = sorted((topics or set()) - there.keys())
    if unknown:
        return no_such_topics(unknown, there)
    asked = ", ".join(map(str, sorted(partitions or ())))
    has = [f"{topic}-{number}" for topic in sorted(topics or there) for number in sorted(there[topic])]
    return f"no partition {asked} of those asked for. There are {some_names(has)}"


def no_such_topics(unknown: list[str], there: Iterable[str]) -> str:
    """Return a message that requested topics do not exist, with the existing ones."""
    names = sorted(there)
    return f"no {_unknown(unknown, names)} There are {some_names(names) or 'none'}"


def _unknown(topics: list[str], there: Iterable[str]) -> str:
    """Return the unknown names, with similar existing ones."""
    near = {topic: " or ".join(get_close_matches(topic, there, cutoff=0.5)) for topic in topics[:NAMES_SHOWN]}
    if len(topics) == 1:
        return f"topic {topics[0]!r}" + (f"; did you mean {near[topics[0]]}?" if near[topics[0]] else ".")
    names = [f"{topic!r}" + (f" (did you mean {names}?)" if names else "") for topic, names in near.items()]
    return f"topics {some_names(names, len(topics))}."


def none_wanted(found: Discovery) -> str:
    """Return a message that none of the requested partitions exists, with the existing ones."""
    there = {(one.topic, one.partition) for one in found.segments if one.topic is not None}
    folders = [f"{topic}-{number}" for topic, number in sorted(there)]
    return f"no partition of those asked for. There are {some_names(folders)}"


def some_names(names: list[str], count: int | None = None) -> str:
    """Return the first names, and the number of the others; ``count`` is the total if the list is incomplete."""
    more = (count or len(names)) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
