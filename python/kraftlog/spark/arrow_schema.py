"""The Arrow form of Spark's schemas, in any version of PySpark."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the schema that Spark compares with the record batches of a data source: timestamps are in UTC.

    Parameters
    ----------
    schema : StructType
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    has_time_zones = "timezone" in signature(to_arrow_schema).parameters  # PySpark 4.1 supports only UTC
    return to_arrow_schema(schema, timezone="UTC") if has_time_zones else to_arrow_schema(schema)
