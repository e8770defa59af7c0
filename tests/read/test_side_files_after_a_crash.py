"""Files beside segments that a crash may have left unfinished: the headers decide what was aborted."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlog
from kraftlog import LogStore

ENTRY = 34
CHECKPOINT = "recovery-point-offset-checkpoint"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a partition with several aborted transactions in each closed segment."""
    with LogStore(tmp_path / "log") as store:
        store.create_topic("t", configs={"internal.segment.bytes": 2000})
        producers = {name: store.producer(name) for name in ("a", "b")}
        for number in range(30):
            producer = producers["ab"[number % 2]]
            producer.begin_transaction()
            producer.send("t", key="k", value=f"{number}")
            producer.flush()
            (producer.commit_transaction if number % 3 == 0 else producer.abort_transaction)()
    for name in (".kafka_cleanshutdown", CHECKPOINT):
        (tmp_path / "log" / name).unlink(missing_ok=True)
    return tmp_path / "log/t-0"


COMMITTED = [b"%d" % number for number in range(0, 30, 3)]


def values(path: Path, columns: list[str] | None = None) -> list[bytes]:
    log = kraftlog.open(path, topics=["t"])
    table = log.records(columns or ["value"], isolation_level="read_committed", strict=True).to_table()
    return table["value"].to_pylist()


def indexes(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.txnindex"))
    assert len(found) > 2
    assert found[0].stat().st_size > ENTRY
    return found


@pytest.mark.parametrize("recovery_point", [None, 0])
@pytest.mark.parametrize("is_alone", [False, True])
def test_a_txnindex_that_is_cut_or_missing_hides_no_abort(
    folder: Path, recovery_point: int | None, is_alone: bool
) -> None:
    """Behind the recovery point, or where none is known, as in a backup of a partition's folder."""
    if recovery_point is not None:
        (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {recovery_point}\n")
    read = folder if is_alone else folder.parent
    assert values(read) == COMMITTED
    for path in indexes(folder):
        data = path.read_bytes()
        for size in range(0, len(data), ENTRY):
            path.write_bytes(data[:size])
            assert values(read) == COMMITTED
            assert values(read, ["value", "visible_at"]) == COMMITTED
        path.unlink()
        assert values(read) == COMMITTED


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_txnindex_before_the_recovery_point_is_believed(folder: Path, is_clean: bool) -> None:
    """An index that names fewer transactions shows that it was read in the place of the headers."""
    first, second, *_ = [int(path.stem) for path in sorted(folder.glob("*.log"))]
    if is_clean:
        (folder.parent / ".kafka_cleanshutdown").touch()
    else:
        (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {second}\n")
    (folder / f"{first:020d}.txnindex").write_bytes(b"")
    assert len(values(folder)) > len(COMMITTED)
    if not is_clean:
        (folder.parent / CHECKPOINT).write_text(f"0\n1\nt 0 {second - 1}\n")
        assert values(folder) == COMMITTED
