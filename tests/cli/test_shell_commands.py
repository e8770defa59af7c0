"""Each command of the shell, with what is wrong input to it."""

from __future__ import annotations

import pytest

from kraftlog.cli.shell_columns import columns
from kraftlog.cli.shell_commands import COMMANDS
from kraftlog.cli.shell_words import command_words, escaped
from shell_sessions import Shell

BY_NAME = "/image/topics/byName"


@pytest.fixture
def shell() -> Shell:
    return Shell()


def test_paths_lead_everywhere(shell: Shell):
    """Absolute and relative ones, with dots; the working directory stays between commands."""
    assert shell("pwd", "cd image/topics", "pwd", "cd ./byName/..//byId/", "pwd", "cd ..", "pwd", "cd", "pwd") == [
        *("/", "/image/topics", "/image/topics/byId", "/image/topics", "/")
    ]
    assert shell("cd /../../image/..", "pwd") == ["/"]
    assert shell(f"cd {BY_NAME}/meta-0", "cat name", "cat ../../byName/meta-1/name") == ["meta-0", "meta-1"]


def test_a_path_that_is_not_in_the_root_is_looked_up_under_image(shell: Shell):
    for path in ("/topics/byName/meta-0/id", "topics/byName/meta-0/id", "/top*/byName/meta-{0}/id"):
        assert shell(f"cat {path}") == shell(f"cat {BY_NAME}/meta-0/id")
    assert shell("cd /topics", "pwd") == ["/image/topics"]
    assert shell.run("cd /", "ls /local/topics") == ([], ["ls: /local/topics: no such file or directory."])
    assert shell.run("cd /local", "ls topics") == ([], ["ls: topics: no such file or directory."])


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("cat /nothing", "cat: /nothing: No such file or directory."),
        ("cat /image", "cat: /image: Is a directory"),
        ("cat /image/provenance/x", "cat: /image/provenance/x: No such file or directory."),
        ("cat", "cat: too few arguments; usage: cat PATH..."),
        ("ls a*z", "ls: a*z: no such file or directory."),
        ("find /nothing", "find: /nothing: no such file or directory."),
        ("tree /nothing", "tree: /nothing: No such file or directory."),
        ("cd /image/provenance", "cd: /image/provenance: not a directory."),
        ("cd /nothing", "cd: /nothing: no such directory."),
        ("cd a b", "cd: too many arguments; usage: cd [PATH]"),
        ("man nothing", "man: unknown command nothing. Type help to get a list of commands."),
        ("nothing", "nothing: unknown command. Type help to get a list of commands."),
        ("at 12x", "at: '12x' is neither an offset nor 'end'"),
        ("at -1", "at: '-1' is neither an offset nor 'end'"),
        ("at 5", "at: offset 5 is before the first image"),
        ("history x", "history: 'x' is not a number of commands"),
        ("cat 'a", "kraftlog: the quote ' is not closed"),
        ("cat a\\", "kraftlog: nothing follows the backslash at the end"),
    ],
)
def test_what_fails(shell: Shell, line: str, error: str):
    """It is said on standard error, and the session knows; the next command works."""
    assert shell.run(line) == ([], [error])
    assert shell.session.failed
    assert shell("pwd") == ["/"]


def test_a_part_that_fails_does_not_hide_the_others(shell: Shell):
    printed = shell.run("cat /nothing /image/features/finalized_group.version /image")
    assert printed == (["1"], ["cat: /nothing: No such file or directory.", "cat: /image: Is a directory"])


def test_ls_puts_files_before_directories(shell: Shell):
    """As Kafka's shell does, which says nothing of an empty directory."""
    assert shell("ls /local /image/provenance /image/delegationToken /") == [
        *("provenance", "", "local:", "commitId", "version", "", "/:", "image", "local")
    ]


def test_ls_fills_the_terminal(shell: Shell):
    for width in (8, 20, 40, 80, 200):
        lines = Shell(width=width)("ls /image")
        assert max(map(len, lines)) <= max(width, len("delegationToken"))
        assert sorted(" ".join(lines).split()) == shell("ls /image")
    assert len(Shell(width=200)("ls /image")) == 1


def test_columns_are_read_downwards():
    assert list(columns(["a", "bb", "c", "d", "e"], 12)) == ["a   c  e", "bb  d"]
    assert list(columns(["日本", "b", "c"], 11)) == ["日本  c", "b"]
    assert list(columns(["a", "b"], None)) == list(columns(["a", "b"], 3)) == ["a", "b"]
    assert list(columns([], 80)) == []


