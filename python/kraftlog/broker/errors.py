"""Why a replay stops."""

from __future__ import annotations

from kraftlog.errors import KraftlogError


class ReplayError(KraftlogError):
    """A broker refused something, or did not answer. What was committed stays, and the same call goes on behind it."""


class NotDeliveredError(ReplayError):
    """Records of a transaction were not taken, or lie otherwise than the mapping would say; it was not committed."""
