"""What becomes of a part of a request: a value, or an error of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kraftlog.errors import KraftlogError
from kraftlog.protocol.error_code import ErrorCode

Value = TypeVar("Value")


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
        """Run a part of a request; it may wait for a disk."""
        try:
            return cls(run())
        except (KraftlogError, OSError) as error:
            return cls(None, error)

    @property
    def code(self) -> int:
        """The error code of the protocol."""
        if self.error is None:
            return ErrorCode.NONE
        return self.error.kafka_code if isinstance(self.error, KraftlogError) else ErrorCode.KAFKA_STORAGE_ERROR

    @property
    def message(self) -> str | None:
        """The text of the error."""
        return None if self.error is None else str(self.error)


def fields_of(outcome: Outcome[dict[str, Any]]) -> dict[str, Any]:
    """Return fields of a response that has an error code and a message."""
    return {"error_code": outcome.code, "error_message": outcome.message} | (outcome.value or {})