def test_find_names_what_was_given(shell: Shell):
    """Paths begin as they were typed; those of a glob with the place it matched."""
    assert shell("cd /image/topics", "find byName/meta-9") == [
        *("byName/meta-9", "byName/meta-9/0", "byName/meta-9/1", "byName/meta-9/id", "byName/meta-9/name")
    ]
    assert shell("find /{local}") == ["/local", "/local/commitId", "/local/version"]
    assert shell("cd /local", "find") == [".", "./commitId", "./version"]


def test_tree_of_the_working_directory(shell: Shell):
    assert shell("cd /image/producerIds", "tree") == ["nextProducerId:", "  1000"]


def test_at_moves_in_time(shell: Shell):
    """To the image that there was; the working directory stays where it is."""
    shell(f"cd {BY_NAME}/meta-0")
    assert shell("at")[0].startswith("offset 522, epoch 4, time 2026-11-21T")
    assert shell("at 85", "pwd")[1] == f"{BY_NAME}/meta-0"
    assert shell.session.prompt == f"[ kraftlog @85 ] {BY_NAME}/meta-0 >> "
    assert shell("cat /features/metadataVersion") == ["Optional[4.0-IV3]"]
    assert shell("at end", "cat /features/metadataVersion")[1] == "Optional[4.3-IV0]"


def test_at_where_the_working_directory_is_not(shell: Shell):
    """The nearest one above is the working directory then."""
    topic = next(name for name in shell(f"ls {BY_NAME}") if "late-4" in name)
    printed = shell.run(f"cd {BY_NAME}/{topic}", "at 85", "pwd")
    moved = f"at: {BY_NAME}/{topic} is not there at this offset; the working directory is now {BY_NAME}"
    assert printed[1] == [moved]
    assert printed[0][-1] == BY_NAME


def test_at_an_offset_that_cannot_be_shown(shell: Shell):
    """The image stays that which it was."""
    shell.run("at 321", "at 5")
    assert shell.session.offset == 321
    assert shell("at")[0].startswith("offset 321,")


def test_secrets_are_hidden(shell: Shell):
    (line,) = shell("cat /scram/SCRAM-SHA-256/alice")
    assert line == (
        "ScramCredentialData(salt=[redacted], storedKey=[redacted], serverKey=[redacted], iterations=[redacted])"
    )


def test_names_are_quoted_or_escaped(shell: Shell):
    """A quoted glob is a name."""
    default = "clientId(<default>)"
    expected = ["7.0"]
    assert shell(f"cat '/clientQuotas/{default}/consumer_byte_rate'") == expected
    assert shell(f'cat /clientQuotas/"{default}"/consumer_byte_rate') == expected
    assert shell("cat /clientQuotas/*default*/*") == expected
    assert shell.run("cat '/clientQuotas/*default*/*'")[0] == []
    assert shell.run("cat /clientQuotas/\\*default*/*")[0] == []


@pytest.mark.parametrize("text", ["", "a", "a b", "it's", 'a "b"', "back\\slash", "*?{}", "'", '\\"', "\t"])
def test_words_are_what_was_escaped(text: str):
    for quote in ("", "'", '"'):
        words = command_words(f"cat {quote}{escaped(text, quote)}{quote} end")
        assert [word.text for word in words] == (["cat", text, "end"] if text or quote else ["cat", "end"])


def test_history(shell: Shell):
    """All commands, also those that failed, but not empty lines."""
    shell.run("pwd", "", "  ", "nothing", "cat 'a b'")
    assert shell("history") == ["    1  pwd", "    2  nothing", "    3  cat 'a b'", "    4  history"]
    assert shell("history 2") == ["    4  history", "    5  history 2"]


@pytest.mark.parametrize("line", ["exit", "quit"])
def test_leaving(shell: Shell, line: str):
    assert shell(line) == []
    assert shell.session.is_done


def test_help_and_manual(shell: Shell):
    """Help names every command, and each has a page; those with paths say how paths are looked up."""
    text = "\n".join(shell("help"))
    for name, command in COMMANDS.items():
        assert f"  {command.usage}" in text
        page = shell(f"man {name}")
        assert page[0] == command.usage
        assert command.summary in page
    assert "/topics is /image/topics." in " ".join(shell("man cat"))
    assert "transaction" in " ".join(shell("man at"))


def test_control_characters_do_not_reach_a_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    """A client id may be anything, an instruction to the terminal for one."""
    monkeypatch.setattr(shell.out, "isatty", lambda: True, raising=False)
    shell.session.print("a\x1b[2Jb\tc\x9b")
    assert shell.out.getvalue() == "a\\x1b[2Jb\tc\\x9b\n"
    assert shell.run("cat '\x1b[2J'")[1] == ["cat: \\x1b[2J: No such file or directory."]
