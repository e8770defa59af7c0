"""Examples in docstrings run, and README and docs show what commands print."""

from __future__ import annotations

import doctest
import html
import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from command_line import Done, kraftlog_command
from object_store import object_store

__all__ = ["kraftlog_command"]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = Path(sys.executable).parent / "kraftlog"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in PACKAGE.glob("kraftlog/**/*.py")
    if re.search(r"    >>> (?!.*\+SKIP)", path.read_text("utf-8"))  # what needs a session of Spark is skipped
)


OF_GOLDEN_FILES = ("docs/sql.md",)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def console_blocks() -> dict[str, tuple[str, str]]:
    """Return commands of README and docs with the output that is shown for them."""
    found = {}
    for page in PAGES:
        blocks = re.findall(r"```console\n\$ (kraftlog [^\n]*)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        found.update({f"{page.stem}-{number}": block for number, block in enumerate(blocks)})
    assert len(found) >= 40
    return found


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which ``kraftlog sample sample`` was run, as the tutorial has it."""
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([str(PROGRAM), "sample", "sample"], cwd=folder, capture_output=True, timeout=60, check=True)
    return folder


@pytest.mark.parametrize(("command", "shown"), console_blocks().values(), ids=console_blocks())
def test_console(kraftlog_command: Callable[..., Done], samples: Path, command: str, shown: str):
    done = kraftlog_command(*shlex.split(command)[1:], cwd=ROOT if "tests/golden" in command else samples)
    printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    assert printed == [line.rstrip() for line in shown.splitlines()]


def script(name: str) -> ModuleType:
    """Return a script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_plot():
    """The plot shows the figures of the performance page; docs/speed.py draws it anew."""
    speed = script("speed")
    assert speed.figures("decode")["Kafka's Java, in memory"] > 0
    assert speed.PICTURE.read_text("utf-8") == speed.picture()


def test_picture():
    """The picture of the README shows what its commands print; docs/terminal.py draws it anew."""
    terminal = script("terminal")
    drawn = re.findall(r"<text[^>]*>(.*?)</text>", terminal.PICTURE.read_text("utf-8"))
    shown = re.sub(r"\s", "", html.unescape("".join(drawn)))
    for command, printed in terminal.outputs():
        lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines() if line.strip()]
        assert lines
        assert re.sub(r"\s", "", command + "".join(lines)) in shown


@pytest.mark.parametrize(
    ("page", "examples"),
    [
        ("README.md", 3),
        ("docs/index.md", 3),
        ("docs/python.md", 15),
        ("docs/log-store.md", 12),
        ("docs/sql.md", 9),
        ("docs/how-to/find-records.md", 4),
        ("docs/how-to/follow.md", 4),
        ("docs/typed-values.md", 12),
        ("docs/how-to/what-takes-the-space.md", 6),
        ("docs/how-to/extract.md", 4),
        ("docs/how-to/backup.md", 6),
        ("docs/how-to/replay.md", 8),
        ("docs/how-to/restore.md", 6),
        ("docs/how-to/redaction.md", 7),
        ("docs/how-to/tiered-storage.md", 5),
        ("docs/how-to/report.md", 4),
        ("docs/how-to/log-at-a-time.md", 5),
    ],
    ids=lambda value: str(value),
)
def test_python(samples: Path, page: str, examples: int, monkeypatch: pytest.MonkeyPatch):
    """The Python examples of a page run, one after the other, and print what it says."""
    monkeypatch.chdir(ROOT if page in OF_GOLDEN_FILES else samples)
    assert run_examples(page, {}) >= examples


def test_python_of_object_storage():
    with object_store() as store:
        store.put(ROOT / "tests" / "golden" / "transactions" / "log", "kafka-logs")
        assert run_examples("docs/object-storage.md", {"storage_options": store.options}) >= 3
        assert ("GET", "kafka-logs/log-start-offset-checkpoint") in {request[:2] for request in store.requests}


def run_examples(page: str, names: dict[str, object]) -> int:
    """Run the Python examples of a page, one after the other; return how many there are."""
    blocks = re.findall(r"```pycon\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest("".join(blocks), names, page, None, 0))
    assert runner.failures == 0
    return runner.tries


def test_all_python_is_run():
    pages = {str(page.relative_to(ROOT)) for page in PAGES if "```pycon" in page.read_text("utf-8")}
    run = {
        "README.md",
        "docs/index.md",
        "docs/python.md",
        "docs/object-storage.md",
        "docs/log-store.md",
        "docs/sql.md",
        "docs/how-to/find-records.md",
        "docs/how-to/follow.md",
        "docs/typed-values.md",
        "docs/how-to/what-takes-the-space.md",
        "docs/how-to/extract.md",
        "docs/how-to/backup.md",
        "docs/how-to/replay.md",
        "docs/how-to/serve.md",
        "docs/how-to/test-broker.md",
        "docs/how-to/restore.md",
        "docs/how-to/redaction.md",
        "docs/how-to/tiered-storage.md",
        "docs/how-to/report.md",
        "docs/how-to/log-at-a-time.md",
    }
    assert pages == run
