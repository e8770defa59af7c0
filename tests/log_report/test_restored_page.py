"""The page of a restore has the figures of ``restored.json``, and text of a log without harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import run_command
from kraftlog import LogStore
from report_pages import Page

GROUP, TRANSACTIONAL_ID = "<script>alert(1)</script>", "<b>etl</b> & co"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "store"
    with LogStore(folder) as store:
        store.create_topic("orders", partitions=2)
        store.create_topic("other")
        producer = store.producer(transactional_id=TRANSACTIONAL_ID)
        with producer.transaction():
            for number in range(1500):
                producer.send("orders", value=f"order {number}", partition=0)
            producer.send("orders", value="one", partition=1)
            producer.send("other", value="one")
            producer.send_offsets_to_transaction({("orders", 0): 7, ("orders", 1): 1, ("other", 0): 1}, group=GROUP)
        producer.begin_transaction()
        producer.send("orders", value="left open", partition=1)
        producer.flush()
        folder_at_work = folder.with_name("copy")
        _copy(folder, folder_at_work)
        producer.abort_transaction()
    return folder_at_work


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file() and path.name != ".lock":
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())


def page_of(store: Path, folder: Path, *options: str) -> tuple[Page, dict[str, object], int]:
    page = folder / "page.html"
    done = run_command("restore", store, folder / "cluster", "--cut", "end", *options, "--page", page, "--json")
    return Page(page.read_text()), json.loads(done.stdout), done.returncode


def test_the_page_has_the_figures_of_the_report(store: Path, tmp_path: Path) -> None:
    page, report, code = page_of(store, tmp_path, "-t", "orders", "--rename", "orders=copy")
    assert code == 0
    assert "Everything is there" in page.text
    rows = {row["partition"]: row for row in page.sections["partitions"].rows("partition")}
    assert len(rows) == len(report["partitions"])  # type: ignore[arg-type]
    for one in report["partitions"]:  # type: ignore[attr-defined]
        row = rows[f"{one['topic']}-{one['partition']}"]
        assert row["from"] == one["source_topic"]
        assert (row["records"], row["bytes"]) == (f"{one['records']:,}", f"{one['size_in_bytes']:,}")
        assert (row["log start"], row["end"]) == (str(one["log_start_offset"]), str(one["end_offset"]))
        assert row["CRC-32C"] == one["crc32c"]
        assert row["copied as they were"] == ("all" if one["is_identical"] else f"{one['copied_bytes']:,}")
    assert rows["copy-0"]["records"] == "1,500"
    groups = page.sections["groups"].rows("group")
    assert {(row["group"], row["partition"], row["offset"]) for row in groups} == {
        (GROUP, "copy-0", "7"),
        (GROUP, "copy-1", "1"),
    }
    moved = {
        row["partition"]: (row["new partition"], row["new offset"]) for row in page.sections["moved"].rows("group")
    }
    assert moved == {"orders-0": ("copy-0", "7"), "orders-1": ("copy-1", "1"), "other-0": ("-", "-")}
    (ended,) = page.sections["transactions"].rows("transactional id")
    assert (ended["transactional id"], ended["before"], ended["after"]) == (
        TRANSACTIONAL_ID,
        "Ongoing",
        "CompleteAbort",
    )
    assert "script" not in page.elements
    assert "onclick" not in page.attributes


def test_a_dry_run_has_a_page_that_says_what_would_be_missing(store: Path, tmp_path: Path) -> None:
    some = tmp_path / "some"
    _copy(store, some)
    for path in (some / "orders-1").iterdir():
        path.unlink()
    (some / "orders-1").rmdir()
    page, _, code = page_of(some, tmp_path, "--dry-run")
    assert code == 1
    assert "1 fault: data is missing" in page.text
    assert "orders-1: no folder of it among the files" in page.sections["missing"].text
    rows = {row["partition"]: row for row in page.sections["partitions"].rows("partition")}
    assert rows["orders-0"]["records"] == "-"
    assert not (tmp_path / "cluster").exists()


def test_a_page_is_not_written_over_a_file_or_into_the_source(store: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("mine")
    for page in (tmp_path / "page.html", store / "page.html"):
        done = run_command("restore", store, tmp_path / "cluster", "--page", page)
        assert done.returncode == 2
        assert "--page" in done.stderr
    assert (tmp_path / "page.html").read_text() == "mine"
    assert not (tmp_path / "cluster").exists()
