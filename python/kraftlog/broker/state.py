"""What a replay was asked for, in a file beside its mapping: the next start must ask for the same."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file

ENDING = ".state"
_VERSION = 1


@dataclass(frozen=True)
class State:
    """What must stay as it is over the starts of a replay.

    Attributes
    ----------
    name : str
        The transactional id, and the group that keeps at the target how far the replay came.
    cluster_id : str
        Of the target.
    bounds : dict
        Of offsets and timestamps; those that were not given are missing.
    rename : dict
        New names of topics.
    places : dict
        Partitions of the target, which were found empty, or are to be appended to, with the offset of the log at which
        each begins.
    redact : list of str
        Rules of redaction, and a check of their key.
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
        return cls(f"kraftlog-replay-{uuid.uuid4()}", cluster_id, bounds, rename, {}, redact)

    @classmethod
    def read(cls, mapping: Path) -> State | None:
        """Return what is beside a mapping; None where there is nothing yet.

        Raises
        ------
        ValueError
            When it is no state, or one of the two files is missing.
        """
        path = path_of(mapping)
        has_state, has_mapping = (disk().entry(one) is not None for one in (path, mapping))
        if has_mapping and not has_state:
            raise ValueError(f"{mapping} is there, but not {path}: give the name of a new file")
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
        """Put it on disk."""
        write_file(path_of(mapping), json.dumps({"version": _VERSION, **asdict(self)}, indent=1).encode() + b"\n")

    def check(self, mapping: Path, asked: State) -> None:
        """Raise ValueError when something else is asked for."""
        for name in ("cluster_id", "bounds", "rename", "redact"):
            was, now = getattr(self, name), getattr(asked, name)
            if was != now:
                raise ValueError(
                    f"{mapping} is of a replay with {name} {was or 'none'}, and {now or 'none'} is asked for: give the"
                    " name of a new file, or go on with the same"
                )

    @property
    def starts(self) -> dict[tuple[str, int], int]:
        """Where partitions begin."""
        parts = ((name.rpartition("-"), offset) for name, offset in self.places.items())
        return {(topic, int(partition)): offset for (topic, _, partition), offset in parts}

    def with_starts(self, starts: Mapping[tuple[str, int], int]) -> State:
        """Return the state with more partitions."""
        more = {f"{topic}-{partition}": offset for (topic, partition), offset in starts.items()}
        return replace(self, places={**self.places, **more})


def path_of(mapping: Path) -> Path:
    """Return where the state of a replay is."""
    return mapping.with_name(mapping.name + ENDING)
