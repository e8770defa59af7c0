"""``kraftlog offsets --reset-plan``: committed offsets as ``kafka-consumer-groups`` reads them from a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import pyarrow as pa

from kraftlog.cli.output import Output

if TYPE_CHECKING:
    from pyarrow.compute import Expression

COLUMNS = ["group", "topic", "partition", "offset"]  # of each line, in this order; there is no line of names


class Wanted(NamedTuple):
    """How offsets are written, which of them, and what is made of them."""

    output: Output
    rows: Expression | None
    each: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None


def wanted_offsets(output: Output, groups: Sequence[str], mapping: Path | None, *, is_plan: bool) -> Wanted:
    """Return how offsets are written, and which of them.

    Parameters
    ----------
    output : Output
    groups : sequence of str
        Only the offsets of these; those of all groups when there are none.
    mapping : Path or None
        Of a replay: offsets are those of the cluster that it went to.
    is_plan : bool
        Write what ``kafka-consumer-groups --reset-offsets --from-file`` reads: committed offsets alone, as CSV.

    Raises
    ------
    click.UsageError
        When a plan is to have other columns, or another format, and when there is a mapping without a plan.
    """
    import pyarrow.compute as pc

    wanted = pc.field("group").isin(list(groups)) if groups else None
    if not is_plan:
        if mapping is not None:
            raise click.UsageError("--mapping is of --reset-plan")
        return Wanted(output, wanted)
    if output.columns is not None:
        raise click.UsageError(f"--reset-plan has the columns {', '.join(COLUMNS)}, and goes without --columns")
    if output.form not in (None, "csv"):
        raise click.UsageError(f"--reset-plan is CSV, and goes without --format {output.form}")
    committed = pc.field("state") == "committed"
    rows = committed if wanted is None else committed & wanted
    output = replace(output, form="csv", columns=COLUMNS, has_names=False)
    return Wanted(output, rows, None if mapping is None else _mapped(mapping))


def _mapped(path: Path) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return what puts topics and offsets of the target in the place of those of the log."""
    from kraftlog.broker.mapping import OffsetMapping

    mapping = OffsetMapping(path)

    def each(batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = []
        for row in batch.to_pylist():
            found = mapping.target(row["topic"], row["partition"], row["offset"])
            if found is None:
                where = f"{row['group']}, {row['topic']}-{row['partition']}"
                print(f"{where}: the partition was not replayed, so it is not in the plan", file=sys.stderr)
            else:
                rows.append({**row, "topic": found[0], "offset": found[1]})
        return pa.RecordBatch.from_pylist(rows, batch.schema)

    return each
