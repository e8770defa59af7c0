"""Writes the pages of the reference from the definitions in the code, when the site is built."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import kraftlog
from kraftlog import schema

_COMMANDS = """# Commands

::: mkdocs-click
    :module: kraftlog.cli
    :command: commands
    :prog_name: kraftlog
    :style: table
    :depth: 1
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {"commands": _COMMANDS, "tables": _tables(), "functions": _functions()}
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def _tables() -> str:
    parts = ["# Tables\n", "Columns on request are shown when `columns` names them.\n"]
    for table in schema.TABLES.values():
        parts += [f"## {table.name}\n", f"A row is {table.row}.\n", "| column | type | |", "|---|---|---|"]
        for columns, remark in ((table.shown, ""), (table.on_request, "on request")):
            parts += [f"| `{name}` | `{kind}` | {remark} |" for name, kind in columns.items()]
        parts.append("")
    return "\n".join(parts)


def _functions() -> str:
    names = [f"kraftlog.{name}" for name in sorted(kraftlog.__all__)]
    return "# Functions\n\n" + "\n".join(f"::: {name}\n" for name in names)
