"""What ``kraftlog restore --bootstrap-server`` prints."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.broker.live_restore import LiveRestore


def live_lines(done: LiveRestore, *, dry_run: bool) -> Iterator[str]:
    """Return the lines of a restore into a live cluster, or of what it would be."""
    for topic in done.new_topics:
        configs = ", ".join(f"{name}={value}" for name, value in sorted(topic.configs.items())) or "no configs"
        yield (
            f"{topic.name}: new topic, {topic.partitions_count} partitions, replication factor"
            f" {topic.replication_factor}, {configs}"
        )
    for one in done.partitions:
        if dry_run:
            yield f"{one.name}: {one.source_bytes:,} bytes of {one.source_topic}-{one.partition}"
        else:
            yield f"{one.name}: {one.records:,} records, next offset {one.end_offset}"
    for group, offsets in done.groups.items():
        yield f"group {group}: {', '.join(f'{of} at {offset}' for of, offset in offsets.items())}"
    count, bytes_count = len(done.partitions), sum(one.source_bytes for one in done.partitions)
    if dry_run:
        yield f"nothing was changed; there would be {count} partitions, from {bytes_count:,} bytes"
    else:
        yield f"{count} partitions, {sum(one.records for one in done.partitions):,} records"
