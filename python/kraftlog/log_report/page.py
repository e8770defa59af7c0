"""Pages of HTML, by the templates next to this module; that of a log has its facts and findings."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import kraftlog
from kraftlog.log_report import drawings, texts
from kraftlog.log_report.facts import Facts
from kraftlog.log_report.finding import Finding, counted
from kraftlog.log_report.findings import absent, short_path, verdict, worst
from kraftlog.log_report.partition_facts import PartitionFacts, SegmentFacts
from kraftlog.log_report.transaction_sums import Transaction
from kraftlog.stream import optional_package
from kraftlog.tables.stats import Totals, codec_names

MAPS = 100  # damaged segments with a large map
PARTITION_MAPS = 1000  # with up to this many partitions each has a map in the table
FEW = 3  # topics up to this size share one table in a larger page
GROUPS = 200
OPEN_ROWS = 60  # with up to this many partitions topics are unfolded
LANES = 30
_NEEDED = ("the report", "'kraftlog[report]'")


@dataclass(frozen=True)
class Topic:
    """A topic and its partitions."""

    name: str
    partitions: list[PartitionFacts]
    is_open: bool

    @property
    def size(self) -> int:
        """Bytes of the log files."""
        return sum(one.size for one in self.partitions)

    @property
    def records(self) -> int | None:
        """Number of records; None if old formats do not tell."""
        counts = [one.totals.records for one in self.partitions]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def newest(self) -> int:
        """The largest timestamp, in milliseconds."""
        return max(one.totals.max_timestamp for one in self.partitions)

    @property
    def errors(self) -> int:
        """Number of faults."""
        return sum(one.faults.count for one in self.partitions)

    @property
    def warnings(self) -> str:
        """Notes on its partitions."""
        torn = sum(bool(one.torn_bytes) for one in self.partitions)
        waiting = sum(bool(one.stable_lag) for one in self.partitions)
        return ", ".join([*([f"{torn} torn"] if torn else []), *([f"{waiting} open"] if waiting else [])])


@dataclass(frozen=True)
class Maps:
    """Damaged segments: those that are drawn, and the number of others."""

    shown: list[SegmentFacts]
    more: int


def check_package() -> None:
    """Check that the template package is installed, before anything is read.

    Raises
    ------
    ImportError
        When it is not installed.
    """
    optional_package("jinja2", *_NEEDED)


def pieces(facts: Facts, found: Sequence[Finding]) -> Iterator[str]:
    """Return the page, piece by piece."""
    functions = {
        "age": lambda stamp: texts.duration(facts.now - stamp) if 0 <= stamp <= facts.now else "-",
        "end_of": _Ends(facts).of,
    }
    yield from rendered("page.html", _names(facts, found), functions)


def rendered(
    template: str, names: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] | None = None
) -> Iterator[str]:
    """Return the page of a template, piece by piece.

    Parameters
    ----------
    template : str
        Name of a file in ``templates``; it extends ``frame.html``.
    names : mapping
        Variables of the template, with ``title``.
    functions : mapping of str to callable, optional
        Further functions for it and for the templates that it includes.
    """
    environment = _environment()
    environment.globals |= functions or {}
    style = environment.loader.get_source(environment, "page.css")[0]
    of_frame = {
        "version": kraftlog.__version__,
        "style": _markup(style),
        "style_hash": f"sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}",
    }
    yield from environment.get_template(template).generate(of_frame | dict(names))


def _environment() -> Any:
    jinja2 = optional_package("jinja2", *_NEEDED)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kraftlog.log_report"),
        autoescape=True,
        finalize=texts.shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "number": texts.number,
        "bytes": texts.size,
        "time": texts.time,
        "duration": texts.duration,
        "minute": texts.minute,
    }
    environment.globals |= {
        "counted": counted,
        "codecs": lambda totals: codec_names(totals.codecs).replace("+", " ") or "-",
        "mean_batch": _mean_batch,
        "strip": drawings.partition_map,
        "segment_map": drawings.segment_map,
    }
    return environment


def _markup(text: str) -> Any:
    return optional_package("markupsafe", *_NEEDED).Markup(text)


def _mean_batch(totals: Totals) -> float | None:
    return totals.size / totals.batches if totals.batches else None


class _Ends:
    """The fate of open transactions, from the table ``hanging_transactions``."""

    def __init__(self, facts: Facts) -> None:
        self._rows = {(row["topic"], row["partition"], row["producer_id"]): row for row in facts.hanging}
        self._unread = facts.unread_partitions

    def row(self, one: Transaction) -> dict[str, Any] | None:
        """Return the row of a transaction; None if its coordinator knows it."""
        return self._rows.get(one.key)

    def of(self, one: Transaction) -> str:
        """Return a sentence."""
        row = self.row(one)
        if row is None and (one.topic, one.partition) in self._unread:
            return "not known: a part of the partition cannot be read"
        if row is None:
            return "its coordinator knows it"
        return f"never: {row['reason']}" if row["command"] is not None else str(row["reason"])

    def state(self, one: Transaction) -> str:
        """Return its state, or hanging."""
        row = self.row(one) if one.state == "open" else None
        return "hanging" if row is not None and row["command"] is not None else one.state


def _names(facts: Facts, found: Sequence[Finding]) -> dict[str, Any]:
    """Return the variables of the templates."""
    groups = sorted(facts.groups.groups.values(), key=lambda one: (-one.lag, one.name)) if facts.groups else []
    damaged = [one for partition in facts.partitions for one in partition.segments if one.damage is not None]
    topics, singles = _topics(facts.partitions)
    labels = _Labels(facts.partitions)
    is_small = len(facts.partitions) <= OPEN_ROWS
    events = list(facts.cluster.events)[::-1] if facts.cluster is not None else []
    ends = _Ends(facts)
    return {
        "title": f"Log report: {', '.join(map(short_path, facts.paths[:3]))}{' ...' if len(facts.paths) > 3 else ''}",
        "facts": facts,
        "findings": found,
        "worst": worst(found),
        "verdict": verdict(found),
        "absent": absent(facts),
        "tiles": _tiles(facts),
        "topics": topics,
        "short_label": labels.short,
        "long_label": labels.long,
        "singles": singles,
        "singles_open": is_small or any(one.faults.count for one in singles),
        "has_maps": len(facts.partitions) <= PARTITION_MAPS,
        "maps": Maps(damaged[:MAPS], len(damaged) - len(damaged[:MAPS])),
        "groups": groups[:GROUPS],
        "more_groups": len(groups) - len(groups[:GROUPS]),
        "events": events,
        "stuck": [one for one in facts.partitions if one.stable_lag],
        "columns": drawings.columns(facts.transactions.bins),
        "lanes": drawings.lanes([(one, ends.state(one)) for one in _notable(facts)]),
        "bars": drawings.bars(facts.batch_sizes.tolist(), [_at_least(at) for at in range(len(facts.batch_sizes))]),
    }


def _at_least(power: int) -> str:
    return f"{1 << power:,} bytes and more" if power < 10 else f"{1 << power - 10:,} KiB and more"


def _notable(facts: Facts) -> list[Transaction]:
    """Return transactions to draw: open ones first, then the last aborted, then the longest; each once."""
    sums = facts.transactions
    some = dict.fromkeys([*sums.open[:LANES], *sums.aborted, *sums.longest])
    return [one for one in some if one.start_timestamp >= 0][:LANES]


class _Labels:
    """Names of partitions, with their log directories if a partition occurs more than once."""

    def __init__(self, partitions: Sequence[PartitionFacts]) -> None:
        self._counts = Counter((one.topic, one.partition) for one in partitions)

    def short(self, one: PartitionFacts) -> str:
        """Return the number, with the directory if needed."""
        return f"{one.partition}{self._where(one)}"

    def long(self, one: PartitionFacts) -> str:
        """Return the name with the topic."""
        return f"{one.name}{self._where(one)}"

    def _where(self, one: PartitionFacts) -> str:
        is_alone = one.topic is None or self._counts[one.topic, one.partition] == 1
        return "" if is_alone else f" in {one.folder.parent.name}"


def _topics(partitions: Sequence[PartitionFacts]) -> tuple[list[Topic], list[PartitionFacts]]:
    """Return topics with several partitions, and the partitions of topics with one, or with few in a large log.

    Files outside of partition folders are among the latter.
    """
    by_name: dict[str, list[PartitionFacts]] = {}
    for one in partitions:
        by_name.setdefault(one.topic or "", []).append(one)
    is_small, few = len(partitions) <= OPEN_ROWS, 1 if len(partitions) <= PARTITION_MAPS else FEW
    topics, singles = [], []
    for name, some in sorted(by_name.items()):
        some.sort(key=lambda one: (one.partition or 0, str(one.folder)))
        if len(some) <= few or not name:
            singles += some
        else:
            topics.append(Topic(name, some, is_small or any(one.faults.count for one in some)))
    return topics, singles


def _tiles(facts: Facts) -> list[tuple[str, str]]:
    of_all = Totals()
    for one in facts.partitions:
        of_all.join(one.totals)
    newest = of_all.max_timestamp
    tiles = [
        ("topics", texts.number(len({one.topic for one in facts.partitions if one.topic is not None}))),
        ("partitions", texts.number(len(facts.partitions))),
        ("segments", texts.number(sum(len(one.segments) for one in facts.partitions))),
        ("in log files", texts.size(sum(one.size for one in facts.partitions))),
        ("records", "-" if of_all.records is None else texts.number(of_all.records)),
        ("batches", texts.number(of_all.batches)),
        ("errors", texts.number(facts.faults.count)),
    ]
    if 0 <= newest <= facts.now:
        tiles.append(("since the last record", texts.duration(facts.now - newest)))
    return tiles
