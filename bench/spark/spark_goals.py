"""What kraftlog must reach in Spark; each goal is a ratio of records a second."""

from __future__ import annotations

from jobs import (
    ALL,
    COMMITTED,
    CONNECTOR,
    DATA_SOURCE,
    FORMAT,
    ISOLATION,
    MAP_IN_ARROW,
    OFFSET,
    ONE_CORE,
    PARQUET,
    PYARROW,
    READ_RANGES,
    TO_PARQUET,
    TUNED,
)
from topics import ORDERS, PAYMENTS

from goals import RatioGoal

GOALS = [
    RatioGoal("read_ranges, time within 1.25 x mapInArrow's", ALL, READ_RANGES, MAP_IN_ARROW, 1 / 1.25, logs=(ORDERS,)),
    RatioGoal("format, time within 1.25 x the data source's", ALL, FORMAT, DATA_SOURCE, 1 / 1.25, logs=(ORDERS,)),
    RatioGoal("all columns, read_ranges x kafka as it comes", ALL, READ_RANGES, CONNECTOR, 5, logs=(ORDERS,)),
    RatioGoal("all columns, read_ranges x kafka tuned", ALL, READ_RANGES, TUNED, 2.5, logs=(ORDERS,)),
    RatioGoal("all columns, format x kafka as it comes", ALL, FORMAT, CONNECTOR, 4, logs=(ORDERS,)),
    RatioGoal("offset alone, read_ranges x kafka as it comes", OFFSET, READ_RANGES, CONNECTOR, 10, logs=(ORDERS,)),
    RatioGoal("to Parquet, x kafka as it comes", PARQUET, TO_PARQUET, CONNECTOR, 5, logs=(ORDERS,)),
    RatioGoal("to Parquet, time within 1.5 x pyarrow's", PARQUET, TO_PARQUET, PYARROW, 1 / 1.5, logs=(ORDERS,)),
    *(
        RatioGoal(f"{way}{COMMITTED}, x read_uncommitted", ISOLATION, way + COMMITTED, way, 1 / 1.05, logs=(PAYMENTS,))
        for way in (READ_RANGES, FORMAT)
    ),
    *(
        RatioGoal(f"{way} on two cores, x one", ALL, way, way + ONE_CORE, 1.8, logs=(ORDERS,))
        for way in (READ_RANGES, FORMAT)
    ),
]
