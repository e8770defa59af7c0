"""``kraftlog offsets --reset-plan``: committed offsets as ``kafka-consumer-groups`` reads them from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from kraftlog.cli.output import Output

if TYPE_CHECKING:
    from pyarrow.compute import Expression

COLUMNS = ["group", "topic", "partition", "offset"]  # of each line, in this order; there is no line of names


def wanted_offsets(output: Output, groups: Sequence[str], *, is_plan: bool) -> tuple[Output, Expression | None]:
    """Return how offsets are written, and which of them.

    Parameters
    ----------
    output : Output
    groups : sequence of str
        Only the offsets of these; those of all groups when there are none.
    is_plan : bool
        Write what ``kafka-consumer-groups --reset-offsets --from-file`` reads: committed offsets alone, as CSV.

    Raises
    ------
    click.UsageError
        When a plan is to have other columns, or another format.
    """
    import pyarrow.compute as pc

    wanted = pc.field("group").isin(list(groups)) if groups else None
    if not is_plan:
        return output, wanted
    if output.columns is not None:
        raise click.UsageError(f"--reset-plan has the columns {', '.join(COLUMNS)}, and goes without --columns")
    if output.form not in (None, "csv"):
        raise click.UsageError(f"--reset-plan is CSV, and goes without --format {output.form}")
    committed = pc.field("state") == "committed"
    rows = committed if wanted is None else committed & wanted
    return replace(output, form="csv", columns=COLUMNS, has_names=False), rows
