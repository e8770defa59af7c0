"""The partition of an internal topic with the records of a group or of a transactional id.

As in Kafka, it is the absolute value of Java's hash code of the name, modulo the number of partitions.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.arrow_arrays import scalar_of
from kraftlog.codec.partitioner import remainders
from kraftlog.codec.value_hashes import ValueArray, hash_code

DEFAULT_PARTITIONS = 50  # offsets.topic.num.partitions, transaction.state.log.num.partitions
_LEAST, _ZERO = scalar_of(-(1 << 31), pa.int32()), scalar_of(0, pa.int32())


def group_partition(names: ValueArray, partitions: int | pa.Array = DEFAULT_PARTITIONS) -> pa.Array:
    """Return the partition of each name in ``__consumer_offsets`` or ``__transaction_state``.

    Parameters
    ----------
    names : pyarrow.Array or pyarrow.ChunkedArray of text
        Groups, or transactional ids.
    partitions : int or pyarrow.Array of integers
        Number of partitions of the topic; an array has a number for each name.

    Returns
    -------
    pyarrow.Array
        Int32; nulls remain null.

    Raises
    ------
    ValueError
        When the number of partitions is not positive, or the names are not text.

    Examples
    --------
    >>> group_partition(pa.array(["grp-classic", "grp-modern", None]), 2).to_pylist()
    [0, 1, None]
    """
    codes = hash_code(names)
    has_no_absolute_value = pc.equal(codes, _LEAST)  # in 32 bits; Kafka uses 0
    return remainders(pc.abs(pc.if_else(has_no_absolute_value, _ZERO, codes)), partitions)
