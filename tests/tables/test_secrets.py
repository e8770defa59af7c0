"""Secrets of a metadata log leave by no door unless they are asked for.

What is secret follows from Kafka's own answers: the salt and the keys of the SCRAM credentials of the golden log. The
table ``records`` has the bytes of the log, as copies by ``extract`` do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.cli import commands
from kraftlog.codec.options import ReadOptions
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata.schemas import schema_of
from kraftlog.query.session import SqlSession
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from kraftlog.tables.all_tables import TABLES

LOG = GOLDEN / "metadata" / "log"
FOLDER = next(LOG.glob("__cluster_metadata-0"))
TYPE = "UserScramCredentialRecord"


def _secrets() -> list[bytes]:
    answers = lines(GOLDEN / "metadata" / "expected" / "metadata_records.jsonl")
    of_type = [one["data"] for one in answers if one.get("type") == "USER_SCRAM_CREDENTIAL_RECORD"]
    return [base64.b64decode(data[name]) for data in of_type for name in ("salt", "storedKey", "serverKey")]


SECRETS = _secrets()


def _every_column(table: str) -> list[str]:
    definition = TABLES[table].schema
    return [*definition.shown, *definition.on_request]


def _python(method: str, **how: Any) -> Callable[..., Any]:
    def door(**asked: bool) -> Any:
        return getattr(kraftlog.open(LOG), method)(**how, **asked).to_table().to_pylist()

    return door


def _polars(table: str) -> Callable[..., Any]:
    def door(**asked: bool) -> Any:
        return kraftlog.scan(str(LOG), table, **asked).collect().to_dicts()

    return door


def _sql(query: str) -> Callable[..., Any]:
    def door(**asked: bool) -> Any:
        with SqlSession(kraftlog.open(LOG), **asked) as session:
            return session.query(query).read_all().to_pylist()

    return door


def _spark(table: str, columns: list[str]) -> Callable[..., Any]:
    def door(*, show_secrets: bool | None = None) -> Any:
        options = {"path": str(LOG), "table": table, "columns": ",".join(columns)}
        if show_secrets is not None:
            options["showSecrets"] = str(show_secrets).lower()
        request = parse_request(options)
        return [row for part in plan_parts(request) for batch in read(request, part, []) for row in batch.to_pylist()]

    return door


def _command(*arguments: str | Path) -> Callable[..., Any]:
    def door(*, show_secrets: bool | None = None) -> Any:
        result = CliRunner().invoke(commands, [*map(str, arguments), *(["--show-secrets"] if show_secrets else [])])
        assert not isinstance(result.exception, Exception), result.output
        return result.stdout

    return door


RAW = ["offset", "value", "raw_key", "raw_value"]
CHANGES = _every_column("metadata_changes")
DOORS: dict[str, Callable[..., Any]] = {
    "Log.messages": _python("messages", columns=_every_column("messages")),
    "Log.messages of the type": _python("messages", type=TYPE),
    "Log.messages of the type, raw": _python("messages", type=TYPE, columns=["offset", "raw_value"]),
    "Log.metadata_changes": _python("metadata_changes", columns=CHANGES),
    "Log.scan": lambda **asked: kraftlog.open(LOG).scan("messages", RAW, ReadOptions(**asked)).to_table().to_pylist(),
    "kraftlog.scan": _polars("messages"),
    "kraftlog.scan of the type": _polars(TYPE),
    "SQL": _sql("select * from messages"),
    "SQL of changes": _sql("select * from metadata_changes"),
    "SQL of the image": _sql(f"select * from image.{TYPE}"),
    "Spark": _spark("messages", RAW),
    "Spark of changes": _spark("metadata_changes", CHANGES),
    "kraftlog messages": _command("messages", LOG, "--format", "jsonl", "--columns", ",".join(RAW)),
    "kraftlog changes --fields, rows": _command("changes", LOG, "--fields", "--format", "jsonl"),
    "kraftlog changes --fields": _command("changes", LOG, "--fields"),
    "kraftlog changes": _command("changes", LOG),
    "kraftlog image": _command("image", LOG, "--at", "206"),
    "kraftlog sql": _command("sql", LOG, "select * from messages", "--format", "jsonl"),
    "kraftlog shell": _command("shell", LOG, "-c", "tree /image/scram"),
    "kraftlog dump": _command("dump", "--cluster-metadata-decoder", FOLDER),
    "kraftlog diff": _command("diff", LOG, "--from", "0", "--to", "206"),
}
WITHOUT_THEM = ("kraftlog changes", "kraftlog changes --fields", "kraftlog diff")  # they have no such option


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, bytes):
        yield value.hex()
    else:
        yield str(value)


def _holds_secrets(answer: Any) -> bool:
    text = "\n".join(_texts(answer))
    forms = [form for one in SECRETS for form in (one.hex(), base64.b64encode(one).decode())]
    return any(form in text or json.dumps(form)[1:-1] in text for form in forms)


@pytest.mark.parametrize("door", DOORS)
def test_secrets_are_hidden_unless_they_are_asked_for(door: str) -> None:
    assert SECRETS
    answer = DOORS[door]()
    assert len(answer) > 0
    assert not _holds_secrets(answer)
    if door not in WITHOUT_THEM:
        assert not _holds_secrets(DOORS[door](show_secrets=False))
        assert _holds_secrets(DOORS[door](show_secrets=True))


def test_the_report_has_none() -> None:
    page = kraftlog.report(LOG)
    assert not _holds_secrets(page.html if hasattr(page, "html") else str(page))


def test_raw_values_of_other_records_are_those_of_the_log() -> None:
    """Without secrets, only rows that hold one differ."""
    log = kraftlog.open(LOG)
    hidden, shown = (
        log.messages(["offset", "type", "raw_key", "raw_value"], show_secrets=one).to_table().to_pylist()
        for one in (False, True)
    )
    bytes_of = {row["offset"]: row["value"] for row in log.records(["offset", "value"]).to_table().to_pylist()}
    assert all(row["raw_value"] == bytes_of[row["offset"]] for row in shown)
    for one, other in zip(hidden, shown, strict=True):
        assert one == (other if other["type"] != TYPE else {**other, "raw_key": None, "raw_value": None})


def test_only_configs_that_are_passwords_are_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    configs = {
        "ssl.key.password": "open sesame",
        "listener.name.x.sasl.jaas.config": "sesame, too",
        "retention.ms": "17",
    }
    definition = BUILT_IN.messages["ConfigRecord"]
    named = [
        {"resource_type": 4, "resource_name": "1", "name": name, "value": value} for name, value in configs.items()
    ]
    rows = pa.RecordBatch.from_pylist(named, schema=schema_of("ConfigRecord"))
    values = encode_messages(definition, 0, rows, prefix=frame(definition.api_key, 0))
    (folder / f"{0:020d}.log").write_bytes(kraftlog.encode(pa.table({"value": values.cast(pa.binary())})))
    dumped = CliRunner().invoke(commands, ["dump", "--cluster-metadata-decoder", str(folder)]).stdout
    asked_for = (
        CliRunner().invoke(commands, ["dump", "--cluster-metadata-decoder", str(folder), "--show-secrets"]).stdout
    )
    log = kraftlog.open(folder)
    typed = log.messages(["name", "value", "raw_value"], type="ConfigRecord").to_table().to_pylist()
    changes = {row["key"]: row["after"] for row in log.metadata_changes(["key", "after"]).to_table().to_pylist()}
    for (name, value), row in zip(configs.items(), typed, strict=True):
        is_shown = name == "retention.ms"
        assert (value in dumped, value in asked_for) == (is_shown, True)
        assert (row["value"] == value, row["raw_value"] is not None) == (is_shown, is_shown)
        assert any(value in (text or "") for text in changes.values()) == is_shown
