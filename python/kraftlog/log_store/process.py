"""``process``: consume, transform and produce, in transactions that hold the consumed offsets as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import pyarrow as pa

from kraftlog.log_store.consumer import MOST_RECORDS
from kraftlog.log_store.errors import CommitFailedError
from kraftlog.log_store.sent_rows import Sent
from kraftlog.log_store.store import LogStore
from kraftlog.topics import names


def process(
    store: LogStore,
    source: str | Iterable[str],
    transform: Callable[[pa.Table], Sent | None],
    sink: str,
    *,
    group: str,
    transactional_id: str,
    max_records: int = MOST_RECORDS,
) -> int:
    """Transform the records of topics that a group has not consumed yet, each exactly once.

    Records are read at read_committed. The rows of ``transform`` and the offsets of what it was given are one
    transaction: when the process is stopped at any moment, the next call goes on where the last committed transaction
    ended. ``transform`` itself may be called again with the same records.

    Parameters
    ----------
    store : LogStore
    source : str or iterable of str
        Topics.
    transform : callable
        Is given columns of the table ``records``; returns what ``Producer.send`` takes, or None for no rows.
    sink : str
        The topic that its rows are written to.
    group : str
        Under which offsets are committed. Calls of several threads for one group share the partitions; what a call has
        under way when another one comes or goes is aborted and taken up again.
    transactional_id : str
        Another call with the same one, in this process or a later one, fences this one.
    max_records : int
        About how many records a transaction takes.

    Returns
    -------
    int
        How many records were consumed: all that there were, but for those of other calls for the group.

    Examples
    --------
    >>> import tempfile, kraftlog, pyarrow.compute as pc
    >>> with tempfile.TemporaryDirectory() as path, kraftlog.LogStore(path) as store:
    ...     store.create_topic("words"), store.create_topic("loud")
    ...     with store.producer() as producer:
    ...         producer.send("words", value="hello")
    ...     def louder(rows):
    ...         return pa.table({"value": pc.utf8_upper(rows["value"].cast(pa.string()))})
    ...     process(store, "words", louder, "loud", group="loud", transactional_id="loud")
    ...     process(store, "words", louder, "loud", group="loud", transactional_id="loud")
    ...     kraftlog.open(path, topics=["loud"]).records(["value"]).to_table()["value"].to_pylist()
    (None, None)
    1
    0
    [b'HELLO']
    """
    topics = names(source)
    count = 0
    with (
        store.producer(transactional_id) as producer,
        store.consumer(group, isolation_level="read_committed") as consumer,
    ):
        consumer.subscribe(topics)
        while (rows := consumer.poll(max_records)).num_rows:
            with suppress(CommitFailedError), producer.transaction():
                result = transform(rows)
                if result is not None:
                    producer.send(sink, result)
                producer.send_offsets_to_transaction(consumer.position(), consumer.group_metadata())
                producer.commit_transaction()
                count += rows.num_rows
    return count
