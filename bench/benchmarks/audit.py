"""Audits: two replicas side by side, and a cluster against its copy or its mirror."""

from __future__ import annotations

from collections.abc import Callable

import auditing
import kraftlog

from . import common


class _OfLogs:
    params = ([1, 16], [False, True])
    param_names = ("batch_kib", "has_producers")

    def setup(self, batch_kib: int, has_producers: bool) -> None:
        options = {"has_producers": has_producers}
        self.replicas = [auditing.replica(node, batch_kib, common.MEGABYTES, **options) for node in (1, 2)]
        self.mirror = auditing.mirror(batch_kib, common.MEGABYTES, **options)
        self.data = [auditing.partition(one).read_bytes() for one in self.replicas]

    def checksums(self) -> None:
        """Compute the checksum of all bytes of both replicas, which an audit at least has to do."""
        for data in self.data:
            kraftlog.crc32c(data)

    def ratio(self, work: Callable[[], object]) -> float:
        """Return the speed of a piece of work, relative to that of the checksums of the same bytes."""
        size = sum(map(len, self.data))
        return common.speed(work, size) / common.speed(self.checksums, size)


class AuditReplicas(_OfLogs):
    def time_audit(self, *_: object) -> None:
        """Audit two equal replicas of 20 MB."""
        auditing.audit(*self.replicas)

    def track_audit(self, *_: object) -> float:
        """Speed of the same, relative to that of the checksums."""
        return self.ratio(lambda: auditing.audit(*self.replicas))


class CompareClusters(_OfLogs):
    def time_copy(self, *_: object) -> None:
        """Compare a cluster of 20 MB with its copy, record by record."""
        auditing.compare(*self.replicas)

    def time_mirror(self, *_: object) -> None:
        """Compare it with its mirror, by contents."""
        auditing.compare(self.replicas[0], self.mirror)

    def track_copy(self, *_: object) -> float:
        """Speed of the comparison with a copy, relative to that of the checksums."""
        return self.ratio(lambda: auditing.compare(*self.replicas))

    def track_mirror(self, *_: object) -> float:
        """Speed of the comparison with a mirror, relative to that of the checksums."""
        return self.ratio(lambda: auditing.compare(self.replicas[0], self.mirror))
