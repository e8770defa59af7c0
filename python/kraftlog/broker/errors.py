"""Why a replay stops."""

from __future__ import annotations

from kraftlog.errors import KraftlogError


class ReplayError(KraftlogError):
    """A broker reported an error or did not answer. Committed transactions stay; the same call resumes after them."""


class NotDeliveredError(ReplayError):
    """Records of a transaction were not delivered, or not at the offsets of the mapping; it was not committed."""
