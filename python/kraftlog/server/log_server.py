"""``LogServer``: a log that Kafka's clients read."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from kraftlog.errors import Fault, distinct
from kraftlog.layout.discover import LogPaths
from kraftlog.server.as_of import AsOf, LogAsOf, log_as_of
from kraftlog.server.cluster_requests import ClusterRequests, Node
from kraftlog.server.committed_offsets import OffsetsOutsideLog
from kraftlog.server.coordinator_states import LoggedTransactions, committed_offsets
from kraftlog.server.group_requests import GroupRequests
from kraftlog.server.groups import Groups
from kraftlog.server.options import ServerArguments, ServerOptions
from kraftlog.server.reading_requests import ReadingRequests
from kraftlog.server.refused_requests import RefusedRequests
from kraftlog.server.served_log import ServedLog
from kraftlog.server.server import Server
from kraftlog.server.server_thread import ServerThread
from kraftlog.server.transaction_lists import TransactionLists
from kraftlog.server.unread_bytes import UnreadBytes
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.redaction import Redaction


class LogServer:
    """Serves a log to Kafka's clients, for reading, until it is closed.

    The log is served as it was when it was opened, at both isolation levels, by offset and by time. Consumer groups
    have the classic protocol; the offsets that they commit are kept in memory, or in a file of the user's. Nothing is
    written to the log. Requests are answered in a thread of its own.

    Parameters
    ----------
    log : Log or paths
        As ``kraftlog.open`` returns it, or takes it.
    as_of : int, str, datetime or CutTime, optional
        Serve the log as it was at a moment: an offset of the metadata log, a time, or a cut as in ``kraftlog.open``.
        Partitions end at the cut, where open transactions count as aborted; topics are those that existed then, if a
        metadata log is among the files; and groups have the offsets that they had committed.
    group_offsets : path, optional
        A JSON file for committed offsets; created if missing. It precedes the offsets of the moment.
    leave_out_damaged : bool
        Whether damaged batches are left out, as from a compacted log. By default a fetch that reaches one fails with
        CORRUPT_MESSAGE, as a consumer of a broker would.
    redaction : Redaction, optional
        Of the keys, values and headers that clients get. A batch that cannot be redacted, since it cannot be decoded or
        has magic 0 or 1, counts as damaged.
    **options
        As in ``ServerOptions``: by default a free port of the loopback address.

    Raises
    ------
    OSError
        When the address is in use, or is not one of this host.
    ValueError
        When the log has several clusters, there is no such moment, the file has no offsets, or an address of all
        interfaces is not given together with ``advertised_host``.

    Examples
    --------
    >>> import kraftlog
    >>> from confluent_kafka import Consumer
    >>> with kraftlog.LogServer("tests/golden/transactions/log") as server:
    ...     consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "readers"})
    ...     sorted(consumer.list_topics().topics)
    ...     consumer.close()
    ['__consumer_offsets', '__transaction_state', 'orders']
    """

    def __init__(
        self,
        log: Log | LogPaths,
        *,
        as_of: AsOf | None = None,
        group_offsets: str | Path | None = None,
        leave_out_damaged: bool = False,
        redaction: Redaction | None = None,
        **options: Unpack[ServerArguments],
    ) -> None:
        self._options = ServerOptions(**options)
        opened = log if isinstance(log, Log) else open_log(log)
        moment = LogAsOf(opened) if as_of is None else log_as_of(opened, as_of)
        self._log = ServedLog(
            moment.log,
            leaves_out_damaged=leave_out_damaged,
            redaction=redaction,
            existing=moment.topics,
        )
        self._transactions = LoggedTransactions(moment.log, self._log, moment.timestamp)
        self._notes = moment.notes
        self._faults: list[Fault] = []
        earlier = {} if as_of is None else committed_offsets(moment.log, self._log, self._faults)
        offsets = OffsetsOutsideLog(None if group_offsets is None else Path(group_offsets), earlier)
        groups = Groups(offsets)
        listening = self._options.listen()
        port = int(listening.getsockname()[1])
        self._node = Node(self._options.client_host, port, security_protocol=self._options.security_protocol)
        unread = UnreadBytes(self._options.max_queued_bytes)
        handlers = {
            **ClusterRequests(self._log, self._node).handlers,
            **ReadingRequests(self._log, self._options, unread).handlers,
            **RefusedRequests().handlers,
            **TransactionLists(self._transactions).handlers,
            **GroupRequests(self._log, self._node, groups).handlers,
        }
        self._thread = ServerThread()
        self._thread.start(Server(handlers, self._options, listening, unread), groups.close)

    @property
    def bootstrap_servers(self) -> str:
        """Host and port, for ``bootstrap.servers`` of a client."""
        return self._node.address

    @property
    def topics(self) -> dict[str, int]:
        """The served topics, with the number of their partitions."""
        return {name: len(topic.partitions) for name, topic in self._log.topics.items()}

    @property
    def notes(self) -> list[str]:
        """What a reader should know of the served replicas, of the moment, and of what was redacted so far."""
        return [*self._notes, *self._log.notes, *self._log.redaction_notes()]

    @property
    def faults(self) -> list[Fault]:
        """What clients have not got so far, because it is damaged or cannot be read."""
        return distinct([*self._faults, *self._transactions.faults, *self._log.faults])

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
