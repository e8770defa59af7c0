"""The partition of a record with a key."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.arrow_arrays import scalar_of
from kraftlog.codec.value_hashes import ValueArray, murmur2

_NON_NEGATIVE = 0x7FFFFFFF


def partition_for_key(keys: ValueArray, partitions: int | pa.Array) -> pa.Array:
    """Return the partition of each key, as in Kafka's own producers: murmur2 of its bytes, modulo.

    Parameters
    ----------
    keys : pyarrow.Array or pyarrow.ChunkedArray
        Binary or text, as serialized by the producer. An empty key has a partition.
    partitions : int or pyarrow.Array of integers
        Number of partitions of the topic; an array has a number for each key.

    Returns
    -------
    pyarrow.Array
        Int32; null for a null key or a null number of partitions.

    Raises
    ------
    ValueError
        When the number of partitions is not positive, or the keys are neither binary nor text.

    Examples
    --------
    >>> partition_for_key(pa.array([b"foobar", b"", None]), 12).to_pylist()
    [6, 9, None]
    """
    return remainders(pc.bit_wise_and(murmur2(keys), _NON_NEGATIVE), partitions)


def remainders(hashes: pa.Array, partitions: int | pa.Array) -> pa.Array:
    """Return hashes modulo numbers of partitions, never negative; null if either is null.

    Raises
    ------
    ValueError
        When a number of partitions is not positive.
    """
    divisors = partitions if isinstance(partitions, pa.Array) else scalar_of(partitions, pa.int64())
    least = pc.min(divisors).as_py()
    if least is not None and least < 1:
        raise ValueError(f"a topic has at least one partition, not {least}")
    quotients = pc.divide(hashes, divisors)
    return pc.subtract(hashes, pc.multiply(quotients, divisors)).cast(pa.int32())
