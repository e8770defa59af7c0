"""The options of ``spark.read.format("kraftlog")``: Spark's Kafka options under their names, and kraftlog's own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from kraftlog.codec.options import LATEST, TIMES, ReadOptions
from kraftlog.disk.remote_path import log_path
from kraftlog.layout.identity import Identity
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.spark.offsets import is_number, parse_interval
from kraftlog.spark.option_tables import READING, STREAMS, WITHOUT_EFFECT
from kraftlog.spark.request import Request
from kraftlog.spark.selection import parse_selection
from kraftlog.spark.tables import default_columns
from kraftlog.tables.all_tables import TABLES, table_named
from kraftlog.tables.given_redaction import given_redaction
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.table import Table
from kraftlog.tables.user_options import catalog_of, read_options
from kraftlog.times import milliseconds
from kraftlog.transactions.cut import CutTime
from kraftlog.values.typed import added_columns
from kraftlog.values.typed_options import TypedOptions

ROWS_PER_BATCH = 16_384
BYTES_PER_BATCH = 2 << 20
DEFAULT_MAX_TRIGGER_DELAY = "15m"
ON_ERROR = ("fail", "skip", "quarantine")
HIGH_WATERMARK = ("auto", "true", "false")

_BYTE_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MILLISECONDS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_ONLY_IN_BATCHES = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "cut")

_OF_TYPES = ("valueFormat", "keyFormat", "valueSchema", "keySchema", "valueFraming", "keyFraming", "jsonSample")
_NAMES = tuple(option.name for option in (*READING, *STREAMS))
_KNOWN = {name.lower(): name for name in (*_NAMES, *WITHOUT_EFFECT)}
_OF_TABLES = {  # options that only some tables have, by the name of the option in the table
    name: option
    for option in dict.fromkeys(option for table in TABLES.values() for option in table.option_names)
    if (name := re.sub("_(.)", lambda found: found[1].upper(), option)) in _NAMES
}
_DEFAULTS = {option.name: option.default for option in READING}
_LISTS = {
    "paths": '["backup/orders-0", "backup/orders-1"]',
    "against": '["backup/node-1", "backup/node-2"]',
    "redact": '["key=hash", "value.card=mask"]',
}
_OF_CATALOG = {"provider", "owner"}  # properties that Spark adds to the options of a table of its catalog
_KAFKA_ISOLATION_LEVEL = "kafka.isolation.level"


def parse_request(options: Mapping[str, str], *, is_streaming: bool | None = False) -> Request:
    """Parse the options of a reader; names are case-insensitive.

    Parameters
    ----------
    options : mapping
    is_streaming : bool or None
        Whether they are for a stream; None where that does not matter, as for the columns.

    Raises
    ------
    ValueError
        For an unknown option, table or column, or an invalid value.
    """
    given = {key.lower(): value for key, value in options.items()}
    if given.keys() >= _OF_CATALOG:
        raise ValueError(
            "CREATE TABLE: Spark passes no options to a Python data source when it reads a table of its catalog; use"
            " CREATE TEMPORARY VIEW with the same USING kraftlog OPTIONS (path '...')"
        )
    unknown = sorted(name for name in given if name not in _KNOWN and not name.startswith("kafka."))
    if unknown:
        raise ValueError(f"unknown option {', '.join(unknown)}; there are {', '.join(sorted(_NAMES))}")
    empty = [_KNOWN[name] for name, value in given.items() if name in _KNOWN and not value.strip()]
    if empty:
        raise ValueError(f"option {empty[0]} is empty")
    ending = [name for name in _ONLY_IN_BATCHES if name.lower() in given]
    if is_streaming and flag(given, "committedOnly", default=False):
        raise ValueError("option committedOnly is not of streams; highWatermark ends each micro-batch there")
    if is_streaming and ending:
        raise ValueError(f"option {ending[0]}: a stream has no end")
    definitions = given.get("definitions")
    table = _table(given)
    definition = table_named(table, catalog_of(definitions))
    _check_options(given, definition)
    on_error = _one_of(given, "onError", ON_ERROR)
    quarantine = given.get("quarantinepath")
    if (quarantine is not None) != (on_error == "quarantine"):
        raise ValueError("onError=quarantine and the option quarantinePath require each other")
    include_headers = flag(given, "includeHeaders", default=False)
    columns = _words(given.get("columns"), "columns")
    storage = storage_options(given.get("storageoptions"))
    others = texts_of_list(given["against"], "against") if "against" in given else ()
    limit, least = _count(given, "maxOffsetsPerTrigger"), _count(given, "minOffsetsPerTrigger")
    if limit is not None and least is not None and least > limit:
        raise ValueError(f"option minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, which is {limit}")
    request = Request(
        table=table,
        paths=_paths(given),
        columns=default_columns(table, definitions, include_headers=include_headers) if columns is None else columns,
        selection=parse_selection(given),
        interval=parse_interval(given, is_streaming=is_streaming is not False),
        storage_options=storage,
        remote_tier=_remote_tier(given),
        identity=_identity(given),
        definitions=definitions,
        range_bytes=_bytes(given["rangebytes"]) if "rangebytes" in given else None,
        min_partitions=_count(given, "minPartitions") or 1,
        fail_on_data_loss=flag(given, "failOnDataLoss", default=True),
        max_offsets_per_trigger=limit,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=_milliseconds(given, "maxTriggerDelay", DEFAULT_MAX_TRIGGER_DELAY),
        high_watermark=_one_of(given, "highWatermark", HIGH_WATERMARK),
        quarantine=quarantine,
        options=read_options(
            isolation_level=given.get("isolationlevel", given.get(_KAFKA_ISOLATION_LEVEL, "read_uncommitted")),
            start_timestamp=_moment(given, "startTimestamp"),
            end_timestamp=_moment(given, "endTimestamp"),
            time=_time(given),
            include_control=flag(given, "includeControl", default=False),
            include_deleted=flag(given, "includeDeleted", default=False) or definition.is_of_files,
            heal=flag(given, "heal", default=bool(definition.defaults.get("heal", ReadOptions.heal))),
            salvage=flag(given, "salvage", default=False),
            against=[log_path(one, storage) for one in others],
            show_secrets=flag(given, "showSecrets", default=ReadOptions.show_secrets),
            committed_only=flag(given, "committedOnly", default=False),
            include_image=flag(given, "includeImage", default=False),
            check_crc=flag(given, "checkCrc", default=bool(definition.defaults.get("check_crc", True))),
            strict=on_error == "fail" and table != "errors",
            max_decompressed_bytes=_count(given, "maxDecompressedBytes") or ReadOptions.max_decompressed_bytes,
            batch_rows=ROWS_PER_BATCH,
            batch_bytes=BYTES_PER_BATCH,
        ),
        cut=None if "cut" not in given else CutTime.of(given["cut"]),
        redaction=_redaction(given, table),
    )
    return _with_types(request, given, is_shown=columns is None)


def _check_options(given: Mapping[str, str], table: Table) -> None:
    """Reject options that a table does not have, unless their value is the default."""
    for name, option in _OF_TABLES.items():
        value = given.get(name.lower())
        says_something = value is not None and value.lower() != _DEFAULTS[name]
        if says_something and option not in table.option_names:
            takers = ", ".join(one.name for one in TABLES.values() if option in one.option_names)
            raise ValueError(f"option {name}: not supported by table {table.name}; {takers} support it")


def _with_types(request: Request, given: Mapping[str, str], *, is_shown: bool) -> Request:
    """Return the request with the formats of keys and values; those that are shown have what does not fit, too."""
    texts = {re.sub("([A-Z])", r"_\1", name).lower(): given.get(name.lower()) for name in _OF_TYPES}
    if "schemas" in given and not any(texts.values()):
        raise ValueError("option schemas goes with valueFormat or keyFormat")
    typed = TypedOptions.of(schemas=given.get("schemas"), **texts)
    if typed is None:
        return request
    if request.table != "records":
        raise ValueError(f"options valueFormat and keyFormat require the table records, not {request.table}")
    resolved = typed.resolved(request.log().found, strict=request.options.strict)
    added = added_columns(resolved.formats) if is_shown else ()
    return replace(request, typed=resolved, columns=(*request.columns, *added))


def _redaction(given: Mapping[str, str], table: str) -> Redaction | None:
    rules, key_file = given.get("redact"), given.get("redactkey")
    if rules is None and key_file is not None:
        raise ValueError("option redactKey requires redact")
    redaction = given_redaction([] if rules is None else texts_of_list(rules, "redact"), key_file)
    if redaction is not None and table != "records":
        raise ValueError(f"option redact requires the table records, not {table}")
    return redaction


def _table(given: Mapping[str, str]) -> str:
    table = given.get("table", "messages" if "type" in given else "records")
    if table not in TABLES:
        raise ValueError(f"option table is {table!r}, not one of {', '.join(TABLES)}")
    if "type" in given and table != "messages":
        raise ValueError(f"option type requires the table messages, not {table}")
    return given.get("type", table)


def _one_of(given: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """Return a word of a list; the first one if the option is absent."""
    value = given.get(name.lower(), values[0]).lower()
    if value not in values:
        raise ValueError(f"option {name} is {value!r}, not {', '.join(values[:-1])} or {values[-1]}")
    return value


def flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return an option that is true or false; ValueError for anything else."""
    return _one_of(given, name, ("true", "false") if default else ("false", "true")) == "true"


