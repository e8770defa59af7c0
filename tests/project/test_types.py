"""Types that are declared are those that there are: of the extension modules, and of what users call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kraftlog

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
