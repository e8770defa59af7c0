"""A reader that finds out what is committed while it decodes comes to what the plain-Python state machine says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_logs import STEPS, producer_log, written

import kraftlog
from kraftlog import schema
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.local_file import LocalFile

COLUMNS = schema.RECORDS.select(["offset"])
COMMITTED = ReadOptions(isolation_level="read_committed", batch_rows=7, batch_bytes=400)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(STEPS, min_size=1, max_size=60),
    st.sampled_from([60, 130, 300, 1000, 1 << 20]),
    st.sampled_from([80, 4096]),
)
def test_windows_of_any_size(steps: list[tuple], window_bytes: int, long_batch: int):
    """It ends where a transaction begins that has no end, at the latest; nothing before is missing."""
    model = producer_log(steps)
    with written([(0, model.log)]) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalFile, "window_bytes", window_bytes, raising=False)
        patch.setattr(LocalFile, "long_batch", long_batch, raising=False)
        file = LocalFile(folder / f"{0:020d}.log")
        decoder = RecordDecoder(file, 0, NO_BOUND, DecodePlan(COLUMNS, COMMITTED), follows=True)
        found = [offset for batch in decoder.batches([]) for offset in batch.column(0).to_pylist()]
        assert found == model.visible
        assert decoder.is_undecided == (model.last_stable_offset < model.next_offset)
        log = kraftlog.open(folder)
        assert (
            log.records(["offset"], isolation_level="read_committed").to_table()["offset"].to_pylist() == model.visible
        )