def _words(text: str | None, name: str) -> tuple[str, ...] | None:
    if text is None:
        return None
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        raise ValueError(f"option {name} is {text!r}, a list without names")
    return words


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in given and "path" in given:
        raise ValueError("options path and paths exclude each other; give one of them")
    if "paths" in given:
        return texts_of_list(given["paths"], "paths")
    if "path" in given:
        return (given["path"],)
    if "remotetier" in given:
        return ()
    raise ValueError('no path: use .load("...") or the option paths')


def _remote_tier(given: Mapping[str, str]) -> RemoteTier | None:
    """Return the remote tier, with the files of its keys."""
    try:
        keys = json.loads(given.get("tierkeys", "{}"))
    except ValueError:
        keys = None
    if not isinstance(keys, dict) or not all(isinstance(path, str) and path for path in keys.values()):
        raise ValueError(f'option tierKeys is {given["tierkeys"]!r}, not JSON like {{"k1": "/keys/k1.pem"}}')
    if "remotetier" not in given:
        if keys:
            raise ValueError("option tierKeys requires remoteTier")
        return None
    return RemoteTier(given["remotetier"], keys)


def _identity(given: Mapping[str, str]) -> Identity | None:
    topic_ids, cluster_id = _words(given.get("topicids"), "topicIds"), given.get("clusterid")
    return None if topic_ids is None and cluster_id is None else Identity(topic_ids or (), cluster_id)


