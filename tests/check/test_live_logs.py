"""``verify`` of logs that a broker appends to, rolls and cleans meanwhile: nothing false, and all that is real."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.write.recover import recover
from kraftlog.write.recovery_action import RecoverOptions

OFFSETS, TIMES, ABORTED = struct.Struct(">ii"), struct.Struct(">qi"), struct.Struct(">hqqqq")
START_MS = 1_700_000_000_000


def write_log(folder: Path, segments: int = 4, batches: int = 30, seed: int = 7) -> None:
    """Write segments of three producers, plain batches among them, and all files that Kafka has beside them."""
    folder.mkdir(parents=True)
    rnd, offset, sequences, begun = random.Random(seed), 0, [0, 0, 0], [False] * 3
    for _ in range(segments):
        data, base_offset = bytearray(), offset
        for _ in range(batches):
            who, stamp = rnd.randrange(4), START_MS + 10 * offset + rnd.randrange(30)
            producer = {"producer_id": 70 + who, "producer_epoch": 0}
            if who < 3 and begun[who] and rnd.random() < 0.5:
                kind = rnd.choice(["COMMIT", "ABORT", "ABORT"])
                data += kraftlog.encode_marker(kind, **producer, base_offset=offset, timestamp_ms=stamp).to_pybytes()
                begun[who], offset = False, offset + 1
                continue
            keys = [b"k%d" % rnd.randrange(5) for _ in range(rnd.randint(1, 4))]
            rows = pa.table({"key": keys, "value": keys})
            stated = producer | {"base_sequence": sequences[who], "is_transactional": True} if who < 3 else {}
            data += kraftlog.encode(rows, base_offset=offset, timestamp_ms=stamp, **stated).to_pybytes()
            offset += len(rows)
            if who < 3:
                begun[who], sequences[who] = True, sequences[who] + len(rows)
        (folder / f"{base_offset:020d}.log").write_bytes(data)
    for _ in recover([folder], RecoverOptions(write=True, rebuild=True, interval_bytes=150)):
        pass


def write_single(folder: Path) -> Path:
    """Write one segment; return its ``.index``."""
    write_log(folder, segments=1)
    return folder / f"{0:020d}.index"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a partition of several segments with entries in all of their index files."""
    folder = tmp_path_factory.mktemp("whole") / "t-0"
    write_log(folder)
    for kind in ("index", "timeindex", "txnindex"):
        assert min(path.stat().st_size for path in folder.glob(f"*.{kind}")) > ABORTED.size, kind
    assert len(list(folder.glob("*.txnindex"))) == len(list(folder.glob("*.log")))
    assert list(kraftlog.open(folder).verify()) == []
    return folder


