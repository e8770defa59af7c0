"""Any interleaving of producers' batches and markers, in one segment or several."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from model import ProducerModel

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.layout.index_files import ENTRY_TYPES
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes
from kraftlog.transactions.producer_state import ProducerStates

PRODUCERS = st.sampled_from([0, 1, 2, 70_000])
STEPS = st.one_of(
    st.tuples(st.just("data"), PRODUCERS, st.integers(1, 3)),
    st.tuples(st.just("marker"), PRODUCERS, st.sampled_from(["COMMIT", "ABORT"])),
    st.tuples(st.just("plain"), st.sampled_from([-1, 5]), st.integers(1, 3)),
)


def producer_log(steps: list[tuple]) -> ProducerModel:
    model = ProducerModel()
    for kind, producer_id, what in steps:
        if kind == "marker":
            model.marker(producer_id, what)
        else:
            model.data(producer_id, what, transactional=kind == "data")
    return model


@contextmanager
def written(segments: list[tuple[int, bytes]], topic: str = "t-0") -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / topic
        folder.mkdir()
        for base_offset, data in segments:
            (folder / f"{base_offset:020d}.log").write_bytes(data)
        yield folder


def in_segments(model: ProducerModel, cuts: list[int]) -> list[tuple[int, bytes]]:
    """Cut a log into segments at some of its batches."""
    starts = sorted({0, *(model.boundaries[cut % len(model.boundaries)] for cut in cuts)})
    headers = np.concatenate(list(HeaderScan(model.log).headers()))
    offsets = dict(zip(headers["position"].tolist(), headers["base_offset"].tolist(), strict=True))
    return [(offsets[a], model.log[a:b]) for a, b in zip(starts, [*starts[1:], len(model.log)], strict=True)]


def write_snapshots(folder: Path) -> None:
    """Write the snapshot beside each segment but the first, as a broker does when it starts a segment."""
    states = ProducerStates()
    for number, path in enumerate(sorted(folder.glob("*.log"))):
        if number:
            path.with_suffix(".snapshot").write_bytes(producer_snapshot_bytes(states.states()))
        for headers in HeaderScan(path.read_bytes()).headers():
            states.add(headers)


def write_indexes(folder: Path, model: ProducerModel) -> None:
    """Write the files that a broker keeps beside each segment, the index without entries."""
    write_snapshots(folder)
    paths = sorted(folder.glob("*.log"))
    for path, following in zip(paths, [*paths[1:], None], strict=True):
        path.with_suffix(".index").touch()
        end = model.next_offset if following is None else int(following.stem)
        entries = [(0, *entry) for entry in model.aborted if int(path.stem) <= entry[2] < end]
        if entries:
            path.with_suffix(".txnindex").write_bytes(np.array(entries, ENTRY_TYPES["txnindex"]).tobytes())
