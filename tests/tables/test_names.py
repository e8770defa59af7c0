"""A name alone is a list of one, wherever names of topics, groups or columns are taken: its letters are no names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN

LOG, GROUPS, METADATA = (GOLDEN / name / "log" for name in ("transactions", "groups", "metadata"))
BYTES = (GOLDEN / "codecs" / "log" / "codec-none-0" / f"{0:020d}.log").read_bytes()


def rows(stream: Any) -> list[dict[str, Any]]:
    table = stream.to_table() if isinstance(stream, kraftlog.Stream) else stream
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def followed(**given: Any) -> list[dict[str, Any]]:
    return [row for batch in kraftlog.follow(LOG, **given).look() for row in batch.to_pylist()]


TOPIC_ID = kraftlog.open(LOG, topics=["orders"]).replicas(["topic_id"])["topic_id"][0].as_py()


def segments(**given: Any) -> list[dict[str, Any]]:
    return rows(kraftlog.open(LOG, **given).segments(["topic", "size_in_bytes"]))


def changes(**given: Any) -> list[dict[str, Any]]:
    return rows(kraftlog.open(METADATA).metadata_changes(**given))


FUNCTIONS: dict[tuple[str, str], tuple[Callable[..., Any], str]] = {
    ("open", "topics"): (segments, "orders"),
    ("open", "topic_ids"): (segments, TOPIC_ID),
    ("follow", "topics"): (followed, "orders"),
    ("follow", "columns"): (followed, "offset"),
    ("decode", "columns"): (lambda **given: rows(kraftlog.decode(BYTES, **given)), "offset"),
    ("batches", "columns"): (lambda **given: rows(kraftlog.batches(BYTES, **given)), "base_offset"),
    ("scan", "topics"): (lambda **given: kraftlog.scan(LOG, **given).collect().to_dicts(), "orders"),
    ("report", "topics"): (lambda **given: kraftlog.report(LOG, **given).html.count("orders"), "orders"),
    ("Log.lag", "groups"): (lambda **given: rows(kraftlog.open(GROUPS).lag(**given)), "grp-reborn"),
    ("Log.lag", "topics"): (lambda **given: rows(kraftlog.open(GROUPS).lag(**given)), "grp-a"),
    ("Log.waits", "groups"): (lambda **given: rows(kraftlog.open(GROUPS).waits(**given)), "grp-reborn"),
    ("Log.metadata_changes", "kinds"): (changes, "topic"),
    ("Log.metadata_changes", "topics"): (changes, "meta-1"),
}
ELSEWHERE = {  # with a broker, or a log directory that is written
    ("replay", "topics"),
    ("extract", "topics"),
    ("restore", "topics"),
    ("restore_live", "topics"),
}


@pytest.mark.parametrize(("function", "parameter"), FUNCTIONS)
def test_a_name_alone_is_a_list_of_one(function: str, parameter: str):
    call, name = FUNCTIONS[function, parameter]
    expected = call(**{parameter: [name]})
    assert expected
    assert call(**{parameter: name}) == expected


@pytest.mark.parametrize("method", ["records", "segments", "batches", "offsets", "partition_transactions", "replicas"])
def test_a_column_alone(method: str):
    read = getattr(kraftlog.open(LOG), method)
    assert rows(read("topic")) == rows(read(["topic"])) != []


def test_an_extract_of_one_topic(tmp_path: Path):
    kraftlog.extract(LOG, tmp_path / "one", topics="orders")
    kraftlog.extract(LOG, tmp_path / "list", topics=["orders"])
    one, other = ({path.name for path in (tmp_path / name).iterdir()} for name in ("one", "list"))
    assert one == other
    assert "orders-0" in one


def test_each_parameter_of_names_is_here():
    functions = {
        name: getattr(kraftlog, name) for name in kraftlog.__all__ if inspect.isfunction(getattr(kraftlog, name))
    }
    functions |= {f"Log.{name}": one for name, one in inspect.getmembers(kraftlog.Log, inspect.isfunction)}
    found = {
        (name, parameter.name)
        for name, function in functions.items()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name in ("topics", "topic_ids", "groups", "kinds")
        and not name.startswith("Log._")
        and "str" in str(parameter.annotation)
    }
    listed = {one for one in FUNCTIONS if one[1] != "columns"} | ELSEWHERE
    assert found == listed
