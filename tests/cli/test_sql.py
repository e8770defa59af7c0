"""``kraftlog sql``."""

from __future__ import annotations

from pathlib import Path

from command_line import Done, run_command
from golden_files import GOLDEN

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


def test_bytes_read() -> None:
    ended = sql(LOG, "--bytes-read", 'select count(*) as n from orders where partition = 0 and "offset" >= 102')
    assert ended.returncode == 0
    assert ended.stderr == "9,340 of 88,181 bytes of the log were read\n"


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
