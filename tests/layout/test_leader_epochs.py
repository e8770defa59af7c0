"""Epochs that a writer of the metadata log may lead under, and the file that keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlog import MetadataLogWriter

NO_OP = bytes.fromhex("01140000")


def test_epochs_without_records_are_forgotten(tmp_path: Path):
    folder = tmp_path / "__cluster_metadata-0"
    with MetadataLogWriter(folder, 1) as writer:
        writer.append([NO_OP])
        snapshot = writer.write_snapshot([[NO_OP]])
    for path in folder.iterdir():
        if path != snapshot:
            path.unlink()
    MetadataLogWriter(folder, 2).close()
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n1\n2 2\n"


@pytest.mark.parametrize("state", ['{"leaderEpoch": 5}', "{}", "no JSON"])
def test_the_epoch_of_the_quorum(tmp_path: Path, state: str):
    """A node that has voted in an epoch knows that somebody may lead under it."""
    folder = tmp_path / "__cluster_metadata-0"
    MetadataLogWriter(folder, 3).close()
    (folder / "quorum-state").write_text(state)
    with pytest.raises(ValueError, match="quorum-state"):
        MetadataLogWriter(folder, 4)
    if "5" in state:
        MetadataLogWriter(folder, 5).close()
