"""Selection of a topic and a cluster, if folders with the same name belong to several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import META_PROPERTIES, read_properties
from kraftlog.layout.names import PARTITION_METADATA
from kraftlog.layout.segment import Segment
from kraftlog.layout.tier.object_names import parse_folder
from kraftlog.layout.unread import Unread

IDS_SHOWN = 10


@dataclass(frozen=True)
class Identity:
    """Selects topics and a cluster; one of the paths of a log.

    Folders without a topic id and directories without a cluster id are included.

    Attributes
    ----------
    topic_ids : tuple of str
        Ids of the topics to read, if several topics have the same name: a topic that was deleted and recreated has
        another id. Other topics are not affected.
    cluster_id : str or None
        Only directories of this cluster.

    Examples
    --------
    >>> import kraftlog
    >>> paths = ["tests/golden/transactions/log", kraftlog.Identity(topic_ids=("911PgdAUTfK0_8FSda0bUA",))]
    >>> kraftlog.open(paths).topics
    ['__consumer_offsets', '__transaction_state', 'orders']
    """

    topic_ids: tuple[str, ...] = ()
    cluster_id: str | None = None

    def others(self, segments: Iterable[Segment], unread: list[Unread]) -> set[LogPath]:
        """Return the folders and log directories of other topics and clusters.

        Parameters
        ----------
        segments : iterable of Segment
        unread : list of Unread
            Receives unreadable files; their folders are included.

        Raises
        ------
        ValueError
            When nothing belongs to a requested topic, or to the cluster.
        """
        folders = {one.folder.absolute(): one for one in segments if one.topic_partition is not None}
        others = set[LogPath]()
        if self.cluster_id is not None:
            directories = {folder.parent: one for folder, one in folders.items() if not one.stored}
            clusters = _known(directories, lambda path, one: _cluster_id(path), unread)
            _check_is_there("cluster id", {self.cluster_id}, clusters.values())
            others |= {path for path, of in clusters.items() if of != self.cluster_id}
        if self.topic_ids:
            topics = _known(folders, _topic_id, unread)
            _check_is_there("topic id", self.topic_ids, topics.values())
            names = {folders[folder].topic for folder, of in topics.items() if of in self.topic_ids}
            others |= {
                folder for folder, of in topics.items() if of not in self.topic_ids and folders[folder].topic in names
            }
        return others


def _check_is_there(what: str, identities: Collection[str], present: Collection[str]) -> None:
    for one in identities:
        if one not in present:
            there = sorted(set(present))
            more = f" and {len(there) - IDS_SHOWN} more" if len(there) > IDS_SHOWN else ""
            raise ValueError(f"nothing has the {what} {one}; there are {', '.join(there[:IDS_SHOWN]) or 'none'}{more}")


def _known(
    places: dict[LogPath, Segment], identity: Callable[[LogPath, Segment], str | None], unread: list[Unread]
) -> dict[LogPath, str]:
    """Return the identities of the places that have one."""
    identities: dict[LogPath, str] = {}
    for path, of in places.items():
        try:
            value = identity(path, of)
        except FileNotFoundError:
            continue
        except (OSError, CorruptRecordError) as error:
            unread.append(Unread(path, 0, str(error), of.topic, of.partition, error="bad_checkpoint"))
            continue
        if value is not None:
            identities[path] = value
    return identities


def _cluster_id(directory: LogPath) -> str | None:
    return read_properties(directory / META_PROPERTIES).get("cluster.id")


def _topic_id(folder: LogPath, of: Segment) -> str | None:
    stored = parse_folder(folder) if of.stored else None
    return read_properties(folder / PARTITION_METADATA).get("topic_id") if stored is None else stored.topic_id
