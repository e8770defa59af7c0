"""What tables are: their options do something, in every door they are the same, and others are refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pyarrow.compute as pc
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.cli import commands
from kraftlog.cli.options import OF_PYTHON
from kraftlog.cli.tasks import MODULES, TASKS
from kraftlog.spark.option_tables import READING
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.tables.all_tables import TABLES, table_named
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.search import Search
from kraftlog.tables.table import Table
from kraftlog.values.typed_options import TypedOptions

LOGS = ("transactions", "deleted_records", "metadata", "metadata_txn", "groups", "schema_registry", "codecs", "damaged")
# One or several of each option, of which one changes what a reader gets of these logs.
VALUES: dict[str, list[Any]] = {
    "start_offset": [60],
    "end_offset": [12],
    "start_timestamp": [4_102_444_800_000],
    "end_timestamp": ["1970-01-01T00:00:01Z"],
    "include_deleted": [True],
    "isolation_level": ["read_committed"],
    "include_control": [True],
    "salvage": [True],
    "check_crc": [True, False],
    "batch_rows": [7],
    "batch_bytes": [4096],
    "max_decompressed_bytes": [16],
    "show_secrets": [True],
    "at": [12],
    "include_image": [True],
    "heal": [False],
    "time": ["earliest"],
    "committed_only": [True],
    "against": [str(GOLDEN / "transactions" / "log")],
}
OF_SPARK = {"start_offset": "startingOffsets", "end_offset": "endingOffsets", "at": "endingOffsets"}
EVERY = sorted(VALUES)


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Golden log directories; one with deleted records in internal topics, one with damage that leaves no header."""
    found = [folder for name in LOGS for folder in sorted((GOLDEN / name).rglob("log"))]
    deleted, damaged = (tmp_path_factory.mktemp(name) / "log" for name in ("deleted", "damaged"))
    for scenario in ("transactions", "groups", "schema_registry/confluent"):
        shutil.copytree(GOLDEN / scenario / "log", deleted, dirs_exist_ok=True)
    (deleted / "log-start-offset-checkpoint").unlink()
    ends = kraftlog.open(deleted).partition_offsets().to_table().to_pylist()
    lines = [f"{one['topic']} {one['partition']} {one['offset']}" for one in ends]
    (deleted / "log-start-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    shutil.copytree(GOLDEN / "groups" / "log", damaged)
    for number, position in enumerate((8, 17)):  # the length, so that no header follows; the checksum
        file = damaged / f"__consumer_offsets-{number}" / f"{0:020d}.log"
        bytes_of_log = bytearray(file.read_bytes())
        bytes_of_log[position] ^= 0x55
        file.write_bytes(bytes_of_log)
    return [*found, deleted, damaged]


def read(log: kraftlog.Log, table: Table, given: dict[str, Any]) -> object:
    """Return all that a reader gets: record batches, faults, notes."""
    stream = log.scan(table.name, [*table.schema.shown, *table.schema.on_request], table.read_options(given))
    batches = [batch.to_pylist() for batch in stream.batches()]
    return batches, [str(fault) for fault in stream.faults], stream.notes


def differs(log: kraftlog.Log, table: Table, option: str) -> bool:
    beside = {"start_offset": 60} if option == "include_image" else {}  # at its start a log has no image
    without = read(log, table, beside)
    return any(read(log, table, {**beside, option: value}) != without for value in VALUES[option])


OPTIONS = [(name, option) for name, table in TABLES.items() for option in table.option_names if option != "strict"]
# tables/test_log_start_offset.py has a log in which it is a producer's last batch that was deleted
BY_ANOTHER_TEST = {("producers", "include_deleted"), ("messages", "show_secrets"), ("metadata_changes", "show_secrets")}
BY_ANOTHER_TEST |= {("findings", "against")}  # audit/test_against.py: a directory is not compared with itself
BY_ANOTHER_TEST |= {
    (name, option) for name, option in OPTIONS if option == "heal"
}  # tables/test_healing.py has replicas


@pytest.mark.sweep(30)
@pytest.mark.parametrize(("table", "option"), [one for one in OPTIONS if one not in BY_ANOTHER_TEST])
def test_an_option_that_a_table_has_does_something(table: str, option: str, directories: list[Path]):
    assert any(differs(kraftlog.open(path), TABLES[table], option) for path in directories)


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.topic is None])
def test_an_option_that_a_table_does_not_have_does_nothing(
    table: str, directories: list[Path], sampled: Callable[..., list[Path]]
):
    """So that none is forgotten: what a table would honour it has. A fold of a part of its topic would mean nothing."""
    definition = TABLES[table]
    forgotten = []
    for path in sampled(directories, 14):
        log = kraftlog.open(path)
        without = log.scan(table, None, definition.read_options({})).to_table().to_pylist()
        refused = {"at", "start_timestamp", "end_timestamp", "committed_only"}  # or without a meaning
        others = set(EVERY) - {*definition.option_names, *OF_PYTHON, *refused}
        for option in others:
            for value in VALUES[option]:
                options = replace(definition.read_options({}), **{option: value})
                if log.scan(table, None, options).to_table().to_pylist() != without:
                    forgotten.append((option, path.parent.name))
    assert forgotten == []


