"""JSON paths of a log's values that are similar to a path that no value has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice

from kraftlog.layout.segment import Segment
from kraftlog.tables.json_path import JsonPath, NotJsonError, parse
from kraftlog.values.first_values import first_values

VALUES_OF_A_PARTITION, VALUES = 200, 2_000
MOST_PATHS = 10_000
DEEPEST = 20
_NAME = re.compile(r"[^.\[\]='\"<>!]+")


def near_paths(paths: Sequence[JsonPath], segments: Sequence[Segment]) -> Iterator[str]:
    """Return a sentence for each path that none of the first values has, with similar paths that they have.

    Values that are not JSON are skipped. A path without similar ones has no sentence.

    Parameters
    ----------
    paths : sequence of JsonPath
    segments : sequence of Segment
    """
    batches = first_values(segments, "value", VALUES_OF_A_PARTITION)
    values = islice((value for batch in batches for value in batch.to_pylist() if value is not None), VALUES)
    documents = list(_documents(values))
    there = dict.fromkeys(islice((path for one in documents for path in _paths(one)), MOST_PATHS))
    for path in paths:
        if any(True for document in documents for _ in path.values(document)):
            continue
        near = get_close_matches(_plain(path.text), there)
        if near:
            count = f"of the first {len(documents):,} JSON values has"
            yield f"none {count} the path {path.text!r}; did you mean {' or '.join(near)}?"


def _documents(values: Iterator[bytes]) -> Iterator[object]:
    for value in values:
        try:
            yield parse(value)
        except NotJsonError:
            continue


def _paths(document: object, path: str = "", depth: int = 0) -> Iterator[str]:
    """Return the paths in a document, as users write them; items of an array are ``[*]``."""
    if path:
        yield path
    if depth == DEEPEST:
        return
    if isinstance(document, dict):
        for name, value in document.items():
            step = name if _NAME.fullmatch(name) else f"['{name}']"
            dot = "." if path and not step.startswith("[") else ""
            yield from _paths(value, f"{path}{dot}{step}", depth + 1)
    elif isinstance(document, list):
        for value in document:
            yield from _paths(value, f"{path}[*]", depth + 1)


def _plain(text: str) -> str:
    """Return a path without ``$``, and with ``[*]`` for numbers of items."""
    return re.sub(r"\[-?[0-9]+\]", "[*]", text.removeprefix("$").removeprefix("."))
