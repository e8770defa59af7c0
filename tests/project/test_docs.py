"""Examples in docstrings run, and the README shows what commands print."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in PACKAGE.glob("kraftlog/**/*.py")
    if re.search(r"    >>> (?!.*\+SKIP)", path.read_text("utf-8"))  # what needs a session of Spark is skipped
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def console_blocks() -> list[tuple[str, str]]:
    """Return commands of the README with the output that is shown for them."""
    blocks = re.findall(r"```console\n\$ (kraftlog [^\n]*)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 4
    return blocks


@pytest.mark.parametrize(("command", "shown"), console_blocks(), ids=lambda text: text[:30])
def test_readme(command: str, shown: str):
    program = Path(sys.executable).parent / "kraftlog"
    arguments = shlex.split(command)[1:]
    done = subprocess.run([str(program), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    assert printed == [line.rstrip() for line in shown.splitlines()]


def test_readme_python(monkeypatch: pytest.MonkeyPatch):
    """The Python examples of the README run, one after the other, and print what it says."""
    monkeypatch.chdir(ROOT)
    examples = re.findall(r"```pycon\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    test = doctest.DocTestParser().get_doctest("".join(examples), {}, "README", None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.tries > 15
    assert runner.failures == 0
