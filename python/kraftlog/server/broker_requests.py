"""Requests to a broker over a store, without connections."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kraftlog.log_store.store import LogStore
from kraftlog.server.cluster_requests import ClusterRequests, Node
from kraftlog.server.committed_offsets import StoredOffsets
from kraftlog.server.consumer_group_requests import ConsumerGroupRequests
from kraftlog.server.group_requests import GroupRequests
from kraftlog.server.groups import Groups
from kraftlog.server.live_log import LiveLog
from kraftlog.server.marker_requests import MarkerRequests
from kraftlog.server.node_requests import NodeRequests
from kraftlog.server.options import ServerOptions
from kraftlog.server.produce_requests import ProduceRequests
from kraftlog.server.reading_requests import ReadingRequests
from kraftlog.server.server import Handler
from kraftlog.server.topic_requests import TopicRequests
from kraftlog.server.transaction_lists import StoredTransactions, TransactionLists
from kraftlog.server.transaction_requests import TransactionRequests
from kraftlog.server.unread_bytes import UnreadBytes

GROUP_VERSION = "group.version"  # of groups of the newer protocol (KIP-848)


class BrokerRequests:
    """Answers all requests to a broker.

    Parameters
    ----------
    store : LogStore
    node : Node
    options : ServerOptions
    loop : asyncio.AbstractEventLoop
        Runs the handlers.
    auto_create_partitions : int
        As in ``Broker``.

    Attributes
    ----------
    log : LiveLog
        The topics of the store; to be closed before it.
    groups : Groups
        The groups of the store, whose sessions have not begun.
    unread : UnreadBytes
        The memory of responses, which the server shares.
    """

    def __init__(
        self,
        store: LogStore,
        node: Node,
        options: ServerOptions,
        loop: asyncio.AbstractEventLoop,
        *,
        auto_create_partitions: int,
    ) -> None:
        self.groups = Groups(StoredOffsets(store))
        self.log = log = LiveLog(store, loop, auto_create_partitions=auto_create_partitions)
        self.unread = UnreadBytes(options.max_queued_bytes)
        group_requests = GroupRequests(log, node, self.groups)
        self._handlers = {
            **ClusterRequests(log, node).handlers,
            **NodeRequests(store, node).handlers,
            **ReadingRequests(log, options, self.unread).handlers,
            **ProduceRequests(store, log).handlers,
            **MarkerRequests(store).handlers,
            **TransactionLists(StoredTransactions(store)).handlers,
            **TransactionRequests(store, log, group_requests).handlers,
            **TopicRequests(store, log, node, max(auto_create_partitions, 1)).handlers,
            **group_requests.handlers,
        }
        if store.parts.cluster.features.get(GROUP_VERSION):
            self._handlers |= ConsumerGroupRequests(log, self.groups).handlers

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return self._handlers