def texts_of_list(text: str, name: str) -> tuple[str, ...]:
    """Return the texts of a list: JSON, as Spark passes several paths, or comma-separated.

    A glob may start with a bracket.
    """
    try:
        texts = json.loads(text)
    except ValueError:
        return _words(text, name) or ()
    if not isinstance(texts, list):
        return _words(text, name) or ()
    if not texts or not all(isinstance(one, str) and one for one in texts):
        raise ValueError(f"option {name} is {text!r}, not like {_LISTS[name]}")
    return tuple(texts)


def storage_options(text: str | None) -> dict[str, str | int | float | bool]:
    """Return the arguments of a file system; the message does not show them, since they may hold a password."""
    try:
        options = {} if text is None else json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict) or not all(isinstance(value, str | int | float) for value in options.values()):
        raise ValueError('option storageOptions is not JSON like {"region": "eu-central-1", "connect_timeout": 5}')
    return options


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is not None and (not is_number(text) or int(text) == 0):
        raise ValueError(f"option {name} is {text!r}, not a positive number")
    return None if text is None else int(text)


def _milliseconds(given: Mapping[str, str], name: str, default: str) -> int:
    """Return a duration in Spark's form, such as 15m; a number without a unit is milliseconds."""
    text = given.get(name.lower(), default)
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if found is None or found[2] not in _MILLISECONDS:
        raise ValueError(f"option {name} is {text!r}, not a time such as 30s, 15m or 1h")
    return int(found[1]) * _MILLISECONDS[found[2]]


def _moment(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    try:
        return None if text is None else milliseconds(text)
    except ValueError as error:
        raise ValueError(f"option {name}: {error}") from None


def _time(given: Mapping[str, str]) -> str | datetime | int:
    """Return a word, or a timestamp."""
    word = given.get("time", LATEST).lower()
    found = word if word in TIMES else _moment(given, "time")
    assert found is not None
    return found


def _bytes(text: str) -> int:
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "")
    if not is_number(number) or (unit and unit not in _BYTE_UNITS) or int(number) == 0:
        raise ValueError(f"option rangeBytes is {text!r}, not a size such as 67108864 or 64m")
    return int(number) * _BYTE_UNITS.get(unit, 1)
