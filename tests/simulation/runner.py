"""Runs workloads, crashes them at every operation, and recovers; an oracle says what must hold.

A workload runs once and is branched behind each operation: the disk that it had there loses some of what was not
synced, or the process is killed and loses nothing. Recovery runs on each different disk once; what it sees is judged by
what the process had noted by then. Recovery is branched in the same way, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any

from faults import KINDS as FAULTS
from faults import Fault, InterruptError
from losses import KINDS, described, loss_of, one_kept, one_lost, random_loss, smaller
from process import Process
from sim_disk import Loss, Moment, SimDisk

Notes = Sequence[tuple[Any, ...]]
KILL = "kill"
RANDOM = "random"
CHOSEN = {RANDOM: random_loss, "one lost": one_lost, "one kept": one_kept}
Crash = Loss | str
SIMPLE = {"none": 4, KILL: 3, "one lost": 3, "one kept": 2, "names": 1, "data": 1, "all": 1}
"""Crashes that lose in a simple way, with how often each is drawn beside the others."""
RANDOM_SHARE = 5
FAULT_SHARE = 1  # of each kind of fault
BEHIND = {  # where a simple crash shows most
    "none": ("notes",),
    KILL: ("truncate", "append", "rename"),
    "one lost": ("rename", "unlink"),
    "one kept": ("unlink",),
    "names": ("rename",),
}


class Workload:
    """What a process does, what the next one does with what is left, and what must hold then.

    Attributes
    ----------
    failures : tuple of type
        Errors that ``run`` may end with when the disk fails.
    faults : tuple of str
        Kinds of faults that it meets.
    actors : tuple of str
        Who takes part besides, as ``Process.plays`` has them.
    """

    failures: tuple[type[BaseException], ...] = (OSError,)
    faults: tuple[str, ...] = tuple(FAULTS)
    actors: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return type(self).__name__

    def prepare(self, process: Process) -> None:
        """Make what is there before the process starts; all of it is on disk then."""

    def run(self, process: Process) -> None:
        """Do the work, and ``process.note`` what must last."""
        raise NotImplementedError

    def recover(self, process: Process) -> Any:
        """Open what a crash has left; return what ``judge`` looks at, which may note as well.

        It depends on the disk alone. An exception is a violation.
        """
        raise NotImplementedError

    def may_go(self, name: str) -> bool:
        """Whether a second recovery may remove a file that the first one has left."""
        return name.endswith(".snapshot")  # those between segments, but for the newest, as Kafka does

    def judge(self, notes: Notes, seen: Any) -> None:
        """Raise an AssertionError when what a recovery saw is not what was noted before, and by itself."""
        raise NotImplementedError


@dataclass(frozen=True)
class Schedule:
    """One run with its crashes."""

    workload: str
    variant: int
    fault: Fault | None
    crashes: tuple[tuple[int, Crash], ...]


class ViolationError(AssertionError):
    """Something that had to hold and did not; the text says how it came about."""

    def __init__(self, schedule: Schedule, cause: BaseException, text: str) -> None:
        super().__init__(text)
        self.schedule = schedule
        self.cause = cause


@dataclass
class Counts:
    """What was tried."""

    schedules: int = 0
    states: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


@dataclass
class _Recovered:
    """What a recovery did on one disk."""

    seen: Any
    error: BaseException | None
    moments: list[Moment]
    notes: list[Any]
    end: SimDisk


def noted(moments: list[Moment], notes: list[Any], number: int) -> list[Any]:
    """Return what a process had noted when it was about to change the disk again behind a moment."""
    return notes[: moments[number + 1].notes] if number + 1 < len(moments) else notes


def notes_follow(moments: list[Moment]) -> list[int]:
    """Return the moments behind which a process made notes: what was acknowledged then has to be on disk."""
    return [at for at, (one, two) in enumerate(pairwise(moments)) if one.notes != two.notes]


class Simulation:
    """A workload with all its crashes.

    Parameters
    ----------
    workload : Workload
    seed : int
    ignored, reordered : str
        See ``SimDisk``; for the test of the simulation itself.
    """

    def __init__(self, workload: Workload, seed: int = 0, *, ignored: str = "", reordered: str = "") -> None:
        self.workload = workload
        self.seed = seed
        self.counts = Counts()
        self.shrinks = True
        self.sites: set[str] = set()
        self._ignored, self._reordered = ignored, reordered
        self._runs: dict[tuple[int, Fault | None], SimDisk] = {}
        self._recovered: dict[bytes, tuple[Any, BaseException | None, Notes]] = {}
        self._judged: set[tuple[bytes, tuple[Any, ...]]] = set()
        self._dice = Random(f"schedules {seed}")
        self._cards: list[str] = []  # kinds that are drawn next
        self._moments_of: dict[str, Iterator[tuple[int, int]]] = {}  # for each simple kind, those that it takes next

    # one run, one recovery

    def _run(self, variant: int, fault: Fault | None) -> SimDisk:
        known = self._runs.get((variant, fault))
        if known is not None:
            return known
        start = SimDisk()
        process = Process(start, f"prepare {self.seed} {variant}")
        with process.running():
            self.workload.prepare(process)
        start.settle()
        disk = SimDisk(start.nodes, fault, self._ignored, self._reordered)
        disk.notes = list(start.notes)
        process = Process(disk, f"run {self.seed} {variant}")
        with process.running():
            try:
                self.workload.run(process)
            except (*self.workload.failures, InterruptError):
                if not disk.has_failed:
                    raise
            except AssertionError as violated:
                text = "\n".join([*map(str, disk.steps[-30:]), f"{self.workload.name}, seed {self.seed}: {violated}"])
                raise ViolationError(Schedule(self.workload.name, variant, fault, ()), violated, text) from violated
        self.sites |= disk.sites
        self.counts.kinds.update(f"actor: {actor}" for actor in disk.actors)
        self._runs[variant, fault] = disk
        return disk

    def _recover(self, disk: SimDisk) -> _Recovered:
        disk = SimDisk(disk.nodes, None, self._ignored, self._reordered)
        disk.is_recovery = True
        process = Process(disk, f"recover {disk.state_key().hex()}")
        seen, error = None, None
        with process.running():
            try:
                seen = self.workload.recover(process)
            except Exception as raised:  # what a recovery cannot open is what the simulation looks for
                error = raised
        self.sites |= disk.sites
        return _Recovered(seen, error, disk.moments, disk.notes, disk)

    @staticmethod
    def _crashed(nodes: SimDisk, crash: Crash) -> SimDisk:
        return nodes.kill() if isinstance(crash, str) else nodes.crash(crash)

    def _judge(self, notes: Notes, seen: Any, error: BaseException | None, made: Notes) -> BaseException | None:
        if error is not None:
            return error
        try:
            self.workload.judge([*notes, *made], seen)
        except AssertionError as violated:
            return violated
        return None

    # schedules

    def explore(self, schedules: int, variants: int = 1) -> Counts:
        """Try schedules until there are so many; kinds are drawn by their shares from the first one on.

        Raises
        ------
        ViolationError
            When something does not hold.
        """
        dice = self._dice
        while self.counts.schedules < schedules:
            self._cards = self._cards or self._deck(dice)
            kind = self._cards.pop()
            if kind in SIMPLE and kind not in self._moments_of:
                self._moments_of[kind] = self._simple(kind, variants, dice)
            at = next(self._moments_of[kind], None) if kind in SIMPLE else None
            if kind in FAULTS:
                self._try_fault(dice.randrange(variants), kind, dice)
            elif at is not None:
                self._try(at[0], None, at[1], kind, dice)
            else:  # random, or one of which every moment was tried
                variant = dice.randrange(variants)
                self._try(variant, None, dice.randrange(self._moments(variant)), RANDOM, dice)
        return self.counts

    def _deck(self, dice: Random) -> list[str]:
        """Return kinds of schedules, each as often as its share, in random order: none is left out for long."""
        shares = {**SIMPLE, RANDOM: RANDOM_SHARE, **dict.fromkeys(self.workload.faults, FAULT_SHARE)}
        cards = [kind for kind, share in shares.items() for _ in range(share)]
        dice.shuffle(cards)
        return cards

    def _simple(self, kind: str, variants: int, dice: Random) -> Iterator[tuple[int, int]]:
        """Return the moments of all variants, first those at which a kind of crash shows most."""
        every = [(variant, number) for variant in range(variants) for number in range(self._moments(variant))]
        names = BEHIND.get(kind, ())
        first = [each for each in every if self._run(each[0], None).moments[each[1]].step.name in names]
        if "notes" in names:
            first += [(each, at) for each in range(variants) for at in notes_follow(self._run(each, None).moments)]
        yield from ((each, self._moments(each) - 1) for each in range(variants))
        yield from dice.sample(first, len(first))
        yield from dice.sample(every, len(every))

    def _try_fault(self, variant: int, kind: str, dice: Random) -> None:
        """Let a fault hit a run, and crash that behind it: what was done before was tried without it."""
        steps = [step.number for step in self._run(variant, None).steps if step.name in FAULTS[kind].steps]
        fault = Fault(kind, dice.choice(steps), dice.random() < 0.3) if steps else None
        run = self._run(variant, fault)
        if fault is None or not run.has_failed or not run.moments:  # it failed before it had changed anything
            self.counts.schedules += 1
            return
        self.counts.kinds[kind] += 1
        after = [n for n, moment in enumerate(run.moments) if not 0 <= moment.step.number < fault.number]
        number = dice.choice(after or [len(run.moments) - 1])
        self._try(variant, fault, number, dice.choice((*KINDS, KILL, KILL, *CHOSEN)), dice)

    def _moments(self, variant: int) -> int:
        return len(self._run(variant, None).moments)

    def _loss(self, disk: SimDisk, kind: str, dice: Random) -> Crash:
        if kind == KILL:
            return KILL
        chosen = CHOSEN.get(kind)
        return loss_of(kind, disk) if chosen is None else chosen(disk, dice)

    def _try(self, variant: int, fault: Fault | None, number: int, kind: str, dice: Random) -> None:
        run = self._run(variant, fault)
        moment = run.moments[number]
        at = SimDisk(moment.nodes)
        crash = self._loss(at, kind, dice)
        schedule = Schedule(self.workload.name, variant, fault, ((number, crash),))
        self.counts.schedules += 1
        self.counts.kinds[kind] += 1
        crashed = self._crashed(at, crash)
        key = crashed.state_key()
        notes = tuple(noted(run.moments, run.notes, number))
        if (key, notes) in self._judged:
            return
        self._judged.add((key, notes))
        known = self._recovered.get(key)
        if known is not None:
            self._report(schedule, self._judge(notes, *known))
            return
        recovered = self._recover(crashed)
        self.counts.states += 1
        self._recovered[key] = recovered.seen, recovered.error, recovered.notes
        self._report(schedule, self._judge(notes, *self._recovered[key]))
        self._try_again(schedule, notes, recovered, dice)

    def _try_again(self, schedule: Schedule, notes: Notes, first: _Recovered, dice: Random) -> None:
        """Crash during the recovery, and behind it."""
        if not first.moments:
            return
        last = len(first.moments) - 1
        tries = [(last, "none"), (dice.choice(notes_follow(first.moments) or [last]), "none")]
        for _ in range(5 if schedule.crashes[-1][1] == KILL else 2):
            tries.append((dice.randrange(last + 1), dice.choice(("none", KILL, "names", "data", *CHOSEN))))
        for number, kind in tries:
            moment = first.moments[number]
            at = SimDisk(moment.nodes)
            crash = self._loss(at, kind, dice)
            crashed = self._crashed(at, crash)
            key = crashed.state_key()
            self.counts.schedules += 1
            self.counts.kinds[f"during recovery: {kind}"] += 1
            known = self._recovered.get(key)
            if known is None:
                again = self._recover(crashed)
                self.counts.states += 1
                known = self._recovered[key] = again.seen, again.error, again.notes
            done = noted(first.moments, first.notes, number)
            deeper = replace(schedule, crashes=(*schedule.crashes, (number, crash)))
            self._report(deeper, self._judge([*notes, *done], *known))
        if dice.random() < 0.5:
            self._report(schedule, self._second_recovery(first))

    def _second_recovery(self, first: _Recovered) -> AssertionError | None:
        if first.error is not None:
            return None
        second = self._recover(first.end.kill())
        before, after = first.end.files(), second.end.files()
        changed = {
            name
            for name in before.keys() | after.keys()
            if before.get(name, 0) != after.get(name, 0) and not (name not in after and self.workload.may_go(name))
        }
        if second.error is None and not changed:
            return None
        return AssertionError(f"a second recovery changed {changed}: {second.error}")

    # failures

    def _report(self, schedule: Schedule, cause: BaseException | None) -> None:
        if cause is None:
            return
        if self.shrinks:
            schedule, cause = self._shrunk(schedule, cause)
        raise ViolationError(schedule, cause, self._described(schedule, cause)) from cause

    def replay(self, schedule: Schedule) -> BaseException | None:
        """Run a schedule; return what did not hold."""
        run = self._run(schedule.variant, schedule.fault)
        notes: list[Any] = []
        moments, made = run.moments, run.notes
        for number, crash in schedule.crashes:
            moment = moments[number]
            notes += noted(moments, made, number)
            recovered = self._recover(self._crashed(SimDisk(moment.nodes), crash))
            moments, made = recovered.moments, recovered.notes
            seen, error = recovered.seen, recovered.error
        return self._judge(notes, seen, error, made) or self._second_recovery(recovered)

    def _shrunk(self, schedule: Schedule, cause: BaseException) -> tuple[Schedule, BaseException]:
        """Return a schedule with an early moment that fails in a simple way, or with the least loss."""
        for candidate in self._candidates(schedule):
            found = self.replay(candidate)
            if found is not None and isinstance(found, AssertionError) == isinstance(cause, AssertionError):
                schedule, cause = candidate, found
                break
        is_smaller = True
        while is_smaller:
            is_smaller = False
            *before, (number, crash) = schedule.crashes
            if isinstance(crash, str):
                break
            for loss in smaller(self._disk_at(schedule), crash):
                candidate = replace(schedule, crashes=(*before, (number, loss)))
                found = self.replay(candidate)
                if found is not None:
                    schedule, cause, is_smaller = candidate, found, True
                    break
        return schedule, cause

    def _candidates(self, schedule: Schedule) -> Iterator[Schedule]:
        if len(schedule.crashes) > 1:
            return
        moments = self._run(schedule.variant, schedule.fault).moments
        last = schedule.crashes[0][0]
        for number in range(0, last + 1, last // 50 + 1):  # not all: each is a recovery
            for kind in KINDS:
                yield replace(schedule, crashes=((number, loss_of(kind, SimDisk(moments[number].nodes))),))

    def _disk_at(self, schedule: Schedule) -> SimDisk:
        """Return the disk before the last crash."""
        moments = self._run(schedule.variant, schedule.fault).moments
        for number, crash in schedule.crashes[:-1]:
            moments = self._recover(self._crashed(SimDisk(moments[number].nodes), crash)).moments
        return SimDisk(moments[schedule.crashes[-1][0]].nodes)

    def _described(self, schedule: Schedule, cause: BaseException) -> str:
        lines = [f"{schedule.workload}, seed {self.seed}, variant {schedule.variant}, {schedule.fault}"]
        if self._ignored or self._reordered:
            lines.append(f"without {self._ignored}{self._reordered}")
        run = self._run(schedule.variant, schedule.fault)
        moments, notes = run.moments, run.notes
        for number, crash in schedule.crashes:
            moment = moments[number]
            disk = SimDisk(moment.nodes)
            lines += [str(each.step) for each in moments[max(0, number - 30) : number + 1]]
            lines += [f"noted: {note}"[:100] for note in noted(moments, notes, number)[-3:]]
            lines += (
                [f"killed behind step {number}"]
                if isinstance(crash, str)
                else [
                    f"crash behind step {number}",
                    *described(disk, crash),
                ]
            )
            recovered = self._recover(self._crashed(disk, crash))
            moments, notes = recovered.moments, recovered.notes
        lines.append(f"{type(cause).__name__}: {cause}")
        return "\n".join(lines)
