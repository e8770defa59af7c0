"""How far a stream is behind its log, from the progress that Spark reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kraftlog.spark.stream_offsets import Offsets, from_json


def offsets_behind_latest(source: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics of Spark's Kafka source for a source of a query's progress.

    Spark takes no metrics from a Python data source, but reports its latest offsets.

    Parameters
    ----------
    source : SourceProgress or dict
        One of ``query.lastProgress["sources"]``, or of the JSON of a progress.

    Returns
    -------
    dict of str to str
        ``minOffsetsBehindLatest``, ``maxOffsetsBehindLatest`` and ``avgOffsetsBehindLatest`` over the partitions, as
        texts, as Spark's Kafka source reports them; empty when the progress has no latest offsets, as in Spark 4.1.

    Examples
    --------
    >>> from kraftlog.spark import offsets_behind_latest
    >>> source = {"endOffset": {"orders": {"0": 8, "1": 1}}, "latestOffset": {"orders": {"0": 101, "1": 11}}}
    >>> offsets_behind_latest(source)
    {'minOffsetsBehindLatest': '10', 'maxOffsetsBehindLatest': '93', 'avgOffsetsBehindLatest': '51.5'}
    """
    latest, end = _offsets(source, "latestOffset"), _offsets(source, "endOffset")
    if not latest or end is None:
        return {}
    behind = [max(0, offset - end[partition]) for partition, offset in latest.items() if partition in end]
    if not behind:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
    }


def _offsets(source: Mapping[str, Any], name: str) -> Offsets | None:
    """Return offsets by partition; PySpark has them as JSON, a listener of Spark's own as text."""
    value = source.get(name)
    topics = json.loads(value) if isinstance(value, str) and value not in ("", "None") else value
    return from_json(topics) if isinstance(topics, dict) else None
