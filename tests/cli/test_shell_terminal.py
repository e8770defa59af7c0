"""The shell in a real terminal: keys in, screen out."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from golden_files import GOLDEN
from pseudo_terminal import PseudoTerminal

SHELL = "from kraftlog.cli.shell import shell; shell()"
LOG = str(GOLDEN / "metadata" / "log")
AT_END = "[ kraftlog @522 ] / >> "


@pytest.fixture
def terminal() -> Iterator[PseudoTerminal]:
    with PseudoTerminal(SHELL, LOG) as terminal:
        terminal.wait_for(AT_END)
        yield terminal


def test_a_walk_through_an_image(terminal: PseudoTerminal):
    """Commands, and what they print; the prompt tells the offset and the place."""
    terminal.type("ls\n")
    assert terminal.wait_for(AT_END) == f"ls\nimage  local\n{AT_END}"
    terminal.type("cd topics/byName/meta-0\n")
    prompt = "[ kraftlog @522 ] /image/topics/byName/meta-0 >> "
    terminal.wait_for(prompt)
    terminal.type("cat name\n")
    assert terminal.wait_for(prompt) == f"cat name\nmeta-0\n{prompt}"
    terminal.type("cat nothing\n")
    assert terminal.wait_for(prompt) == f"cat nothing\ncat: nothing: No such file or directory.\n{prompt}"


def test_moving_in_time(terminal: PseudoTerminal):
    """The same file at two offsets."""
    terminal.type("at 85\n")
    at_85 = "[ kraftlog @85 ] / >> "
    assert "offset 85, epoch 1, time 2026-11-21T" in terminal.wait_for(at_85)
    terminal.type("cat /features/metadataVersion\n")
    assert "Optional[4.0-IV3]" in terminal.wait_for(at_85)
    terminal.type("at end\n")
    terminal.wait_for(AT_END)
    terminal.type("cat /features/metadataVersion\n")
    assert "Optional[4.3-IV0]" in terminal.wait_for(AT_END)


def test_tab_completes_commands_and_paths(terminal: PseudoTerminal):
    """A word as far as there is one way to go on; two more show which ways there are."""
    terminal.type("hi\t")
    assert terminal.wait_for("history ") == "history "
    terminal.type("\n")
    terminal.wait_for(AT_END)
    terminal.type("cat /image/prov\t")
    assert terminal.wait_for("/image/provenance ") == "cat /image/provenance "
    terminal.type("\n")
    assert "offset 522," in terminal.wait_for(AT_END)
    terminal.type("ls /image/topics/\t")
    terminal.wait_for("ls /image/topics/by")
    terminal.type("\t\t")
    shown = terminal.wait_for(f"{AT_END}ls /image/topics/by")
    assert shown.split() == f"/image/topics/byId/ /image/topics/byName/ {AT_END}ls /image/topics/by".split()
    terminal.type("N\t")
    terminal.wait_for("Name/")
    terminal.type("meta-1\n")
    assert terminal.wait_for(AT_END).splitlines()[1] == "0  1  2  3  4  5  6  7  8  id  name"


def test_tab_in_a_name_with_a_space(terminal: PseudoTerminal):
    """What readline takes for the word begins behind the space."""
    terminal.type("cat '/clientQuotas/clientId(<d\t")
    terminal.wait_for("clientId(<default>)/")
    terminal.type("\t")
    terminal.wait_for("consumer_byte_rate' ")
    terminal.type("\n")
    assert "7.0" in terminal.wait_for(AT_END)


def test_the_line_before_comes_back(terminal: PseudoTerminal):
    """At Ctrl-P, which an arrow key stands for as well."""
    terminal.type("pwd\n")
    assert terminal.wait_for(AT_END).splitlines()[1] == "/"
    terminal.type("\x10")
    terminal.wait_for("pwd")
    terminal.type("\n")
    assert terminal.wait_for(AT_END).splitlines()[1] == "/"
    terminal.type("history\n")
    assert terminal.wait_for(AT_END).splitlines()[1:4] == ["    1  pwd", "    2  pwd", "    3  history"]


def test_ctrl_c_drops_the_line_and_ctrl_d_leaves(terminal: PseudoTerminal):
    terminal.type("ls nothing")
    terminal.wait_for("ls nothing")
    terminal.interrupt(AT_END)
    assert terminal.end("\x04") == 0


def test_the_history_file(tmp_path: Path):
    """It holds the commands of all shells, and is nobody else's to read."""
    history = tmp_path / "history"
    for line in ("pwd", "ls /image"):
        with PseudoTerminal(SHELL, LOG, "--history-file", str(history)) as terminal:
            terminal.wait_for(AT_END)
            terminal.type(f"{line}\n")
            terminal.wait_for(AT_END)
            terminal.type("exit\n")
            assert terminal.end() == 0
    assert history.read_text() == "pwd\nexit\nls /image\nexit\n"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    with PseudoTerminal(SHELL, LOG, "--history-file", str(history)) as terminal:
        terminal.wait_for(AT_END)
        terminal.type("\x10\x10\n")
        assert "provenance" in terminal.wait_for(AT_END)


def test_nothing_is_kept_without_a_history_file(tmp_path: Path):
    with PseudoTerminal(SHELL, LOG, environment={"HOME": str(tmp_path)}) as terminal:
        terminal.wait_for(AT_END)
        terminal.type("pwd\nquit\n")
        assert terminal.end() == 0
    assert list(tmp_path.iterdir()) == []
