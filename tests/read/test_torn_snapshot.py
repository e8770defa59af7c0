"""The snapshot of the first segment, of which a crash has left a part: behind the recovery point nobody believes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN


@pytest.mark.parametrize(
    ("recovery_point", "expected"), [(0, []), (31, []), (32, ["bad_snapshot"]), (119, ["bad_snapshot"])]
)
def test_a_snapshot_that_a_crash_has_left(tmp_path: Path, recovery_point: int, expected: list[str]):
    folder = shutil.copytree(GOLDEN / "transactions" / "log" / "orders-0", tmp_path / "orders-0")
    for file in folder.glob("00000000000000000000.*"):
        file.unlink()
    snapshot = folder / "00000000000000000032.snapshot"
    snapshot.write_bytes(snapshot.read_bytes()[:50])
    (tmp_path / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {recovery_point}\n")
    stream = kraftlog.open(tmp_path).records(["offset"], isolation_level="read_committed")
    rows = stream.to_table().num_rows
    assert [fault.error for fault in stream.faults] == expected
    snapshot.unlink()
    without = kraftlog.open(tmp_path).records(["offset"], isolation_level="read_committed")
    assert rows == without.to_table().num_rows > 0
