"""The error of a request that a group refuses."""

from __future__ import annotations

from kraftlog.errors import KraftlogError
from kraftlog.protocol.error_code import ErrorCode


class GroupError(KraftlogError):
    """A request that a group refuses.

    Attributes
    ----------
    code : ErrorCode
    member_id : str
        Of the request, or the new id that it is to come back with.
    """

    def __init__(self, code: ErrorCode, member_id: str = "", message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.member_id = member_id
