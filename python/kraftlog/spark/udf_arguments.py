"""Shared by the functions for columns: Spark's types, options, and values that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

FAIL, NULL = "fail", "null"
_ON_ERROR = (FAIL, NULL)


def spark_type(arrow_type: pa.DataType) -> DataType:
    """Return the Spark type for an Arrow type."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(arrow_type)


def literals(options: Mapping[str, Any]) -> dict[str, Column]:
    """Return options as columns; options that are columns already stay."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812

    return {name: value if isinstance(value, Column) else F.lit(value) for name, value in options.items()}


def constants(options: Mapping[str, pa.Array | None]) -> dict[str, Any]:
    """Return the value of each option that is not null, as ``constant`` does."""
    found = {name: constant(name, column) for name, column in options.items()}
    return {name: value for name, value in found.items() if value is not None}


def constant(name: str, column: pa.Array | None, default: Any = None) -> Any:
    """Return the value of an option, which SQL passes as a column; null is an absent option.

    Raises
    ------
    ValueError
        When it has several values.
    """
    values = [] if column is None else pc.unique(column).to_pylist()
    if len(values) > 1:
        raise ValueError(f"option {name} has several values, {values[0]!r} and {values[1]!r}; it takes one")
    return default if values in ([], [None]) else values[0]


def checked_on_error(on_error: str) -> str:
    """Return the option on_error.

    Raises
    ------
    ValueError
        When it is not one of these.
    """
    if on_error not in _ON_ERROR:
        raise ValueError(f"option on_error is {on_error!r}, not {' or '.join(_ON_ERROR)}")
    return on_error
