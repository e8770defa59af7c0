"""``Broker``: a store that Kafka's clients write and read."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self, Unpack

from kraftlog.log_store.store import LogStore
from kraftlog.server.broker_requests import GROUP_VERSION, BrokerRequests
from kraftlog.server.cluster_requests import Node
from kraftlog.server.faults import Faults
from kraftlog.server.options import ServerArguments, ServerOptions
from kraftlog.server.server import Server
from kraftlog.server.server_thread import ServerThread
from kraftlog.server.upkeep import upkeep
from kraftlog.write.log_options import Fsync

MAX_REQUEST_BYTES = 100 << 20  # socket.request.max.bytes
_FEATURES = ("metadata.version", "transaction.version", GROUP_VERSION)  # those that clients depend on


class Broker:
    """One node that Kafka's clients produce to and consume from, until it is closed.

    It is for tests, reading and edges: it has no replicas, and every user may do everything. Its log directory is that
    of a ``LogStore``: Kafka, and all tools of this package, can open it afterwards. Requests are answered in a thread
    of its own.

    Parameters
    ----------
    path : path, optional
        The log directory; created if missing. By default a temporary one, which is removed at the end.
    auto_create_partitions : int
        Partitions of a topic that a client creates by its first use; 0: such topics are unknown.
    fsync : {"commit", "batch", "close"}, optional
        As in ``StoreOptions``: by default ``commit``, so that records that were acknowledged to a client with
        ``acks=all`` survive a power failure; ``close`` in a temporary directory.
    **options
        As in ``ServerOptions``: by default a free port of the loopback address.

    Attributes
    ----------
    path : Path
    store : LogStore
        The open store, which other threads of this process can use at the same time.
    faults : Faults
        Faults that a test asks for.

    Raises
    ------
    OSError
        When the address is in use, or is not one of this host.
    LogDirectoryLockedError
        When a broker or a store has the directory.
    ValueError
        When it is not the log directory of a single KRaft node.

    Examples
    --------
    >>> import kraftlog
    >>> from confluent_kafka import Consumer, Producer
    >>> with kraftlog.Broker() as broker:
    ...     producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    ...     producer.produce("orders", b"one")
    ...     producer.flush()
    ...     log = kraftlog.open(broker.path, topics=["orders"])
    ...     log.records(["offset", "value"]).to_table().to_pylist()
    0
    [{'offset': 0, 'value': b'one'}]
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        auto_create_partitions: int = 1,
        fsync: Fsync | None = None,
        **options: Unpack[ServerArguments],
    ) -> None:
        options.setdefault("max_request_bytes", MAX_REQUEST_BYTES)
        self._options = ServerOptions(**options)
        self._auto_create_partitions = auto_create_partitions
        self._folder = TemporaryDirectory(prefix="kraftlog-broker-") if path is None else None
        self.path = Path(self._folder.name if self._folder is not None else path or "")
        self._fsync: Fsync = fsync or ("commit" if self._folder is None else "close")
        self.faults = Faults()
        self._opened = ExitStack()
        try:
            self._start()
        except BaseException:
            self._remove_folder()
            raise

    def _start(self) -> None:
        with ExitStack() as opened:
            listening = opened.enter_context(self._options.listen())
            self.store = opened.enter_context(LogStore(self.path, fsync=self._fsync, continues_transactions=True))
            cluster = self.store.parts.cluster
            port = int(listening.getsockname()[1])
            self._node = Node(self._options.client_host, port, cluster.node_id, self._options.security_protocol)
            self._options = replace(self._options, port=port)  # for a restart
            self._thread = thread = ServerThread()
            requests = BrokerRequests(
                self.store, self._node, self._options, thread.loop, auto_create_partitions=self._auto_create_partitions
            )
            opened.callback(requests.log.close)
            with_faults = {key: self.faults.around(handler) for key, handler in requests.handlers.items()}
            features = {name: cluster.features[name] for name in _FEATURES if name in cluster.features}
            server = Server(with_faults, self._options, listening, requests.unread, features)
            thread.loop.call_soon(requests.groups.begin_sessions)
            thread.start(server, requests.groups.close, upkeep(self.store, requests.groups))
            opened.callback(thread.stop)
            self._opened = opened.pop_all()

    @property
    def bootstrap_servers(self) -> str:
        """Host and port, for ``bootstrap.servers`` of a client."""
        return self._node.address

    def close(self) -> None:
        """Close all connections and the store, in this order; a second call does nothing.

        Open transactions continue when a broker opens the directory again, and members of groups keep their partitions.
        """
        try:
            self._opened.close()
        finally:
            self._remove_folder()

    def kill(self) -> None:
        """Stop as if the process were killed: nothing is completed on disk, and connections end at once.

        The directory stays, also a temporary one, until ``close``.
        """
        self._thread.lose_connections()  # first: a process that is killed does not say that its store is closed
        self.store._abandon()
        self._opened.close()

    def restart(self) -> None:
        """Start again at the same address, with the same directory; after ``kill`` the store recovers first."""
        self._opened.close()
        self._start()

    def _remove_folder(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
