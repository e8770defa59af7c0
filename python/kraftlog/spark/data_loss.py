"""``failOnDataLoss``: what happens when offsets that a job must read are no longer in the log."""

from __future__ import annotations

import logging

from kraftlog.errors import KraftlogError

_LOGGER = logging.getLogger("kraftlog.spark")

_ADVICE = (
    "Some data may have been lost because they are not available in the log any more; either the data was aged out by"
    " retention, the log was truncated, or the topic may have been deleted before all the data in the topic was"
    " processed."
)


class DataLossError(KraftlogError, RuntimeError):
    """Offsets that a stream must read are no longer in the log."""


def report_data_loss(what: str, *, fail: bool) -> None:
    """Fail the query, or log a warning.

    Parameters
    ----------
    what : str
        Which offsets are missing, and where.
    fail : bool
        The option ``failOnDataLoss``.

    Raises
    ------
    DataLossError
        When it fails.
    """
    if fail:
        raise DataLossError(
            f"{what}. {_ADVICE} To let the query continue without them, set the option failOnDataLoss to false."
        )
    _LOGGER.warning("%s. %s", what, _ADVICE)