def bases(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def earlier(whole: Path, folder: Path, base: int, size: int) -> None:
    """Make the folder as it was when its last segment had some bytes: with no entry behind the batches in them."""
    folder.mkdir(parents=True)
    path = folder / f"{base:020d}"
    for source in sorted(whole.iterdir()):
        offset = int(source.stem) if source.stem.isdigit() else 0
        if offset < base or (offset == base and source.suffix == ".snapshot"):
            shutil.copy(source, folder)
    data = (whole / f"{base:020d}.log").read_bytes()[:size]
    (folder / f"{base:020d}.log").write_bytes(data)
    headers = list(HeaderScan(data).headers())
    end = int(headers[-1]["base_offset"][-1] + headers[-1]["last_offset_delta"][-1]) if headers else base - 1
    last = int(headers[-1]["position"][-1]) if headers else -1
    for kind, entry, is_before in (
        ("index", OFFSETS, lambda offset, position: position <= last),
        ("timeindex", TIMES, lambda stamp, offset: base + offset <= end),
        ("txnindex", ABORTED, lambda version, producer, first, marker, lso: marker <= end),
    ):
        entries = [one for one in entry.iter_unpack((whole / f"{path.name}.{kind}").read_bytes()) if is_before(*one)]
        if entries or kind != "txnindex":
            zeros = bytes(0 if kind == "txnindex" else 5 * entry.size)  # as a broker preallocates them
            (folder / f"{path.name}.{kind}").write_bytes(b"".join(entry.pack(*one) for one in entries) + zeros)


def grow(whole: Path, folder: Path, suffixes: tuple[str, ...]) -> None:
    """Bring files of a kind up to date, as appends and rolls do."""
    for source in sorted(whole.iterdir()):
        if source.suffix in suffixes:
            shutil.copy(source, folder)


class ChangingDisk(Disk):
    """Calls a function when the first file of a kind has been read."""

    def __init__(self, suffix: str, change: Callable[[], object]) -> None:
        self._suffix = suffix
        self._changes = [change]

    def read_bytes(self, path: LogPath) -> bytes:
        data = super().read_bytes(path)
        if path.suffix == self._suffix and self._changes:
            self._changes.pop()()
        return data


BESIDE = (".index", ".timeindex", ".txnindex", ".snapshot")


@pytest.mark.parametrize("order", ["log first", "index first", "index first, log while it is read"])
def test_a_log_that_grows_between_listing_and_reading(whole: Path, tmp_path: Path, order: str):
    """Wherever the log was when it was listed, within a batch too, and whatever has come since: rolls as well."""
    rnd = random.Random(3)
    for number, base in enumerate(bases(whole)):
        size = (whole / f"{base:020d}.log").stat().st_size
        for cut in [0, size, *rnd.sample(range(1, size), 6)]:
            folder = tmp_path / f"{number}-{cut}" / "t-0"
            earlier(whole, folder, base, cut)
            log = kraftlog.open(folder)
            assert list(log.verify()) == [], (base, cut)
            for suffixes in [(".log",), BESIDE] if order == "log first" else [BESIDE]:
                grow(whole, folder, suffixes)
            if order == "index first":
                grow(whole, folder, (".log",))
            if order.endswith("read"):
                with use_disk(ChangingDisk(".index", partial(grow, whole, folder, (".log",)))):
                    found = list(log.verify())
            else:
                found = list(log.verify())
            assert found == [], (base, cut)
            assert list(kraftlog.open(folder).verify()) == []


def test_what_is_wrong_before_the_listed_end_is_found_in_a_log_that_grows(whole: Path, tmp_path: Path):
    base = bases(whole)[-1]
    size = (whole / f"{base:020d}.log").stat().st_size
    earlier(whole, tmp_path / "t-0", base, size * 3 // 4)
    log = kraftlog.open(tmp_path / "t-0")
    grow(whole, tmp_path / "t-0", (".log", *BESIDE))
    index = tmp_path / f"t-0/{base:020d}.index"
    entries = list(OFFSETS.iter_unpack(index.read_bytes()))
    entries[1] = entries[1][0], entries[1][1] + 1
    index.write_bytes(b"".join(OFFSETS.pack(*one) for one in entries))
    txnindex = tmp_path / f"t-0/{base:020d}.txnindex"
    version, producer, first, marker, lso = ABORTED.unpack(txnindex.read_bytes()[: ABORTED.size])
    rest = txnindex.read_bytes()[ABORTED.size :]
    txnindex.write_bytes(ABORTED.pack(version, producer, first + 1, marker, lso) + rest)
    assert [fault.error for fault in log.verify()] == ["index_mismatch", "txnindex_mismatch", "txnindex_mismatch"]


def test_an_entry_that_is_half_written_is_looked_at_again(tmp_path: Path):
    """A broker writes the offset of an entry, then its position."""
    index = write_single(tmp_path / "t-0")
    data = index.read_bytes()
    index.write_bytes(data[:-4] + bytes(84))
    assert [fault.error for fault in kraftlog.open(tmp_path).verify()][:1] == ["bad_index"]
    with use_disk(ChangingDisk(".index", lambda: index.write_bytes(data + bytes(80)))):
        assert list(kraftlog.open(tmp_path).verify()) == []


def test_segments_that_are_removed_or_replaced_have_no_mismatch(whole: Path, tmp_path: Path):
    """Retention removes a segment, the cleaner puts a shorter one in its place: that it cannot be read is all."""
    for number, change in enumerate(("removed", "replaced", "cut")):
        folder = tmp_path / str(number) / "t-0"
        shutil.copytree(whole, folder)
        base = bases(whole)[-1 if change == "cut" else 1]
        log = kraftlog.open(folder)
        path = folder / f"{base:020d}.log"
        if change == "removed":
            path.unlink()
        else:
            data = path.read_bytes()
            (headers,) = HeaderScan(data).headers()
            second = int(headers["position"][5])
            path.write_bytes(data[second:] if change == "replaced" else data[:second])
        found = {fault.error for fault in log.verify()}
        assert "unreadable_file" in found
        assert found.isdisjoint({"index_mismatch", "txnindex_mismatch"}), (change, found)


Entries = list[tuple[int, ...]]


def _set(entries: Entries, at: int, field: int, value: int) -> Entries:
    entry = list(entries[at])
    entry[field] += value
    return [*entries[:at], tuple(entry), *entries[at + 1 :]]


MUTANTS: dict[str, tuple[str, Callable[[Entries], Entries]]] = {
    "position of no batch": ("index", lambda entries: _set(entries, 1, 1, 1)),
    "position of another batch": ("index", lambda entries: [(entries[0][0], entries[1][1]), *entries[1:]]),
    "offset before the batch": ("index", lambda entries: [*entries[:2], (entries[2][0] - 9, entries[2][1])]),
    "position behind the end": ("index", lambda entries: _set(entries, len(entries) - 1, 1, 100_000)),
    "offset behind the end": ("index", lambda entries: _set(entries, len(entries) - 1, 0, 100_000)),
    "entries that go back": ("index", lambda entries: [entries[1], entries[0], *entries[2:]]),
    "timestamp too small": ("timeindex", lambda entries: [*_set(entries[:3], 2, 0, -40)]),
    "time of an offset behind the end": ("timeindex", lambda entries: _set(entries, len(entries) - 1, 1, 100_000)),
    "times that go back": ("timeindex", lambda entries: [entries[1], entries[0], *entries[2:]]),
    "no aborted transaction": ("txnindex", lambda entries: []),
    "one aborted transaction less": ("txnindex", lambda entries: entries[1:]),
    "one aborted transaction more": (
        "txnindex",
        lambda entries: [*entries, (0, 7, entries[-1][2], entries[-1][3] + 1, entries[-1][4])],
    ),
    "aborted transaction of another producer": ("txnindex", lambda entries: _set(entries, 0, 1, 40)),
    "aborted transaction that begins later": ("txnindex", lambda entries: _set(entries, 0, 2, 1)),
    "aborted transaction that ends later": ("txnindex", lambda entries: _set(entries, len(entries) - 1, 3, 1)),
    "another last stable offset": ("txnindex", lambda entries: _set(entries, 0, 4, -1)),
    "unknown version": ("txnindex", lambda entries: _set(entries, 0, 0, 1)),
}


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("is_last", [True, False])
def test_wrong_contents_of_index_files_are_found(whole: Path, tmp_path: Path, name: str, is_last: bool):
    folder = tmp_path / "t-0"
    shutil.copytree(whole, folder)
    kind, mutate = MUTANTS[name]
    path = folder / f"{bases(whole)[-1 if is_last else 1]:020d}.{kind}"
    entry = {"index": OFFSETS, "timeindex": TIMES, "txnindex": ABORTED}[kind]
    entries = list(entry.iter_unpack(path.read_bytes()))
    assert len(entries) > 2
    path.write_bytes(b"".join(entry.pack(*one) for one in mutate(entries)))
    found = list(kraftlog.open(folder).verify())
    assert {fault.error for fault in found} & {"index_mismatch", "txnindex_mismatch", "bad_index"}, found
    assert all(path.name in fault.message or kind == "txnindex" for fault in found)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(8))
def test_a_txnindex_behind_what_was_cleaned(tmp_path: Path, seed: int):
    """Its entries are of the log as it was; that one is missing, or names no ABORT, is found all the same."""
    rnd, folder = random.Random(seed), tmp_path / "log/t-0"
    with LogStore(tmp_path / "log") as store:
        store.create_topic("t", configs={"cleanup.policy": "compact", "internal.segment.bytes": 1500})
        producers = [store.producer(name) for name in "abc"]
        begun: set[int] = set()
        for _ in range(80):
            who = rnd.randrange(3)
            if who not in begun:
                producers[who].begin_transaction()
                begun.add(who)
            producers[who].send("t", key=b"k%d" % rnd.randrange(4), value=b"v")
            producers[who].flush()
            if rnd.random() < 0.3:
                begun.remove(who)
                producers[who].abort_transaction() if rnd.random() < 0.6 else producers[who].commit_transaction()
        for who in range(3):  # so that the last segment, which is not cleaned, has data of a transaction that it ends
            if who not in begun:
                producers[who].begin_transaction()
            producers[who].send("t", key=b"k", value=b"v")
            producers[who].flush()
            producers[who].abort_transaction()
        (freed,) = store.clean(["t"])
    assert freed.size_after < freed.size_before
    assert list(kraftlog.open(folder).verify()) == []
    path = folder / f"{bases(folder)[-1]:020d}.txnindex"
    data = path.read_bytes()
    version, producer, first, marker, lso = ABORTED.unpack(data[: ABORTED.size])
    for mutant in (b"", ABORTED.pack(version, producer + 50, first, marker, lso) + data[ABORTED.size :]):
        path.write_bytes(mutant)
        assert {fault.error for fault in kraftlog.open(folder).verify()} == {"txnindex_mismatch"}
