"""Writes the pages of the reference from the definitions in the code, when the site is built."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import kraftlog
from kraftlog.audit.audit import finding_codes
from kraftlog.cli import PROGRAM, commands
from kraftlog.cli.tasks import TASKS
from kraftlog.spark import to_parquet
from kraftlog.spark.option_tables import READING, SINK, STREAMS, WITHOUT_EFFECT, Option
from kraftlog.tables.all_tables import TABLES

_ROOT = click.Context(commands, info_name=PROGRAM)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of commands into the navigation, by task."""
    assert config.nav is not None
    (reference,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    tasks = [{task: [{name: f"reference/commands/{name}.md"} for name in names]} for task, names in TASKS.items()]
    reference[0] = {"Commands": [{"All commands": "reference/commands.md"}, *tasks]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {"commands": _commands(), "tables": _tables(), "functions": _functions(), "spark-options": _spark_options()}
    pages["findings"] = _findings()
    pages |= {f"commands/{name}": _command(name) for names in TASKS.values() for name in names}
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def _commands() -> str:
    parts = ["# Commands\n", *_help_text(commands)]
    for task, names in TASKS.items():
        parts += [f"## {task}\n", "| | |", "|---|---|"]
        for name in names:
            command = commands.get_command(_ROOT, name)
            assert command is not None
            cell = html.escape(command.get_short_help_str(limit=300)).replace("|", r"\|")
            parts.append(f"| [`{PROGRAM} {name}`](commands/{name}.md) | {cell} |")
        parts.append("")
    return "\n".join(parts)


def _command(name: str) -> str:
    command = commands.get_command(_ROOT, name)
    assert command is not None
    ctx = click.Context(command, parent=_ROOT, info_name=name)
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    parts = [f"# {PROGRAM} {name}\n", f"```\n{usage}\n```\n", *_help_text(command), "| | |", "|---|---|"]
    options = [option for option in command.get_params(ctx) if isinstance(option, click.Option)]
    for option, text in filter(None, (option.get_help_record(ctx) for option in options)):
        breakable = html.escape(option).replace("|", "&#124;<wbr>")  # else a long list of choices widens the table
        cell = html.escape(text).replace("|", r"\|")
        parts.append(f"| <code>{breakable}</code> | {cell} |")
    return "\n".join([*parts, ""])


def _help_text(command: click.Command) -> Iterator[str]:
    """Return the paragraphs of a help text; one that begins with click's mark is an example."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            lines = paragraph.splitlines()[2:]
            yield "\n".join(["```", *(line.strip() for line in lines), "```\n"])
        else:
            yield f"{html.escape(paragraph)}\n"


def _tables() -> str:
    parts = ["# Tables\n", "Columns on request are shown when `columns` names them.\n"]
    for table in TABLES.values():
        columns, names = table.schema, ", ".join(f"`{name}`" for name in table.option_names)
        parts += [f"## {table.name}\n", f"A row is {columns.row}.\n", f"Options: {names}.\n"]
        parts += [f"```\n{table.example}\n```\n", "| column | type | |", "|---|---|---|"]
        for of, remark in ((columns.shown, ""), (columns.on_request, "on request")):
            parts += [f"| `{name}` | `{kind}` | {remark} |" for name, kind in of.items()]
        parts.append("")
    return "\n".join(parts)


def _findings() -> str:
    parts = [
        "# Findings\n",
        "The codes of the table `findings`, the worst first. [Audit](../audit.md) explains them.\n",
    ]
    parts += ["| code | severity | meaning | files prove it when |", "|---|---|---|---|"]
    for code in finding_codes():
        texts = (html.escape(text).replace("|", r"\|") for text in (code.meaning, code.precondition))
        parts.append(f"| `{code.name}` | {code.severity} | {' | '.join(texts)} |")
    return "\n".join([*parts, ""])


def _functions() -> str:
    names = [f"kraftlog.{name}" for name in sorted(kraftlog.__all__)]
    return "# Functions\n\n" + "\n".join(f"::: {name}\n" for name in names)


def _spark_options() -> str:
    names = ", ".join(f"`{name}`" for name in WITHOUT_EFFECT)
    parts = [
        "# Options of Spark",
        "Names are taken without regard to case. An option that is not known, or has no value, is refused.",
        "## Reader",
        'Of `spark.read.format("kraftlog")`, `readStream`, `read_ranges` and `to_parquet`.',
        _options(READING),
        f"For jobs that come from Spark's Kafka source, {names} and all other options that begin with `kafka.` are"
        " taken, and have no effect.",
        "## Streams",
        'Of `spark.readStream.format("kraftlog")`, besides those of the reader; those of an end are refused.',
        _options(STREAMS),
        "## Sink",
        'Of `df.write.format("kraftlog")` and `writeStream`.',
        _options(SINK),
        "## Export",
        "Arguments of `kraftlog.spark.to_parquet`, besides options of the reader.",
        _arguments(),
    ]
    return "\n\n".join(parts) + "\n"


def _options(options: Iterable[Option]) -> str:
    return _names({name: (default, meaning) for name, default, meaning in options})


def _names(said: Mapping[str, tuple[str | None, str]]) -> str:
    """Return a table of names, what they mean, and what they are by default."""
    defaults = {name: f" Default: `{default}`." if default else "" for name, (default, _) in said.items()}
    return "\n".join(["| | |", "|---|---|", *(f"| `{name}` | {said[name][1]}{defaults[name]} |" for name in said)])


def _arguments() -> str:
    """Return the arguments of the export with their defaults, and what the docstring says of them."""
    text = (inspect.getdoc(to_parquet) or "").split("Parameters\n----------\n")[1].split("\nReturns\n")[0]
    found = re.findall(r"^(\w+) : .*\n((?:    .*\n?)*)", text, re.MULTILINE)
    meaning = {name: " ".join(lines.split()).replace("``", "`") for name, lines in found}
    return _names(
        {
            name: (
                None if parameter.default in (parameter.empty, None) else repr(parameter.default),
                meaning.get(name, ""),
            )
            for name, parameter in inspect.signature(to_parquet).parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
        }
    )
