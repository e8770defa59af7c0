"""The names of the files that a writer makes."""

from __future__ import annotations

from pathlib import Path


def segment_file(folder: Path, base_offset: int, kind: str = "log") -> Path:
    """Return the path of a file of a segment, or of a ``.snapshot`` at an offset."""
    return folder / segment_name(base_offset, kind)


def segment_name(base_offset: int, kind: str = "log") -> str:
    """Return the name of such a file."""
    return f"{base_offset:020d}.{kind}"
