"""Values in memory: Avro to columns, and redaction."""

from __future__ import annotations

from collections.abc import Callable

import redacting
import typed_values
from rounds import Contender

from . import common


class _Columns:
    """What kraftlog makes of columns, by the name of the piece."""

    param_names = ("piece",)

    def take(self, contenders: list[Contender], name: str) -> None:
        contender = next(one for one in contenders if one.name == name)
        self.run: Callable[[], object] = contender.run
        self.records = contender.records


class Avro(_Columns):
    params = (list(typed_values.SCHEMAS),)

    def setup(self, piece: str) -> None:
        self.take(typed_values.contenders_of(piece), typed_values.KRAFTLOG)

    def time_decode(self, _: str) -> None:
        """Decode values to columns."""
        self.run()

    def track_decode(self, _: str) -> float:
        """Return values decoded a second."""
        return common.speed(self.run, self.records)

    track_decode.unit = "records/s"


class Redaction(_Columns):
    params = (list(redacting.PLACES),)

    def setup(self, piece: str) -> None:
        self.take(redacting.contenders(redacting.PLACES[piece]), redacting.COLUMNS)

    def time_redact(self, _: str) -> None:
        """Redact twenty thousand records."""
        self.run()

    def track_redact(self, _: str) -> float:
        """Return records redacted a second."""
        return common.speed(self.run, self.records)

    track_redact.unit = "records/s"
