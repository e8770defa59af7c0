"""Ranges of a log with transactions end where the bounds of offset do."""

from __future__ import annotations

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.tables.user_options import read_options


@pytest.mark.sweep(6)
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("range_bytes", [1, 1000, 4096, 16_384])
@pytest.mark.parametrize("name", ["codecs/log/codec-none-0", "transactions/log/orders-0"])
def test_rows(name: str, range_bytes: int, level: str):
    log = kraftlog.open(GOLDEN / name)
    columns = ["offset", "transaction_state", "visible_at"]
    rows = log.records(columns, isolation_level=level).to_table().to_pylist()
    assert len(rows) > 70
    for end in range(5, 110, 7):
        options = read_options(isolation_level=level, end_offset=end)
        found = log.scan("records", columns, options, workers=2, range_bytes=range_bytes).to_table().to_pylist()
        assert found == [row for row in rows if row["offset"] < end]
