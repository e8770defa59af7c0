"""How commands end: faults on standard error, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kraftlog.errors import Fault

FAULTS_SHOWN = 10
EXIT_FAULTS = 1


def report_faults(faults: Sequence[Fault], listed_by: str | None = "kraftlog verify") -> int:
    """Name the faults on standard error and return the exit code that they call for.

    Parameters
    ----------
    faults : sequence of Fault
    listed_by : str or None
        The command that lists all of them; without one all are named here.
    """
    if not faults:
        return 0
    lost = sum(fault.size_in_bytes or 0 for fault in faults)
    errors = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    print(f"{errors}, {lost} bytes not read:", file=sys.stderr)
    for fault in faults[: FAULTS_SHOWN if listed_by else None]:
        print(f"  {fault.error}: {fault.message}", file=sys.stderr)
    if len(faults) > FAULTS_SHOWN and listed_by:
        print(f"  and {len(faults) - FAULTS_SHOWN} more; `{listed_by}` lists them all", file=sys.stderr)
    return EXIT_FAULTS
