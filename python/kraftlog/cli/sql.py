"""``kraftlog sql``: questions in SQL."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from kraftlog.cli.options import (
    AGAINST,
    COMMITTED_ONLY,
    CUT,
    HEAL,
    IDENTITY,
    OUTPUT_OF_QUERIES,
    TIER,
    given_cut,
    given_identity,
    given_tier,
)
from kraftlog.cli.output import Output
from kraftlog.cli.progress import is_terminal, progress_bar
from kraftlog.cli.redact import redaction_of, redacts
from kraftlog.cli.report import report_faults
from kraftlog.cli.target import is_standard_output
from kraftlog.cli.typed import TYPED, typed_options
from kraftlog.codec.options import ISOLATION_LEVELS
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import log_path
from kraftlog.errors import Fault
from kraftlog.query.session import SqlSession
from kraftlog.tables.open_log import open as open_log
from kraftlog.types import IsolationLevel

PROMPT, CONTINUED = "kraftlog> ", "      ... "
EXIT_ERROR = 1
_INTERRUPTED = re.compile(r"(?:^|: )KeyboardInterrupt:?\s*\Z", re.MULTILINE)  # ends what DuckDB says of its source


@click.command()
@click.argument("paths", nargs=-1, metavar="PATHS... [QUERY]", type=click.Path())
@click.option("--isolation-level", type=click.Choice(ISOLATION_LEVELS), default=ISOLATION_LEVELS[0], show_default=True)
@click.option("--show-secrets", is_flag=True, help="Show SCRAM credentials and passwords.")
@HEAL
@COMMITTED_ONLY
@AGAINST
@CUT
@click.option("--bytes-read", is_flag=True, help="Say on standard error how much of the log was read.")
@TYPED
@redacts
@TIER
@IDENTITY
@OUTPUT_OF_QUERIES
@click.pass_context
def sql(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    isolation_level: IsolationLevel,
    show_secrets: bool,
    heal: bool,
    committed_only: bool,
    against: tuple[str, ...],
    bytes_read: bool,
    output: Output,
    **given: Any,
) -> None:
    """Answer questions in SQL, by DuckDB (pip install 'kraftlog[sql]').

    Topics are tables: orders, or topics.orders. So are the tables of kraftlog: records, batches, segments, groups,
    offsets and others. image.TopicRecord and the like are the metadata image. "show tables" lists tables and topics,
    "show all tables" these and their columns.
    Without QUERY, statements are read from standard input or from a prompt; each ends in a semicolon. The last argument
    is QUERY if it contains a space and is not a path that exists.

    Of a log only the columns are decoded that a query names, and what its conditions on topic, partition, offset and
    timestamp leave is read. Bytes become text by decode(value), and fields of JSON are decode(value)->>'$.id'. With
    --value-format the fields of values are columns: value.id. With --redact queries and their conditions see what is
    left of the records of topics, and cannot read files.

    \b
    Example:
      kraftlog sql sample/broker 'select partition, count(*) as records from orders group by 1 order by 1'
    """  # noqa: D301  (\b keeps the example as it is)
    tier = given_tier(ctx)
    query = None
    if paths and _is_query(paths[-1]):
        paths, query = paths[:-1], paths[-1]
    if not paths and tier is None:
        raise click.UsageError("expected PATHS, found none")
    log = open_log([*paths, *([] if tier is None else [tier]), *given_identity(ctx), *given_cut(ctx)])
    output.check(log.folders)
    how: dict[str, Any] = {
        "isolation_level": isolation_level,
        "show_secrets": show_secrets,
        "heal": heal,
        "committed_only": committed_only,
        "against": against,
        "redaction": redaction_of(given.pop("rules"), given.pop("key_file")),
        "typed": typed_options(given),
    }
    read = 0

    def count(size: int) -> None:
        nonlocal read
        read += size
        if bar is not None:
            bar(size)

    faults: list[Fault] = []
    with (
        progress_bar(log.size_in_bytes, wanted=query is not None and not output.is_paged) as bar,
        SqlSession(log, on_progress=count, **how) as session,
    ):
        is_prompt = query is None and is_terminal(sys.stdin)
        has_failed, queries = False, 0
        for text in [query] if query is not None else _statements():
            read = 0
            notes: list[str] = []
            try:
                statements = session.statements(text)
                queries += sum(one.is_query for one in statements)
                if queries > 1 and not is_standard_output(output.path):
                    raise click.UsageError(f"--output {output.path} takes the rows of one query, found {queries}")
                for statement in statements:
                    with _interrupts():
                        _answer(session, statement.text, output)
                    notes += [note for note in session.notes if note not in notes]
                    faults += [fault for fault in session.faults if fault not in faults]
            except session.errors as error:
                print(str(error).strip(), file=sys.stderr)
                has_failed = True
                if not is_prompt:
                    break
            notes += [note for note in session.notes if note not in notes]
            for note in notes:
                print(note, file=sys.stderr)
            faults += [fault for fault in session.faults if fault not in faults]
            if bytes_read:
                print(f"{read:,} of {log.size_in_bytes:,} bytes of the log were read", file=sys.stderr)
    sys.exit(report_faults(faults) or (EXIT_ERROR if has_failed and not is_prompt else 0))


def _is_query(text: str) -> bool:
    """Whether a text is a query: a path that is mistyped is one without spaces, and refused as a path."""
    if not any(map(str.isspace, text)):
        return False
    try:
        return disk().entry(log_path(text)) is None
    except OSError:
        return True


@contextmanager
def _interrupts() -> Iterator[None]:
    """Raise what DuckDB, or Arrow while rows are fetched, has made an error of its own."""
    try:
        yield
    except Exception as error:
        if _INTERRUPTED.search(str(error)):
            raise KeyboardInterrupt from None
        raise


def _answer(session: SqlSession, text: str, output: Output) -> None:
    rows = session.query(text)
    if not rows.schema.names:
        return
    with output.open(rows.schema) as writer:
        for batch in rows:
            writer.write(batch)
            if writer.is_full:
                break


def _statements() -> Iterator[str]:
    """Return what is typed, or piped in, up to each semicolon at the end of a line."""
    if not is_terminal(sys.stdin):
        yield from _ended(sys.stdin)
        return
    with suppress(ImportError):
        import readline  # noqa: F401  (keeps a history)
    yield from _ended(_typed())


def _typed() -> Iterator[str]:
    prompt = PROMPT
    while True:
        try:
            line = input(prompt)
        except EOFError:
            print(file=sys.stderr)
            return
        except KeyboardInterrupt:
            print(file=sys.stderr)
            prompt = PROMPT
            yield "\0"  # what was typed is forgotten
            continue
        prompt = PROMPT if line.rstrip().endswith(";") else CONTINUED
        yield line + "\n"


def _ended(lines: Iterable[str]) -> Iterator[str]:
    text = ""
    for line in lines:
        text = "" if line == "\0" else text + line
        if text.rstrip().endswith(";"):
            yield text
            text = ""
    if text.strip():
        yield text


COMMANDS = [sql]
