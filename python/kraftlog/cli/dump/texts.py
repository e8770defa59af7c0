"""What is printed of the keys and values of some records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass
class Texts:
    """What is printed of some records.

    Attributes
    ----------
    keys, payloads : list of str or None
        None for what is not printed.
    faults : dict of int to str
        Why a row cannot be printed.
    """

    keys: list[str | None]
    payloads: list[str | None]
    faults: dict[int, str] = field(default_factory=dict)


Parser = Callable[[pa.RecordBatch], Texts]
"""Is given records with the columns offset, key and value."""
