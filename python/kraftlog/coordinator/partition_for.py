"""In which partition of its topic a coordinator keeps what it knows of a group or of a transactional id.

Kafka takes Java's hash code of the name, its absolute value, modulo the number of partitions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DEFAULT_PARTITIONS = 50  # offsets.topic.num.partitions, transaction.state.log.num.partitions
_LEAST = -(1 << 31)
_MULTIPLIER = 31


def partition_for(name: str, partitions: int = DEFAULT_PARTITIONS) -> int:
    """Return the partition of a group or transactional id.

    Raises
    ------
    ValueError
        When the number of partitions is not positive.

    Examples
    --------
    >>> partition_for("grp-classic", 2), partition_for("grp-modern", 2)
    (0, 1)
    """
    return int(partitions_for(pa.array([name]), partitions)[0])


def partitions_for(names: pa.StringArray, partitions: int = DEFAULT_PARTITIONS) -> npt.NDArray[np.int32]:
    """Return the partition of each of these groups or transactional ids.

    Parameters
    ----------
    names : pyarrow.StringArray
        Without nulls.
    partitions : int
        How many the topic has.

    Raises
    ------
    ValueError
        When the number of partitions is not positive.
    """
    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    hashes = hash_codes(names).astype(np.int64)
    return np.where(hashes == _LEAST, 0, np.abs(hashes) % partitions).astype(np.int32)


def hash_codes(names: pa.StringArray) -> npt.NDArray[np.int32]:
    """Return ``String.hashCode()`` of each string, as Java has it: over UTF-16.

    Names are looked at letter by letter, all of them at once.
    """
    units = [np.frombuffer(name.encode("utf-16-le", "surrogatepass"), np.uint16) for name in names.to_pylist()]
    lengths = np.array([len(unit) for unit in units], np.int64)
    hashes = np.zeros(len(units), np.uint32)
    order = np.argsort(-lengths, kind="stable")  # names that are over drop off at the end
    letters = np.concatenate([units[at] for at in order]) if len(order) else np.empty(0, np.uint16)
    starts = np.cumsum(lengths[order]) - lengths[order]
    for place in range(int(lengths.max(initial=0))):
        longer = int(np.searchsorted(-lengths[order], -place, side="left"))
        part = order[:longer]
        hashes[part] = hashes[part] * np.uint32(_MULTIPLIER) + letters[starts[:longer] + place]
    return hashes.view(np.int32)
