"""Whatever stands in a log, in names of folders or in paths is text in a page, and one word in a command."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.log_report.finding import Finding
from kraftlog.log_report.page import pieces
from report_pages import Page

NOW = 1_800_000_000_000
NASTY = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></pre><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; &#x41;",
    "$(touch /tmp/x); `id` | tee",
    "javascript:alert(1)//",
    "\u202eevil\u202c",
    "-->",
]
ELEMENTS = (
    "html head meta title style body header h1 h2 h3 p b span code pre section details summary div nav a table tr td th"
    " svg path footer ul li ol time i"
)
ALLOWED = {"", "rescued--0", "rescued--2", "salvaged--2.parquet"}


def check(page: Page) -> None:
    """No element and no attribute is there but those of the templates."""
    assert page.elements.keys() <= set(ELEMENTS.split())
    assert not [name for name in page.attributes if name.startswith("on") or name in ("src", "style", "srcdoc")]
    assert page.elements["style"] == 1
    assert page.elements["title"] == 1


@pytest.mark.parametrize("name", [name.replace("/", "|") for name in NASTY])
def test_names_of_topics(tmp_path: Path, name: str):
    logs = tmp_path / name
    for number, case in enumerate(("bit_flip_payload", "truncated_in_last_records", "batch_length_13")):
        shutil.copytree(GOLDEN / "damaged" / case / "log" / "t-0", logs / f"{name}-{number}")
    shutil.copytree(GOLDEN / "transactions_hanging" / "log" / "orders-late-0", logs / f"{name}{name}-0")
    (logs / f"{name}.bak").write_text("not Kafka's")
    made = kraftlog.report(logs, now=NOW)
    page = Page(made.html)
    check(page)
    seen = name.replace("\u202e", "\ufffd").replace("\u202c", "\ufffd")
    assert seen in page.sections["partitions"].text
    assert page.text.count(seen) > 5
    assert "\u202e" not in page.text
    for command in (line for one in made.findings for line in one.commands if line.startswith("kraftlog ")):
        words = shlex.split(command)
        assert words[2] == str(logs)
        assert {name, f"{name}{name}"} & set(words) or len(words) == 3
        assert not any(name in word and word != str(logs) and word.replace(name, "") not in ALLOWED for word in words)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", NASTY)
def test_groups_and_everything_else_that_is_text(name: str):
    """Every text of the facts is replaced: no place of a template forgets to escape."""
    paths = [GOLDEN / path / "log" for path in ("groups", "metadata", "transactions_hanging")]
    made = kraftlog.report(paths, now=NOW)
    facts = made.facts
    assert facts.groups is not None
    assert facts.cluster is not None
    for group in list(facts.groups.groups.values()):
        group.name = group.state = group.group_type = name
        group.worst = [dict(row, topic=name, group=name, lag=7) for row in group.worst]
    facts.cluster.metadata_version = name
    facts.cluster.brokers = [dict(row, rack=name) for row in facts.cluster.brokers]
    facts.cluster.checks = {
        check: (count, [dict(row, topic=name, message=name) for row in rows])
        for check, (count, rows) in facts.cluster.checks.items()
    }
    events = [one._replace(what=dataclasses.replace(one.what, message=name)) for one in facts.cluster.events]
    facts.cluster.events.extend(events)
    facts.hanging = [dict(row, reason=name) for row in facts.hanging]
    for partition in facts.partitions:
        for segment in partition.segments:
            segment.name = name
            if segment.damage is not None:
                faults = [dataclasses.replace(one, error=name, message=name) for one in segment.damage.faults]
                segment.damage.faults = faults
    found = [Finding("error", name, name, name, [name], 1, [name], [name])]
    page = Page("".join(pieces(facts, found)))
    check(page)
    seen = name.replace("\u202e", "\ufffd").replace("\u202c", "\ufffd")
    assert page.text.count(seen) > 50
    assert page.findings[0]["kind"] == seen


def test_what_a_terminal_shows(kraftlog_command: Callable[..., Any], tmp_path: Path):
    """Control characters in the name of a topic do not reach the terminal."""
    shutil.copytree(GOLDEN / "damaged" / "bit_flip_payload" / "log" / "t-0", tmp_path / "logs" / "a\x1b[31m\u202eb-0")
    done = kraftlog_command("report", tmp_path / "logs", "-o", tmp_path / "report.html")
    assert "(a\ufffd[31m\ufffdb-0)" in done.stdout
    assert not {"\x1b", "\u202e"} & set(done.stdout + done.stderr)


def test_names_that_are_no_text(tmp_path: Path):
    """Bytes that are not UTF-8 in the name of a folder are shown as U+FFFD."""
    source = GOLDEN / "damaged" / "bit_flip_payload" / "log" / "t-0"
    shutil.copytree(source, tmp_path / "logs" / os.fsdecode(b"caf\xe9-0"))
    page = Page(kraftlog.report(tmp_path / "logs", now=NOW).html)
    check(page)
    assert "caf\ufffd-0" in page.sections["partitions"].text


def test_the_policy_of_the_page_allows_its_own_style_alone():
    html = kraftlog.report(GOLDEN / "codecs" / "log", now=NOW).html
    policy = html.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in html.partition("</head>")[0].replace("http-equiv", "")
    assert "url(" not in html
    assert "<script" not in html
