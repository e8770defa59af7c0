"""``kraftlog.open``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kraftlog.disk.remote_path import StorageOptions
from kraftlog.layout.discover import AnyPath, Discovery, PathLike, discover
from kraftlog.tables.log import Log
from kraftlog.tables.user_options import catalog_of


def open(
    paths: AnyPath | Iterable[AnyPath],
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    as_topic: str | None = None,
    definitions: PathLike | None = None,
    storage_options: StorageOptions | None = None,
) -> Log:
    """Open log files for reading. Lists folders; decodes nothing.

    Parameters
    ----------
    paths : path or iterable of paths
        A segment file (``.log``, or a ``.checkpoint`` snapshot), a partition's folder, a log directory, or a glob. On
        another file system a URI: ``s3://bucket/logs``, or any that pyarrow or fsspec knows.
    topics : iterable of str, optional
        Only these topics.
    partitions : iterable of int, optional
        Only these partitions.
    as_topic : str, optional
        The topic of files that lie in no partition's folder, such as a copy of one segment of ``__consumer_offsets``.
    definitions : path, optional
        A folder of Kafka's own JSON definitions of messages, of the release that wrote the log; they take the place of
        those of the same records that this package brings.
    storage_options : mapping, optional
        For the file systems of URIs: of S3 the arguments of ``pyarrow.fs.S3FileSystem``, such as region and
        endpoint_override; of others in pyarrow the names that their URIs may have in a query; else what fsspec takes
        as ``storage_options``.

    Returns
    -------
    Log

    Raises
    ------
    FileNotFoundError
        When a path does not exist.
    ValueError
        When a folder holds no log files, or none of the topics or partitions asked for.

    Examples
    --------
    >>> import kraftlog
    >>> log = kraftlog.open("tests/golden/codecs/log", topics=["codec-lz4"])
    >>> log.segments().column("records").to_pylist()
    [341, 410]
    """
    if isinstance(topics, str):
        topics = [topics]
    found = discover(paths, storage_options)
    if as_topic is not None:
        known = [
            segment if segment.topic is not None else replace(segment, topic=as_topic) for segment in found.segments
        ]
        found = replace(found, segments=known)
    if topics is not None or partitions is not None:
        wanted_topics = None if topics is None else set(topics)
        wanted_partitions = None if partitions is None else set(partitions)

        def is_wanted(item: object) -> bool:
            topic, partition = getattr(item, "topic", None), getattr(item, "partition", None)
            return (wanted_topics is None or topic in wanted_topics) and (
                wanted_partitions is None or partition in wanted_partitions
            )

        there = sorted({f"{s.topic}-{s.partition}" for s in found.segments})
        found = Discovery(*[[item for item in kind if is_wanted(item)] for kind in vars(found).values()])
        if not found.segments:
            raise ValueError(f"no partition of those asked for; there are {', '.join(there)}")
    return Log(found, catalog_of(definitions))
