"""What TAB offers."""

from __future__ import annotations

import pytest

from image_tables import KnownImage
from kraftlog.cli.shell_commands import COMMANDS, run_line
from kraftlog.cli.shell_completion import completions
from kraftlog.cli.shell_session import Session
from odd_metadata import EPOCH, TIMESTAMP, records
from shell_sessions import Shell

QUOTE = "'"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", [f"{name} " for name in COMMANDS]),
        ("h", ["help ", "history "]),
        ("xyz", []),
        ("man c", ["cat ", "cd "]),
        ("man cat c", []),
        ("pwd ", []),
        ("at ", []),
        ("xyz /", []),
        ("ls ", ["image/", "local/"]),
        ("ls i", ["image/"]),
        ("ls /", ["/image/", "/local/"]),
        ("ls /image/c", ["/image/clientQuotas/", "/image/cluster/", "/image/configs/"]),
        ("ls /local/ /local/v", ["/local/version "]),
        ("cat /image/topics/../prov", ["/image/topics/../provenance "]),
        ("cat topics/byName/meta-0/na", ["topics/byName/meta-0/name "]),
        ("cat to", ["topics/"]),
        ("cat /to", ["/topics/"]),
        ("cat '/image/prov", ["'/image/provenance' "]),
        ('cat "/image/prov', ['"/image/provenance" ']),
        ("cat /image/nothing/", []),
        ("cat /image/provenance/", []),
        ("cat a\\", []),
        ("cd /loc /loc", []),
    ],
)
def test_words(line: str, expected: list[str]):
    start, found = completions(Shell().session, line)
    assert found == expected
    assert all(word.startswith(line[start:]) for word in found)


def test_the_working_directory_counts():
    shell = Shell()
    shell("cd /image/topics/byName")
    assert completions(shell.session, "cat meta-0/i") == (4, ["meta-0/id "])
    assert completions(shell.session, "cat ../by") == (4, ["../byId/", "../byName/"])


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("clientId(w", r"clientId(with\ space)/"),
        (r"clientId(with\ sp", r"clientId(with\ space)/"),
        ("'clientId(with", "'clientId(with space)/"),
        ("clientId(b", r"clientId(b\\\\c)_user(CN=an\ app,\ O=some\ \\(and\ more\\))/"),
        ("'clientId(b", r"'clientId(b\\c)_user(CN=an app, O=some \(and more\))/"),
    ],
)
def test_names_with_odd_characters_can_be_used_as_completed(typed: str, expected: str):
    odd = records()
    out = Shell()
    session = Session(lambda _: KnownImage(odd, len(odd), EPOCH, TIMESTAMP), out.out, out.err)
    run_line(session, "cd /clientQuotas")
    assert completions(session, f"ls {typed}") == (3, [expected])
    run_line(session, f"ls {expected}{typed[0] if typed.startswith(QUOTE) else ''}")
    assert out.err.getvalue() == ""
    assert out.out.getvalue().startswith("quota-")


def test_a_name_with_a_slash():
    """A group may have one in its name."""
    data = {"resourceType": 32, "resourceName": "team/app", "name": "consumer.session.timeout.ms", "value": "50000"}
    image = KnownImage([{"type_id": 4, "data": data}], 1, 1, 1)
    out = Shell()
    session = Session(lambda _: image, out.out, out.err)
    assert completions(session, "cat /configs/GROUP:team/a")[1] == ["/configs/GROUP:team/app/"]
    run_line(session, "cat /configs/GROUP:team/app/*")
    run_line(session, "cd /configs/GROUP:team/app")
    run_line(session, "ls")
    assert out.out.getvalue() == "50000\nconsumer.session.timeout.ms\n"
