"""What becomes of a part of a request: a value, or an error of the protocol."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kraftlog.errors import KraftlogError
from kraftlog.protocol.error_code import ErrorCode

Value = TypeVar("Value")

_log = logging.getLogger("kraftlog.server")
_OF_THE_SERVER = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)
_OF_A_COORDINATOR: Mapping[int, int] = {  # CoordinatorOperationExceptionHelper, TransactionStateManager
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """A value, or an error.

    Attributes
    ----------
    value : object
        None after an error.
    error : KraftlogError or OSError or None
    """

    value: Value | None = None
    error: KraftlogError | OSError | None = None

    @classmethod
    def of(cls, run: Callable[[], Value]) -> Outcome[Value]:
        """Run a part of a request; it may wait for a disk.

        An error that is no fault of the client is a line in the log of this process: its code tells the client little.
        """
        try:
            return cls(run())
        except (KraftlogError, OSError) as error:
            outcome = cls(None, error)
            if outcome.code in _OF_THE_SERVER:
                _log.error("a part of a request has failed: %s: %s", type(error).__name__, error)
            return outcome

    @property
    def code(self) -> int:
        """The error code of the protocol."""
        if self.error is None:
            return ErrorCode.NONE
        return self.error.kafka_code if isinstance(self.error, KraftlogError) else ErrorCode.KAFKA_STORAGE_ERROR

    @property
    def coordinator_code(self) -> int:
        """The error code of a part that a coordinator writes to its log: its clients know no other ones of a log."""
        return _OF_A_COORDINATOR.get(self.code, self.code)

    @property
    def message(self) -> str | None:
        """The text of the error."""
        return None if self.error is None else str(self.error)


def fields_of(outcome: Outcome[dict[str, Any]]) -> dict[str, Any]:
    """Return fields of a response that has an error code and a message."""
    return {"error_code": outcome.code, "error_message": outcome.message} | (outcome.value or {})
