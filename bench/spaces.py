"""What takes the space of a log, and how many records each key has, from its file."""

from __future__ import annotations

import kraftlog
from compare.processes import Peers
from material import Material
from rounds import Contender

SPACE, KEYS, RECORDS = "kraftlog, space", "kraftlog, key_stats", "kraftlog, records"


def space(m: Material, peers: Peers) -> list[Contender]:
    """Add up bytes by what they are, count keys that are all different, and decode the same columns."""
    log = kraftlog.open(m.path)

    def added() -> int:
        (row,) = log.space([]).to_pylist()
        assert row["size_in_bytes"] == m.log.nbytes
        return int(row["records"])

    def counted() -> int:
        (row,) = log.key_stats([]).to_pylist()
        assert row["distinct_keys"] > 0.99 * m.records
        return int(row["records"])

    def decoded() -> int:
        return sum(batch.num_rows for batch in log.records(["key", "value", "headers"]))

    return [
        Contender(name, run, m.records, m.size) for name, run in ((SPACE, added), (KEYS, counted), (RECORDS, decoded))
    ]
