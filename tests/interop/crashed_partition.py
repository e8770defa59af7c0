"""What a crash leaves of a partition's folder: torn tails, cut files beside segments, a cleaner that was stopped."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

KINDS = ("log", "index", "timeindex", "txnindex")  # in the order in which Kafka renames them
BESIDE = ("index", "timeindex", "txnindex", "snapshot")
RECOVERY_POINTS, LOG_STARTS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
LOG_OVERHEAD, BEHIND_CRC = 12, 21  # bytes of a batch: offset and length, and those before what its checksum covers
BASE_OFFSET_END, LEADER_EPOCH_END = 8, 16


def write_checkpoints(directory: Path, recovery_point: int, start: int) -> None:
    """Write the checkpoints of a log directory with the partition ``t-0``."""
    (directory / RECOVERY_POINTS).write_text(f"0\n1\nt 0 {recovery_point}\n")
    (directory / LOG_STARTS).write_text(f"0\n1\nt 0 {start}\n")


def bases(folder: Path) -> list[int]:
    """Return the base offsets of the log files."""
    return sorted(int(path.name[:20]) for path in folder.glob("*.log"))


def batch_starts(data: bytes) -> set[int]:
    """Return where the batches of a log file begin."""
    starts, at = set(), 0
    while at < len(data):
        starts.add(at)
        at += LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big")
    return starts


class Crash:
    """Damages a folder as a power loss may.

    Parameters
    ----------
    folder : Path
    recovery_point : int
        What lies before it is on disk.
    chance : random.Random

    Attributes
    ----------
    done : list of str
        Kinds of damage.
    is_cut : bool
        Whether sound batches lie behind damage: a broker cuts them off, a reader tells the fault and reads on.
    is_told : bool
        Whether a reader has to tell it: zeros may be preallocated, and the first fields of a batch have no checksum.
    is_torn : bool
        Whether a log file is damaged at all.
    is_hidden : bool
        Whether a base offset or a leader epoch is changed, which no checksum covers: Kafka goes by it.
    """

    def __init__(self, folder: Path, recovery_point: int, chance: random.Random) -> None:
        self.folder = folder
        self._random = chance
        self._recovery_point = recovery_point
        self._bases = bases(folder)
        self._unflushed = [base for base in self._bases if base >= recovery_point] or self._bases[-1:]
        if self._bases[-1] < recovery_point:
            self._unflushed = self._bases[-1:]
        self.done: list[str] = []
        self.is_cut = self.is_torn = self.is_hidden = False
        self.is_told = True
        self._torn: tuple[str, int] | None = None  # name and size of the log file before

    def damage(self, *, is_power_lost: bool) -> None:
        """Damage what is not known to be on disk, and remove an ``.index``, without which a broker recovers a segment.

        What is before the recovery point and damaged otherwise, a broker believes: its answers are wrong then.
        """
        chance = self._random
        for _ in range(chance.randint(0, 2)):
            self._lose(chance.choice(self._bases), "index")
        if not is_power_lost:
            return
        for _ in range(chance.randint(0, 3)):
            base, kind = chance.choice(self._unflushed), chance.choice(BESIDE)
            if kind != "snapshot" or base > self._recovery_point:  # Kafka syncs it before it moves the point
                self._spoil(base, kind)
        if not self.done and chance.random() < 0.2:
            (self.folder / EPOCHS).unlink(missing_ok=True)
            self.done.append("no epochs")
        if chance.random() < 0.5:
            self._tear()

    def left_a_hole(self, loaded: Path) -> bool:
        """Whether a log that Kafka has loaded lacks batches before its last segment that it had before the crash.

        Kafka recovers a segment without ``.index`` before all others, and keeps what lies behind a cut of that one. Nor
        does it notice that a closed segment was cut between two batches.
        """
        if self._torn is None:
            return False
        name, size = self._torn
        path = loaded / name
        return name != f"{bases(loaded)[-1]:020d}.log" and path.exists() and path.stat().st_size < size

    def _lose(self, base: int, kind: str) -> None:
        path = self.folder / f"{base:020d}.{kind}"
        if path.exists():
            path.unlink()
            self.done.append(f"no {kind}")

    def _spoil(self, base: int, kind: str) -> None:
        chance, path = self._random, self.folder / f"{base:020d}.{kind}"
        if not path.exists():
            return
        data = path.read_bytes()
        match chance.choice(["gone", "short", "flipped", "longer", "empty"]):
            case "gone":
                path.unlink()
                self.done.append(f"no {kind}")
            case "short" if data:
                path.write_bytes(data[: chance.randrange(len(data))])
                self.done.append(f"short {kind}")
            case "flipped" if data:
                at = chance.randrange(len(data))
                path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
                self.done.append(f"flipped {kind}")
            case "longer":
                path.write_bytes(data + chance.randbytes(chance.choice([3, 8, 12, 34])))
                self.done.append(f"longer {kind}")
            case "empty":
                path.write_bytes(b"")
                self.done.append(f"empty {kind}")

    def _tear(self) -> None:
        """Damage a log file that was not known to be on disk; Kafka may not have synced any batch of it."""
        chance = self._random
        base = self._unflushed[-1] if chance.random() < 0.7 else chance.choice(self._unflushed)
        path = self.folder / f"{base:020d}.log"
        data = path.read_bytes()
        last = base == self._bases[-1]
        self._torn = path.name, len(data)
        match chance.choice(["short", "zeros", "garbage", "flipped"]):
            case "short" if data:
                size = chance.randrange(len(data))
                path.write_bytes(data[:size])
                if size in batch_starts(data):  # nobody can tell
                    self.done.append("batches missing")
                    return
                self.is_cut = not last
                self.is_told = any(data[max(batch_starts(data[:size])) : size])
            case "zeros":
                path.write_bytes(data + bytes(chance.randint(1, 100)))
                self.is_cut, self.is_told = not last, False
            case "garbage":
                path.write_bytes(data + chance.randbytes(chance.randint(1, 100)))
                self.is_cut = not last
            case "flipped" if data:
                at = chance.randrange(len(data))
                path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
                self.is_cut = True
                within = at - max(start for start in batch_starts(data) if start <= at)
                self.is_told = within >= BEHIND_CRC
                self.is_hidden = within < BASE_OFFSET_END or LOG_OVERHEAD <= within < LEADER_EPOCH_END
            case _:
                return
        self.is_torn = True
        self.done.append("torn last segment" if last else "torn segment")


def stop_a_cleaner(before: Path, after: Path, target: Path, chance: random.Random) -> str:
    """Make a folder in which a cleaner was stopped while its output took the place of segments.

    Parameters
    ----------
    before, after : Path
        The folder before and after the cleaner was at work.
    target : Path
        Which is made.
    chance : random.Random

    Returns
    -------
    str
        Where it was stopped.
    """
    shutil.copytree(before, target)
    old, new = bases(before), bases(after)
    cleaned = [base for base in new if base < old[-1]]
    done = chance.randrange(len(cleaned)) if cleaned else 0
    for number, base in enumerate(cleaned[: done + 1]):
        following = new[new.index(base) + 1]
        replaced = [each for each in old if base <= each < following]
        stage = 5 if number < done else chance.randrange(6)
        files = [f"{base:020d}.{kind}" for kind in KINDS if (after / f"{base:020d}.{kind}").exists()]
        for at, name in enumerate(files):  # 0: some files are written, 1: all of them
            if stage > 0 or at < chance.randint(1, len(files)):
                shutil.copyfile(after / name, target / f"{name}.cleaned")
        renamed = len(files) if stage > 2 else chance.randint(1, len(files)) if stage == 2 else 0
        for name in files[:renamed]:  # 2: some are .swap, 3: all of them
            (target / f"{name}.cleaned").rename(target / f"{name}.swap")
        gone = len(replaced) if stage > 4 else chance.randint(1, len(replaced)) if stage == 4 else 0
        for each in replaced[:gone]:  # 4: some old ones are .deleted
            for kind in KINDS:
                path = target / f"{each:020d}.{kind}"
                if path.exists():
                    path.rename(path.with_name(path.name + ".deleted"))
        if stage == 5:
            named = len(files) if number < done else chance.randint(0, len(files))
            for name in files[:named]:
                (target / f"{name}.swap").rename(target / name)
            if named == len(files):
                for each in replaced[1:]:
                    (target / f"{each:020d}.snapshot").unlink(missing_ok=True)
    return f"stopped at {stage}" if cleaned else "nothing to clean"