@pytest.mark.parametrize("table", TABLES)
def test_python_refuses_other_options(table: str):
    log = kraftlog.open(GOLDEN / "transactions" / "log")
    method = getattr(log, table)
    for option in {*EVERY, "isolation_levle"} - set(TABLES[table].option_names):
        with pytest.raises(TypeError, match=option) as caught:
            method(**{option: True})
        if "has no option" in str(caught.value):
            assert all(name in str(caught.value) for name in TABLES[table].option_names)


# the command, changes, reads one directory, and has --from and --to for bounds
NOT_OF_THE_COMMAND = {
    "metadata_changes": {"start_offset", "end_offset", "start_timestamp", "end_timestamp", "heal"},
}


@pytest.mark.parametrize("table", TABLES)
def test_the_command_has_the_options_of_the_table(table: str):
    definition = TABLES[table]
    command = _command(definition)
    by_name = {parameter.name: parameter for parameter in command.params}
    names = {*definition.option_names} - {*OF_PYTHON} - NOT_OF_THE_COMMAND.get(table, set())
    assert {name for name in {*EVERY, "strict"} if name in by_name} == names
    given = command.make_context(table, [str(GOLDEN)], click.Context(commands, **commands.context_settings)).params
    for name in names - {"strict"}:
        assert definition.read_options({name: given[name]}) == definition.read_options({}), name


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if "start_offset" not in table.option_names])
def test_spark_refuses_a_start_of_tables_that_have_none(table: str):
    given = {"path": str(GOLDEN / "transactions" / "log"), "table": table, "failOnDataLoss": "false"}
    with pytest.raises(ValueError, match=f"the table {table} takes no starting offset"):
        plan_parts(parse_request({**given, "startingOffsets": "5"}))


FLAGS = sorted(option for option, values in VALUES.items() if isinstance(values[0], bool))


@pytest.mark.parametrize("wrong", ["false", "", 2, None])
@pytest.mark.parametrize("option", [*FLAGS, "strict"])
def test_a_flag_is_true_or_false(option: str, wrong: object):
    """The text of a configuration file would be true, whatever it says."""
    for table in TABLES.values():
        if option in table.option_names:
            with pytest.raises(TypeError, match=rf"^{option} .* is neither True nor False$"):
                table.read_options({option: wrong})


@pytest.mark.parametrize("wrong", ["5", 2.0])
def test_the_last_offset_that_counts_is_named_when_it_is_none(wrong: object):
    with pytest.raises(TypeError, match=f"^at {wrong!r} is not an integer$"):
        TABLES["offsets"].read_options({"at": wrong})
    with pytest.raises(ValueError, match=f"^at {2**63 - 1} is not between"):
        TABLES["offsets"].read_options({"at": 2**63 - 1})


def test_one_name_or_number_stands_for_a_list_of_it():
    metadata, groups = (kraftlog.open(GOLDEN / name / "log") for name in ("metadata", "groups"))
    for given in ({"topics": "meta-1"}, {"kinds": "topic"}, {"brokers": 1}):
        several = {name: [value] for name, value in given.items()}
        found = metadata.metadata_changes(**given).to_table()
        assert found.num_rows
        assert found.equals(metadata.metadata_changes(**several).to_table())
    for given in ({"groups": "grp-reborn"}, {"topics": "grp-a"}):
        several = {name: [value] for name, value in given.items()}
        assert groups.lag(**given).to_table().num_rows
        assert groups.lag(**given).to_table().equals(groups.lag(**several).to_table())
    path = GOLDEN / "transactions" / "log"
    assert kraftlog.open(path, partitions=1).segments().equals(kraftlog.open(path, partitions=[1]).segments())
    rows = [list(kraftlog.follow(path, topics=of, partitions=1).look()) for of in ("orders", ["orders"])]
    assert rows[0]
    assert rows[0] == rows[1]
    log = kraftlog.open(path)
    redacted = [log.records(["key"], redact=rules).to_table() for rules in ("key=null", ["key=null"])]
    assert redacted[0].equals(redacted[1])


