"""Transactions: packing plan, packing, boundary scan, and reading what is visible."""

from __future__ import annotations

import corpus
import transactional
import works
from material import Material

from . import common


class PlanBatches:
    def setup(self) -> None:
        (self.contender,) = transactional.plan(common.MEGABYTES)
        self.contender.run()  # compiled, or loaded

    def time_plan(self) -> None:
        """Plan batches of 8 KiB for two million records."""
        self.contender.run()

    def track_plan(self) -> float:
        """Sizes a second."""
        return common.speed(self.contender.run, self.contender.records)

    track_plan.unit = "records/s"


class OnLogs:
    """The contenders of one piece of work, each as a benchmark's parameter."""

    params = common.SIZES
    param_names = common.SIZE_NAMES
    work = ""

    def setup(self, value_bytes: int, batch_kib: int) -> None:
        material = Material(corpus.Workload(value_bytes, batch_kib), common.MEGABYTES)
        self.contenders = {contender.name: contender for contender in works.BY_NAME[self.work](material, {})}


class BoundaryScan(OnLogs):
    work = "boundaries"

    def time_scan(self, *_: object) -> None:
        """Find the markers in a log of 20 MB."""
        self.contenders[transactional.BOUNDARIES].run()

    def time_walk(self, *_: object) -> None:
        """Walk over headers and records of the same log."""
        self.contenders[transactional.WALK].run()


class PackTransaction(OnLogs):
    work = "pack"

    def time_pack(self, *_: object) -> None:
        """Pack 20 MB of records as a metadata transaction."""
        self.contenders[transactional.PACKED].run()

    def time_encode(self, *_: object) -> None:
        """Encode the same records plain."""
        self.contenders[transactional.ENCODED].run()


class ReadCommitted(OnLogs):
    work = "read_committed"

    def time_committed(self, *_: object) -> None:
        """Read what is visible of a log of committed transactions."""
        self.contenders[transactional.committed(transactional.COMMITTED_LOG)].run()

    def time_a_fifth_aborted(self, *_: object) -> None:
        """Read what is visible where a fifth of the transactions was aborted."""
        self.contenders[transactional.committed(transactional.ABORTED_LOG)].run()

    def time_uncommitted(self, *_: object) -> None:
        """Read all of the log with aborted transactions."""
        self.contenders[transactional.uncommitted(transactional.ABORTED_LOG)].run()
