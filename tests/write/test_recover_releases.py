"""Directories of killed brokers become, byte for byte, what the restarted broker of each release made of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from golden_releases import RELEASES, folder_of, interval_of
from kraftlog.layout.checkpoints import read_leader_epochs
from kraftlog.layout.index_files import ENTRY_TYPES, PREALLOCATED
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.write.recover import partition_folders, recover
from kraftlog.write.recovery_action import RecoverOptions

# They put the first offset of a batch into .index, and other timestamps and files into .snapshot.
OTHER_RULES = ("0.10.2.2", "1.1.1")
SAME_RULES = [release for release in RELEASES if release not in OTHER_RULES]
# Snapshots of a log in an old message format are not removed by 2.8.
LEFT = {"2.8.2": {f"format-{version}-0/00000000000000000160.snapshot" for version in ("0.9.0", "0.10.2")}}


@pytest.fixture
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder_of(request.param, "killed") / "log", tmp_path / "log"))


def recovered(log: Path) -> None:
    for folder in partition_folders([log]):
        options = RecoverOptions(write=True, interval_bytes=interval_of(folder.name))
        assert not [action for _, action in recover([folder], options) if action.is_refusal]


def used(path: Path) -> bytes:
    """Return a file without what is preallocated."""
    data, kind = path.read_bytes(), path.suffix[1:]
    if kind not in PREALLOCATED:
        return data
    size = ENTRY_TYPES[kind].itemsize
    return data[: -(-len(data.rstrip(b"\0")) // size) * size]


@pytest.mark.parametrize(("release", "killed"), [(release, release) for release in SAME_RULES], indirect=["killed"])
def test_files_are_those_of_the_restarted_broker(release: str, killed: Path):
    recovered(killed)
    compared = 0
    for folder in partition_folders([killed]):
        theirs = folder_of(release, "killed") / "recovered" / folder.name
        ours = {path.name: path for path in folder.iterdir() if not path.name.endswith(".deleted")}
        kept = {path.name for path in theirs.iterdir()} | {name for name in ours if name.endswith(".log")}
        left = {name for name in kept if f"{folder.name}/{name}" in LEFT.get(release, ())}
        assert set(ours) == kept - left
        for name, path in ours.items():
            if name == "leader-epoch-checkpoint":
                known = read_leader_epochs(theirs / name)
                assert known[: len(read_leader_epochs(path))] == read_leader_epochs(path)  # and the new leader's
            elif name.endswith(".snapshot") and release == "2.8.2":
                # producers of this broker expire with their transactional ids, soon
                assert {*read_producer_snapshot(theirs / name)} <= {*read_producer_snapshot(path)}
            elif name.endswith((".index", ".timeindex", ".txnindex", ".snapshot")):
                assert used(path) == used(theirs / name), path
                compared += 1
    assert compared > 30


@pytest.mark.parametrize(("release", "killed"), [(release, release) for release in OTHER_RULES], indirect=["killed"])
def test_files_of_old_releases_differ_in_offsets_alone(release: str, killed: Path):
    """Time index and transaction index are the same, .index has entries of the same batches, and 0.10 no snapshots."""
    recovered(killed)
    for folder in partition_folders([killed]):
        theirs = folder_of(release, "killed") / "recovered" / folder.name
        for path in folder.glob("*.timeindex"):
            assert used(path) == used(theirs / path.name)
        for path in folder.glob("*.txnindex"):
            assert path.read_bytes() == (theirs / path.name).read_bytes()
        for path in folder.glob("*.index"):
            assert used(path)[4::8] == used(theirs / path.name)[4::8]
            assert len(used(path)) == len(used(theirs / path.name))
    assert bool(list(killed.glob("*/*.snapshot"))) == (release != "0.10.2.2")


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_to_be_done_after_a_clean_shutdown(release: str, tmp_path: Path):
    log = Path(shutil.copytree(folder_of(release, "clean") / "log", tmp_path / "log"))
    actions = [action for _, action in recover(partition_folders([log]), RecoverOptions(write=True))]
    assert actions
    assert all(action.is_trusted for action in actions)


@pytest.mark.parametrize(("release", "killed"), [(release, release) for release in SAME_RULES], indirect=["killed"])
def test_a_second_recovery_has_nothing_to_do(release: str, killed: Path):
    recovered(killed)
    for folder in partition_folders([killed]):
        options = RecoverOptions(interval_bytes=interval_of(folder.name))
        assert {action.action for _, action in recover([folder], options)} == {"keep"}, release


def test_epochs_of_a_log_of_which_all_was_deleted(tmp_path: Path):
    """The epoch of the log start begins there, and is cut off where that is the end."""
    log = Path(shutil.copytree(folder_of("3.9.1", "killed") / "log", tmp_path / "log"))
    folder = log / "trimmed-0"
    end = 176
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {end}\n")
    (log / "log-start-offset-checkpoint").write_text(f"0\n1\ntrimmed 0 {end}\n")
    (log / "recovery-point-offset-checkpoint").write_text(f"0\n1\ntrimmed 0 {end}\n")
    last = max(folder.glob("*.log"))
    for path in folder.iterdir():
        if path.name[:20] < last.stem:
            path.unlink()
    list(recover([folder], RecoverOptions(write=True)))
    before = (folder / "leader-epoch-checkpoint").read_bytes()
    assert before == b"0\n1\n2 176\n"
    assert not list(folder.glob("*.snapshot"))
