"""The arguments of a replay, in a file next to its mapping: the next start must have the same."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.topics import REPLAY_GROUP

ENDING = ".state"
_VERSION = 1


@dataclass(frozen=True)
class State:
    """The arguments that must stay the same between the starts of a replay.

    Attributes
    ----------
    name : str
        The transactional id, and the group at the target whose offsets are the progress of the replay.
    cluster_id : str
        Cluster id of the target.
    bounds : dict
        Bounds of offsets and timestamps that were set.
    rename : dict
        New names of topics.
    places : dict
        Partitions of the target, which were empty or allow appends, with the offset of the log at which each begins.
    redact : list of str
        Rules of redaction, and a check of their key; and a digest of the keys whose records are left out.
    """

    name: str
    cluster_id: str
    bounds: dict[str, int]
    rename: dict[str, str]
    places: dict[str, int]
    redact: list[str] = field(default_factory=list)

    @classmethod
    def new(cls, cluster_id: str, bounds: dict[str, int], rename: dict[str, str], redact: list[str]) -> State:
        """Begin a replay."""
        return cls(f"{REPLAY_GROUP}{uuid.uuid4()}", cluster_id, bounds, rename, {}, redact)

    @classmethod
    def read(cls, mapping: Path) -> State | None:
        """Return the state next to a mapping; None without one.

        Raises
        ------
        ValueError
            When it is not a state, or one of the two files is missing.
        """
        path = path_of(mapping)
        has_state, has_mapping = (disk().entry(one) is not None for one in (path, mapping))
        if has_mapping and not has_state:
            raise ValueError(f"{mapping} exists, but {path} does not: choose the name of a new file")
        if not has_state:
            return None
        try:
            fields = json.loads(disk().read_bytes(path))
            if fields.pop("version") != _VERSION:
                raise ValueError("of another version")
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is not the state of a replay: {error}") from None

    def write(self, mapping: Path) -> None:
        """Write it, and sync."""
        write_file(path_of(mapping), json.dumps({"version": _VERSION, **asdict(self)}, indent=1).encode() + b"\n")

    def check(self, mapping: Path, asked: State) -> None:
        """Raise ValueError for other arguments."""
        for name in ("cluster_id", "bounds", "rename", "redact"):
            was, now = getattr(self, name), getattr(asked, name)
            if was != now:
                raise ValueError(
                    f"{mapping} is of a replay with {name} {was or 'none'}, this one has {now or 'none'}: choose the"
                    " name of a new file, or continue with the same"
                )

    @property
    def starts(self) -> dict[tuple[str, int], int]:
        """The first offsets of partitions."""
        parts = ((name.rpartition("-"), offset) for name, offset in self.places.items())
        return {(topic, int(partition)): offset for (topic, _, partition), offset in parts}

    def with_starts(self, starts: Mapping[tuple[str, int], int]) -> State:
        """Return the state with more partitions."""
        more = {f"{topic}-{partition}": offset for (topic, partition), offset in starts.items()}
        return replace(self, places={**self.places, **more})


def path_of(mapping: Path) -> Path:
    """Return the path of the state of a replay."""
    return mapping.with_name(mapping.name + ENDING)
