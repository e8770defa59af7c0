"""``kraftlog sql``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from command_line import Done, run_command
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.query.dataset import TableScanner
from kraftlog.tables.all_tables import TABLES

LOG = GOLDEN / "transactions" / "log"


def sql(*arguments: str | Path, given: str = "") -> Done:
    return run_command("sql", *arguments, given=given)


def test_a_query() -> None:
    ended = sql(LOG, "select partition, count(*) as n from orders group by 1 order by 1", "--format", "csv")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "partition,n\n0,118\n1,60\n2,29\n", "")


def test_statements_from_standard_input() -> None:
    given = "create view first as\nselect * from orders where partition = 1;\nselect count(*) as n from first;\n"
    ended = sql(LOG, "--format", "jsonl", given=given)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, '{"n":60}')


def test_each_statement_of_a_line_shows_its_result() -> None:
    """A semicolon within a text, or in a comment, ends none."""
    query = "select 1 as a; select 'x;y' as b -- ; nothing\n; select count(*) as c from orders;"
    expected = ["a", "1", "b", "x;y", "c", "207"]
    for done in (sql(LOG, query), sql(LOG, given=query)):
        assert (done.stdout.split(), done.returncode) == (expected, 0)
    failed = sql(LOG, "select 1 as a; select b; select 3 as c")
    assert (failed.stdout.split(), failed.returncode) == (["a", "1"], 1)
    assert "b" in failed.stderr


def test_a_file_takes_the_rows_of_one_query(tmp_path: Path) -> None:
    """Statements that are not queries, such as create table, have no rows; those of a second query replace none."""
    output = tmp_path / "rows.csv"
    two = "select 1 as a; select 2 as b"
    refused = sql(LOG, two, "--output", output, "--force")
    assert (refused.returncode, output.exists()) == (2, False)
    assert f"--output {output} takes the rows of one query, found 2" in refused.stderr
    second = sql(LOG, "--output", output, "--force", given="select 1 as a;\nselect 2 as b;\n")
    assert (second.returncode, output.read_text()) == (2, "a\n1\n")
    others = "create table c as select count(*) as n from orders; set threads = 1; drop view orders; select n from c"
    for query in (others, others.replace("select n from c", "pivot c on n using max(n) as m")):
        done = sql(LOG, query, "--output", output, "--force")
        assert (done.returncode, output.read_text().split()[1:]) == (0, ["207"]), done.stderr
    assert sql(LOG, others, "--format", "csv").stdout == "n\n207\n"


def test_columns_are_those_of_the_query() -> None:
    refused = sql(LOG, "select 1 as a", "--columns", "a")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "No such option '--columns'" in refused.stderr


@pytest.mark.parametrize("rows_before", [-1, 0, 1_000_000])
def test_an_interrupt_while_the_log_is_read(monkeypatch: pytest.MonkeyPatch, rows_before: int) -> None:
    """DuckDB makes an error of its own of it."""

    def interrupted(scanner: TableScanner) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            for _ in range(0, rows_before, 10_000):
                yield pa.record_batch({"partition": pa.array([7] * 10_000, pa.int32())})
            raise KeyboardInterrupt

        if rows_before < 0:
            raise KeyboardInterrupt
        return pa.RecordBatchReader.from_batches(schema.RECORDS.select(["partition"]), batches())

    monkeypatch.setattr(TableScanner, "to_reader", interrupted)
    done = sql(LOG, "select partition from orders", "--format", "csv")
    assert (done.returncode, done.stderr.strip()) == (130, "kraftlog: interrupted")
    assert ("7" in done.stdout) == (rows_before > 0)
    other = sql(LOG, "select KeyboardInterrupt from orders")
    assert (other.returncode, "Binder Error" in other.stderr) == (1, True)


def test_bytes_read() -> None:
    ended = sql(LOG, "--bytes-read", 'select count(*) as n from orders where partition = 0 and "offset" >= 102')
    assert ended.returncode == 0
    assert ended.stderr == "9,340 of 88,181 bytes of the log were read\n"


def test_several_paths_are_one_log(tmp_path: Path) -> None:
    """A replica that lacks a segment is completed from the other one."""
    first, second = tmp_path / "first", tmp_path / "second with spaces"
    for folder in (first, second):
        shutil.copytree(LOG, folder)
    damaged = first / "orders-0" / f"{0:020d}.log"
    damaged.write_bytes(damaged.read_bytes()[:5000])
    query = "select count(*) as n from orders"
    expected = kraftlog.open([first, second], topics=["orders"]).records([]).to_table().num_rows
    assert expected > kraftlog.open(first, topics=["orders"]).records([]).to_table().num_rows
    for done in (sql(first, second, query, "--format", "csv"), sql(first, second, "--format", "csv", given=query)):
        assert (done.returncode, done.stdout) == (0, f"n\n{expected}\n")


def test_which_argument_is_the_query(tmp_path: Path) -> None:
    ended = sql(LOG, "tests/nothing", given="select 1 as a")
    assert (ended.returncode, ended.stderr) == (2, "kraftlog: no such file or directory: tests/nothing\n")
    ended = sql("select 1 as a")
    assert (ended.returncode, "expected PATHS, found none" in ended.stderr) == (2, True)
    folder = tmp_path / "select 1"
    shutil.copytree(LOG, folder)
    ended = sql(folder, given="select count(*) as n from orders;")
    assert (ended.returncode, ended.stdout.split()) == (0, ["n", "207"])


def test_shown_tables_are_tables_and_topics() -> None:
    ended = sql(LOG, "show tables", "--format", "csv")
    topics = [path.name.rpartition("-")[0] for path in LOG.iterdir() if path.is_dir()]
    assert ended.stdout.split()[1:] == sorted({*TABLES, *topics})


def test_wrong_queries() -> None:
    ended = sql(LOG, "select * from nope")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Catalog Error: Table with name nope does not exist!")


def test_the_first_failure_ends_a_script() -> None:
    ended = sql(LOG, "--format", "jsonl", given="select 1 as a;\nselect nope;\nselect 2 as a;\n")
    assert (ended.returncode, ended.stdout) == (1, '{"a":1}\n')


def test_damage_is_reported() -> None:
    ended = sql(GOLDEN / "damaged" / "bit_flip_payload" / "log", "select count(*) as n from records", "--format", "csv")
    assert (ended.returncode, ended.stdout) == (1, "n\n17\n")
    assert "bad_crc" in ended.stderr
