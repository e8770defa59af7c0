"""A cache of metadata images outside of log directories: the next read of a long log replays only new records.

An entry is a snapshot in the format of a Kafka controller, in its own folder:

``<folder>/<format>/<cluster id>/<CRC of the last batch>/<end offset>-<epoch>.checkpoint``

It is an image of a log with this batch: two logs of a cluster with the same epoch and offset of a batch agree in
everything before it. An entry without a matching batch in the log is skipped; an unreadable one is removed. Images of
logs with faults are not kept, so that the faults are reported each time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import read_properties
from kraftlog.layout.discover import discover
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata_log.files import MetadataLog, Snapshot, snapshot_of
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_snapshot import write_image

LEAST_RECORDS = 1_000_000  # a tenth of a second; fewer are not worth an entry
MOST_KEPT = 4  # images kept of a cluster
_FORMAT = "1"  # changes when snapshots of an older kraftlog are incomplete
_UNKNOWN_CLUSTER = "unknown"

_LOGGER = logging.getLogger("kraftlog")


def default_folder() -> Path:
    """Return the folder of the user's cache: ``$XDG_CACHE_HOME/kraftlog/images``, or the same below ``~/.cache``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "kraftlog" / "images"


class ImageCache:
    """Images of metadata logs in a folder that may be removed at any time.

    Parameters
    ----------
    folder : Path, optional
        By default ``default_folder()``.
    least_records : int
        Minimum number of replayed records for an image to be kept.

    Examples
    --------
    >>> import tempfile
    >>> from kraftlog.metadata_log.files import MetadataLog
    >>> from kraftlog.metadata_log.image import image_at
    >>> log = MetadataLog.open("tests/golden/metadata/log")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = ImageCache(Path(folder), least_records=1)
    ...     kept = image_at(log, 85, [], use_snapshots=False, cache=cache)
    ...     [snapshot.end_offset for snapshot in cache.snapshots(log)]
    [86]
    """

    def __init__(self, folder: Path | None = None, *, least_records: int = LEAST_RECORDS) -> None:
        self._folder = (default_folder() if folder is None else folder) / _FORMAT
        self._least_records = least_records

    def snapshots(self, log: MetadataLog) -> list[Snapshot]:
        """Return the kept images of a log, the latest first."""
        try:
            return sorted(self._fitting(log), key=lambda one: one.end_offset, reverse=True)
        except (OSError, ValueError) as error:  # equivalent to an empty cache
            _LOGGER.debug("the cache of images cannot be read: %s", error)
            return []

    def keep(self, log: MetadataLog, at: ImageAt, replayed: int) -> None:
        """Keep an image, if it took many records and can be written as a snapshot."""
        if (
            replayed < self._least_records
            or at.open_since is not None
            or not at.is_offset_batch_aligned
            or at.epoch < 0
        ):
            return
        batch = log.batch_at(at.offset)
        if batch is None:
            return
        try:
            folder = self._folder / _cluster_of(log) / _identity(batch)[0]
            disk().make_folder(self._folder)
            self._folder.chmod(0o700)  # the images contain credentials
            disk().make_folder(folder)
            records = ((name, BUILT_IN.messages[name].versions.last, rows) for name, rows in at.image.records())
            with suppress(FileExistsError):
                write_image(folder, at, records)
            self._remove_others(log)
        except OSError as error:  # a full disk or a read-only home: the image is still valid
            _LOGGER.debug("an image is not kept: %s", error)

    def drop(self, snapshot: Snapshot) -> None:
        """Remove an image that could not be read."""
        path = snapshot.segment.path
        assert isinstance(path, Path)
        _LOGGER.debug("%s: removed from the cache, as it cannot be read", path)
        with suppress(OSError):
            disk().remove_tree(path.parent)

    def _fitting(self, log: MetadataLog) -> Iterator[Snapshot]:
        cluster = self._folder / _cluster_of(log)
        for entry in disk().entries(cluster) if disk().entry(cluster) is not None else []:
            for path in disk().matches(cluster / entry.name, "[0-9]*-[0-9]*.checkpoint"):
                (segment,) = discover(path).segments
                snapshot = snapshot_of(segment)
                batch = log.batch_at(snapshot.end_offset - 1)
                expected = entry.name, snapshot.end_offset, snapshot.epoch
                if batch is not None and _identity(batch) == expected:
                    yield snapshot

    def _remove_others(self, log: MetadataLog) -> None:
        """Remove the cluster's images of other logs, and the older ones of this log."""
        newest = {snapshot.segment.path.parent.name for snapshot in self.snapshots(log)[:MOST_KEPT]}
        cluster = self._folder / _cluster_of(log)
        for entry in disk().entries(cluster):
            if entry.name not in newest:
                disk().remove_tree(cluster / entry.name)


def _identity(batch: Headers) -> tuple[str, int, int]:
    """Return the CRC of a batch, the offset after it and its leader epoch."""
    return f"{int(batch['crc'][0]):08x}", int(last_offsets(batch)[0]) + 1, int(batch["partition_leader_epoch"][0])


def _cluster_of(log: MetadataLog) -> str:
    """Return the cluster id from the log directory; a fixed word for a log elsewhere."""
    path = log.segments[0].folder.absolute().parent / "meta.properties"
    with suppress(OSError, CorruptRecordError):
        cluster = read_properties(path).get("cluster.id", "")
        if cluster and all(letter.isalnum() or letter in "-_" for letter in cluster):
            return cluster
    return _UNKNOWN_CLUSTER
