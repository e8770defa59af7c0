"""Types that are declared are those that there are: of the extension modules, and of what users call."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kraftlog
from kraftlog.log_store.options import StoreOptions
from kraftlog.tables.all_tables import TABLES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

pytest.importorskip("mypy")


def run(*arguments: str) -> str:
    """Run a module of mypy from the root of the project; return what it says, if it finds anything."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_stubs_of_the_extension_modules():
    """What a stub has is there, with the arguments that it says; what Python does not use needs no stub."""
    stubs = sorted((ROOT / "python" / "kraftlog" / "_native").glob("*.pyi"))
    modules = [f"kraftlog._native.{path.stem}" for path in stubs]
    options = ["--concise", "--ignore-missing-stub", "--ignore-disjoint-bases", "--ignore-unused-allowlist"]
    assert run("mypy.stubtest", *modules, *options, "--allowlist", str(HERE / "stubtest_allowlist.txt")) == ""


def test_examples_for_a_type_checker():
    assert run("mypy", str(HERE / "typed_examples.py")) == ""


def test_examples_at_run_time():
    sys.path.insert(0, str(HERE))
    try:
        import typed_examples
    finally:
        sys.path.remove(str(HERE))
    data = kraftlog.encode(typed_examples.TABLE).to_pybytes()
    typed_examples.of_the_codec(data)
    typed_examples.of_records(data)
    typed_examples.of_logs(str(ROOT / "tests" / "golden" / "codecs" / "log" / "codec-lz4-0"))


def test_a_misspelt_option_is_found(tmp_path: Path):
    """Of each table and of a store: two letters have changed places; beside it the same program without a mistake."""
    methods = [(name, table.option_names) for name, table in TABLES.items()]
    methods += [("grep", TABLES["records"].option_names), ("top_keys", TABLES["records"].option_names)]
    methods.append(("LogStore", tuple(field.name for field in dataclasses.fields(StoreOptions))))
    head = ["from typing import Any", "import kraftlog", "def calls(log: kraftlog.Log, any: Any) -> None:"]
    arguments = {"top_keys": "1, [], ", "LogStore": "any, "}
    left_out = {
        ("top_keys", "strict"),
        ("top_keys", "committed_only"),
        ("errors", "strict"),
    }  # they take no such argument
    calls = [(method, name) for method, names in methods for name in names if (method, name) not in left_out]
    functions = {method: f"log.{method}" for method, _ in methods} | {"LogStore": "kraftlog.LogStore"}
    every = [f":{len(head) + at + 1}: " for at in range(len(calls))]
    for spelt, expected in ((str, []), (_misspelt, every)):
        # a file each: mypy's cache takes a file of the same size and second for the one that it knows
        program = tmp_path / f"{spelt.__name__.strip('_')}_program.py"
        lines = [f"    {functions[method]}({arguments.get(method, '')}{spelt(name)}=any)" for method, name in calls]
        program.write_text("\n".join([*head, *lines, ""]))
        errors = run("mypy", "--strict", "--no-error-summary", str(program)).splitlines()
        found = [re.search(r":\d+: ", line)[0] for line in errors if ": error: " in line]  # type: ignore[index]
        assert found == expected


def _misspelt(name: str) -> str:
    at = next(place for place in range(len(name) - 2, -1, -1) if name[place] != name[place + 1])
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]
