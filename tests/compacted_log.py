"""A topic of which a cleaner removes each second batch; all batches have the same size."""

from __future__ import annotations

import kraftlog


def write_compacted(store: kraftlog.LogStore, count: int) -> None:
    """Write the batches to a closed segment of the partition ``orders-0``.

    In a cleaned file each batch begins where another one began before: a reader that goes on there skips records.
    """
    store.create_topic("orders", configs={"cleanup.policy": "compact"})
    with store.producer() as producer:
        for number in range(count):
            producer.send("orders", key=f"{number % 2 * number:05d}", value=f"{number:01000d}")
            producer.flush()
    store._open_partition(("orders", 0)).roll()
