"""``process``: consume, transform and produce, in transactions that include the consumed offsets."""

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
    """Transform the records of topics that a group has not yet consumed, each exactly once.

    Records are read at read_committed. The rows of ``transform`` and the offsets of its input are committed in one
    transaction: if the process is stopped at any time, the next call resumes after the last committed transaction.
    ``transform`` may be called again with the same records.

    Parameters
    ----------
    store : LogStore
    source : str or iterable of str
        Topics.
    transform : callable
        Receives columns of the table ``records``; returns an argument for ``Producer.send``, or None for no rows.
    sink : str
        Target topic.
    group : str
        Group for which offsets are committed. Calls from several threads for one group share the partitions; when
        another one joins or leaves, a call's open transaction is aborted and retried.
    transactional_id : str
        Another call with the same id, in this process or a later one, fences this one.
    max_records : int
        Approximate number of records per transaction.

    Returns
    -------
    int
        Number of consumed records: all new ones, except those of other calls for the group.

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
