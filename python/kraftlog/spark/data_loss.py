"""``failOnDataLoss``: what happens when offsets that were to be read are not in the log."""

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
    """Offsets that a stream was to read are not in the log any more."""


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
            f"{what}. {_ADVICE} If the query shall go on all the same, set the option failOnDataLoss to false."
        )
    _LOGGER.warning("%s. %s", what, _ADVICE)
