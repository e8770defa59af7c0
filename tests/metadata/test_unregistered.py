"""A metadata log of Kafka 4.4 in which a controller was unregistered, against what Kafka 4.4 says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.writer import encode_messages

Command = Callable[..., Any]
FOLDER = GOLDEN / "unregistered"
LOG = FOLDER / "log" / "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"
UNREGISTER = "UnregisterControllerRecord"
LEVEL = 33


def controllers(offset: int | None) -> list[int]:
    table = kraftlog.open(FOLDER / "log").image(offset, cache=False).image.tables()["RegisterControllerRecord"]
    return sorted(table["controller_id"].to_pylist())


def removed_at() -> int:
    (offset,) = kraftlog.open(LOG).messages(["offset"], type=UNREGISTER).to_table()["offset"].to_pylist()
    return int(offset)


def test_image_is_kafkas() -> None:
    """Every record of it; the second controller is gone."""
    image = kraftlog.open(FOLDER / "log").image(cache=False).image
    found = []
    assert image.metadata_version == LEVEL
    for name, version, batch in image.snapshot_records(LEVEL):
        definition = BUILT_IN.messages[name]
        assert definition.api_key is not None
        values = encode_messages(definition, version, batch, prefix=frame(definition.api_key, version))
        _, texts = MessageReader(BUILT_IN.formats["metadata"]).read(None, values).json()
        found += [(definition.api_key, version, json.loads(text)) for text in texts.to_pylist()]
    expected = [(one["type_id"], one["version"], one["data"]) for one in lines(FOLDER / "image.jsonl")]
    assert sorted(map(_text, found)) == sorted(map(_text, expected))
    assert controllers(None) == [1]


def _text(record: tuple[int, int, Any]) -> str:
    """Return a record as text; the order of features means nothing."""
    api_key, version, data = record
    if "features" in data:
        data = data | {"features": sorted(data["features"], key=lambda one: one["name"])}
    return json.dumps((api_key, version, data), sort_keys=True)


def test_the_controller_is_there_up_to_the_record() -> None:
    """And its removal is a change of that offset."""
    at = removed_at()
    assert (controllers(at - 1), controllers(at)) == ([1, 2], [1])
    rows = kraftlog.open(LOG).metadata_changes(["offset", "kind", "key", "change"]).to_table().to_pylist()
    assert {"offset": at, "kind": "controller", "key": "2", "change": "removed"} in rows


def test_the_bytes_of_the_record() -> None:
    """Frame version 1, type 29, version 0, the id, no tagged field; here of controller 2."""
    rows = kraftlog.open(LOG).records(["offset", "value"], start_offset=removed_at()).to_table().to_pylist()
    assert rows[0]["value"].hex() == "011d000000000200"


def test_dump_is_kafkas(kraftlog_command: Command) -> None:
    done = kraftlog_command("dump", "--cluster-metadata-decoder", "--files", SEGMENT, cwd=LOG)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == (FOLDER / "dump.txt").read_text().splitlines()


def test_checks(kraftlog_command: Command) -> None:
    """Nothing is wrong with the log; 4.4 reads it, and 4.3 cannot load it."""
    assert kraftlog_command("verify", FOLDER / "log").returncode == 0
    for to in ("4.4", "4.4.0", "4.4-IV2"):
        done = kraftlog_command("downgrade", FOLDER / "log", "--to", to)
        assert (done.returncode, done.stderr.splitlines()[0]) == (0, "4.4.0: reads all records")
    done = kraftlog_command("downgrade", FOLDER / "log", "--to", "4.3", "--format", "jsonl")
    assert done.returncode == 1
    fails = [row["type"] for row in map(json.loads, done.stdout.splitlines()) if row["outcome"] == "fails"]
    assert fails == [UNREGISTER]
    assert "metadata.version 4.4-IV2 to 4.3-IV0: needs force" in done.stderr
    assert "metadata changed with 4.4-IV1, 4.4-IV2" in done.stderr