@pytest.mark.parametrize("wrong", ["1", ["1"], [1.0]])
def test_numbers_are_no_texts(wrong: Any):
    with pytest.raises(TypeError, match=r"partitions .* is not an integer"):
        kraftlog.open(GOLDEN / "transactions" / "log", partitions=wrong)
    with pytest.raises(TypeError, match=r"brokers .* is not an integer"):
        kraftlog.open(GOLDEN / "metadata" / "log").metadata_changes(brokers=wrong)


STAGES: dict[str, dict[str, Any]] = {
    "none": {},
    "filter": {"filter": pc.field("offset") < 20},
    "search": {"search": Search(value="lamb")},
    "redaction": {"redaction": Redaction(["key=null"])},
    "types": {"typed": TypedOptions.of(key_format="string")},
    "all": {
        "filter": pc.field("key_error").is_null(),
        "redaction": Redaction(["value=mask"]),
        "typed": TypedOptions.of(key_format="string"),
    },
}


@pytest.mark.parametrize("stages", STAGES)
def test_a_column_may_be_asked_for_twice(stages: str):
    log = kraftlog.open(GOLDEN / "transactions" / "log", topics=["orders"])
    once = log.scan("records", ["key", "offset"], **STAGES[stages]).to_table()
    twice = log.scan("records", ["key", "offset", "key"], **STAGES[stages]).to_table()
    assert once.num_rows
    assert twice.equals(once.select(["key", "offset", "key"]))


def test_counts_of_records_have_the_options_of_records():
    log = kraftlog.open(GOLDEN / "transactions" / "log")
    for count in (
        log.key_stats,
        lambda *_, **how: log.top_keys(1, [], **how),
        lambda *_, **how: log.writes("day", [], **how),
    ):
        with pytest.raises(TypeError, match="table records has no option at; it has start_offset"):
            count([], at=1)


def test_schemas_go_with_a_format(tmp_path: Path):
    log = kraftlog.open(GOLDEN / "transactions" / "log")
    with pytest.raises(ValueError, match=r"^schemas goes with a value_format or key_format$"):
        log.records(schemas=tmp_path)


def _command(table: Table) -> click.Command:
    command = commands.get_command(click.Context(commands), table.command)
    assert command is not None
    return command


@pytest.mark.parametrize("table", TABLES)
def test_spark_has_the_options_of_the_table(table: str):
    definition = TABLES[table]
    names = {option.name for option in READING}
    for option in {*EVERY} - {*OF_PYTHON}:
        name = OF_SPARK.get(option, "".join([option.split("_")[0], *map(str.title, option.split("_")[1:])]))
        assert name in names, option
        if option in OF_SPARK:
            continue  # of the Kafka source; which tables take them is tested with offsets
        given = {"path": "x", "table": table, name: _text(VALUES[option][0])}
        if option == "check_crc":
            given[name] = _text(not definition.read_options({}).check_crc)
        if isinstance(VALUES[option][0], bool) and option not in definition.option_names:
            default = next(one.default for one in READING if one.name == name)
            parse_request({**given, name: (default or "").upper()})  # what is so without it
        if option in definition.option_names:
            assert parse_request(given).options != parse_request({"path": "x", "table": table}).options
        else:
            with pytest.raises(ValueError, match=f"option {name}: not supported by table {table}; .* support it"):
                parse_request(given)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_spark_has_the_defaults_of_the_table():
    for name, table in TABLES.items():
        found, expected = parse_request({"path": "x", "table": name}).options, table.read_options({})
        for option in {*EVERY, "check_crc"} - {*OF_PYTHON, "at", "include_deleted"}:
            assert getattr(found, option) == getattr(expected, option), (name, option)


def test_each_table_is_a_command_with_a_summary():
    listed = {name: summary for names in TASKS.values() for name, (_, summary) in names.items()}
    assert {table.command: table.summary for table in TABLES.values()}.items() <= listed.items()
    assert [name for name, summary in listed.items() if not summary] == []
    assert {table.command for table in TABLES.values()} <= set(MODULES)


def test_a_table_is_named_as_its_columns_are():
    assert {name: table.schema.name for name, table in TABLES.items()} == {name: name for name in TABLES}


def test_the_table_of_a_type_is_one_of_messages():
    table = table_named("OffsetCommit")
    assert (table.option_names, table.cut, table.has_records) == (
        TABLES["messages"].option_names,
        TABLES["messages"].cut,
        True,
    )
    with pytest.raises(ValueError, match="table 'ofsets' is not one of topic_summary, segments, "):
        table_named("ofsets")


def examples() -> Iterator[tuple[str, str]]:
    for name, table in TABLES.items():
        for line in table.example.splitlines():
            yield name, line.strip()


@pytest.mark.parametrize(("table", "line"), list(examples()))
def test_examples_are_of_the_command(table: str, line: str):
    program, command, *_ = line.split()
    assert (program, command) == ("kraftlog", TABLES[table].command)
