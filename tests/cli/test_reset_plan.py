"""``kraftlog offsets --reset-plan``: a line for each offset that a broker says is committed."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

import kraftlog
from golden_files import GOLDEN

LOG = GOLDEN / "groups" / "log"
STATE = json.loads((GOLDEN / "groups" / "expected" / "broker_state.json").read_text())


def committed(*groups: str) -> set[tuple[str, ...]]:
    """Return what the Admin client of the broker said: group, topic, partition, offset."""
    return {
        (group, *partition.rsplit("-", 1), str(offset["offset"]))
        for group, offsets in STATE["offsets"].items()
        for partition, offset in offsets.items()
        if not groups or group in groups
    }


def plan(text: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(io.StringIO(text))]


@pytest.mark.parametrize("groups", [(), ("grp-classic",), ("grp-manual", "grp-modern")])
def test_all_that_is_committed(kraftlog_command, groups):
    chosen = [text for group in groups for text in ("--group", group)]
    done = kraftlog_command("offsets", LOG, "--reset-plan", *chosen)
    assert done.returncode == 0
    assert set(plan(done.stdout)) == committed(*groups)
    assert len(plan(done.stdout)) == len(committed(*groups)) > 0


def test_what_a_transaction_holds_is_left_out(kraftlog_command, tmp_path):
    with kraftlog.LogStore(tmp_path / "store") as store:
        store.create_topic("t")
        with store.producer() as producer:
            for value in (b"a", b"b", b"c"):
                producer.send("t", value=value)
        with store.producer("p") as producer:
            producer.begin_transaction()
            producer.send_offsets_to_transaction({("t", 0): 1}, group='with, "quotes"')
            producer.commit_transaction()
            producer.begin_transaction()
            producer.send_offsets_to_transaction({("t", 0): 3}, group='with, "quotes"')
            shutil.copytree(tmp_path / "store", tmp_path / "copy")
            producer.abort_transaction()
    done = kraftlog_command("offsets", tmp_path / "copy", "--reset-plan")
    assert plan(done.stdout) == [('with, "quotes"', "t", "0", "1")]
    states = kraftlog.open(tmp_path / "copy").offsets(["offset", "state"]).to_pylist()
    assert states == [{"offset": 1, "state": "committed"}, {"offset": 3, "state": "pending"}]


@pytest.mark.parametrize("options", [("--columns", "group"), ("--format", "jsonl"), ("--format", "table")])
def test_no_other_columns_and_formats(kraftlog_command, options):
    done = kraftlog_command("offsets", LOG, "--reset-plan", *options)
    assert done.returncode == 2
    assert "--reset-plan" in done.stderr
