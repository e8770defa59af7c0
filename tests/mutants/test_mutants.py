"""The table of mutants follows the code, and the checks that it names notice what they should."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from mutant import ROOT, SIMULATION, NotApplicableError, mutants

TABLE = mutants()
SAMPLE = 3  # of those whose check is a test; the whole table is for run.py


def test_each_mutant_applies():
    for each in TABLE:
        compile(each.applied(), each.file, "exec")
        assert each.before != each.after, each.name


def test_each_mutant_is_described_once():
    assert [name for name, count in Counter(each.name for each in TABLE).items() if count > 1] == []
    assert [each.name for each in TABLE if not each.meaning] == []
    assert [each.name for each in TABLE if each.killed_by and each.equivalent] == []


def test_the_page_says_how_many_there_are():
    by_simulator = sum(each.killed_by.startswith(SIMULATION) for each in TABLE)
    by_tests = sum(bool(each.killed_by) for each in TABLE) - by_simulator
    equivalent = sum(bool(each.equivalent) for each in TABLE)
    page = " ".join((ROOT / "docs" / "verification.md").read_text().split())
    noticed = f"tests detect {by_tests} and the simulator {by_simulator}; {equivalent} are equivalent"
    assert f"Of {len(TABLE)} mutants, {noticed}" in page
    left = len(TABLE) - by_tests - by_simulator - equivalent
    assert (f"Of {left} no check is known yet" in page) is bool(left)


def test_checks_are_there():
    missing = []
    for check in {each.killed_by for each in TABLE} - {""}:
        if check.startswith(SIMULATION):
            continue
        file, _, function = check.partition("[")[0].partition("::")
        tree = ast.parse((ROOT / file).read_text())
        if function not in {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}:
            missing.append(check)
    assert missing == []


@pytest.mark.parametrize(
    ("text", "expected"), [("no such text", "text not found"), ("\n", "the text occurs")], ids=["gone", "several"]
)
def test_a_mutant_that_does_not_apply(text: str, expected: str):
    with pytest.raises(NotApplicableError, match=expected):
        replace(TABLE[0], before=text).applied()


def test_a_sample_is_noticed(pytestconfig: pytest.Config):
    tested = [each.name for each in TABLE if each.killed_by and not each.killed_by.startswith(SIMULATION)]
    names = random.Random(pytestconfig.getoption("--sample-seed")).sample(tested, SAMPLE)
    assert run(*names) == 0


def test_what_nothing_notices_is_told():
    """A check that passes beside a mutant makes the run fail."""
    assert run("--unchanged", "kept_batches_1") == 1


def run(*arguments: str) -> int:
    command = [sys.executable, str(Path(__file__).parent / "run.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done.returncode
