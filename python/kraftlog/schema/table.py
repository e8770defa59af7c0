"""What a table is: its name, and the names and types of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import pyarrow as pa

from kraftlog.topics import names

TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
IS_JSON = {b"content": b"json"}
PARTITION = {"topic": pa.string(), "partition": pa.int32()}


@dataclass(frozen=True)
class TableSchema:
    """One table: the columns that it shows, and those that it shows when they are asked for.

    Text in columns of ``json`` is JSON; their fields say so in their metadata.
    """

    name: str
    row: str
    shown: dict[str, pa.DataType]
    on_request: dict[str, pa.DataType] = field(default_factory=dict)
    json: frozenset[str] = frozenset()

    def select(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """Return the Arrow schema of these columns, in the order asked for.

        Raises
        ------
        TypeError
            For a text, which is not several names.
        ValueError
            When the table has no such column; the message lists those it has.
        """
        every = self.shown | self.on_request
        wanted = list(self.shown) if columns is None else names(columns)
        for name in wanted:
            if name not in every:
                near = get_close_matches(str(name).replace("-", "_").lower(), every, 2)
                meant = f"did you mean {' or '.join(near)}? It" if near else "it"
                raise ValueError(f"table {self.name} has no column {name!r}; {meant} has {', '.join(every)}")
        return pa.schema(
            [pa.field(name, every[name], metadata=IS_JSON if name in self.json else None) for name in wanted]
        )
