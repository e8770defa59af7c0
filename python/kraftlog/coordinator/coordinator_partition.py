"""The partition of an internal topic with the records of one group or transactional id."""

from __future__ import annotations

import numpy as np

from kraftlog._native.hashes import Values

_LEAST = -(1 << 31)


def coordinator_partition(name: str, partitions: int) -> int:
    """Return the partition of a name, as ``group_partition`` for a column of names.

    Parameters
    ----------
    name : str
        A group, or a transactional id.
    partitions : int
        Number of partitions of the topic; positive.

    Examples
    --------
    >>> [coordinator_partition(name, 2) for name in ("grp-classic", "grp-modern")]
    [0, 1]
    """
    text = name.encode()
    code = int(Values(np.array([0, len(text)], np.int64), text).hash_code()[0])
    return 0 if code == _LEAST else abs(code) % partitions  # which has no absolute value in 32 bits; Kafka uses 0
