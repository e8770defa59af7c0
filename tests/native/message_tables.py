"""Writes the programs of all messages as C tables, for the fuzzer: ``python tests/native/message_tables.py FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition, digest
from kraftlog.messages.layout import layout
from kraftlog.messages.program import compiled


def header() -> str:
    """Return the header."""
    definitions = [one for one in BUILT_IN.messages.values() if one.versions]
    parts = ["/* Written by tests/native/message_tables.py. */", '#include "message/program.h"']
    for definition in definitions:
        parts += list(tables(definition))
    parts += ["typedef struct {", "    const char *name;", "    uint64_t digest;", "    const kr_program *programs;"]
    parts += ["    int32_t first, versions, columns;", "} message_table;"]
    parts += ["static const message_table message_tables[] = {"]
    for one in definitions:
        first, count = one.versions.first, one.versions.last + 1 - one.versions.first
        columns = layout(one).columns
        parts += [f'    {{"{one.name}", {digest(one)}u, programs_{one.name}, {first}, {count}, {columns}}},']
    return "\n".join([*parts, "};", ""])


def tables(definition: Definition) -> Iterator[str]:
    """Return the programs of a definition."""
    name, rows = definition.name, []
    for version in range(definition.versions.first, definition.versions.last + 1):
        fields, text = compiled(definition, version)
        yield f"static const _Alignas(kr_field) uint8_t fields_{name}_{version}[] = {{{numbers(fields)}}};"
        yield f"static const uint8_t text_{name}_{version}[] = {{{numbers(text)}}};"
        count, is_compact = len(layout(definition).nodes), int(version in definition.flexible)
        at = f"(const kr_field *)(const void *)fields_{name}_{version}, text_{name}_{version}"
        rows.append(f"    {{{at}, {count}, {is_compact}}},")
    yield "\n".join([f"static const kr_program programs_{name}[] = {{", *rows, "};"])


def numbers(data: bytes) -> str:
    """Return bytes as C has them in an array, which is never empty."""
    return ", ".join(map(str, data or b"\0"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(header())
