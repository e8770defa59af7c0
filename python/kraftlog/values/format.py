"""What turns a column of bytes into a typed one."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from kraftlog.values.bad_value import BadValue


class Format(Protocol):
    """A format of keys or values, with its schema.

    Attributes
    ----------
    arrow_type : pyarrow.DataType
        Of what is converted.
    reads_headers : bool
        Whether headers may say by which schema a value was written.
    """

    arrow_type: pa.DataType
    reads_headers: bool

    def convert(self, values: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, list[BadValue]]:
        """Return values, null where they are or do not fit, and those that do not."""
