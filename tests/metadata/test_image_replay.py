"""Whole sequences of records, illegal ones included, in chunks of any size: the same as one record after another."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from image_rows import Record, applied, batches, contents
from image_twin import ImageTwin
from random_records import UUIDS, about_brokers, about_others, about_topics, fields, logs, names

from kraftlog.metadata.diff.diff import SCHEMA, diff, diff_rows
from kraftlog.metadata.image import Image


def check(records: list[Record], sizes: list[int]) -> None:
    twin = ImageTwin()
    image = Image.empty()
    image.begin_notes()
    at = 0
    for size in [*sizes, len(records)]:
        chunk = records[at : at + size]
        before = image.copy()
        image.apply(batches(chunk))
        for one in chunk:
            twin.apply(*one)
        at += size
        assert contents(image) == twin.contents()
        assert diff_rows(image.take_changes()).select(SCHEMA.names).equals(diff(before, image))
    assert [(fault.error, fault.base_offset) for fault in image.faults] == twin.faults


@settings(max_examples=150, deadline=None)
@given(logs(about_topics), st.lists(st.integers(1, 20), max_size=4))
def test_topics_and_their_configs(records: list[Record], sizes: list[int]) -> None:
    check(records, sizes)


@settings(max_examples=60, deadline=None)
@given(logs(about_brokers), st.lists(st.integers(1, 20), max_size=4))
def test_brokers(records: list[Record], sizes: list[int]) -> None:
    check(records, sizes)


@settings(max_examples=60, deadline=None)
@given(logs(about_topics, about_brokers, about_others), st.lists(st.integers(1, 20), max_size=4))
def test_all_types(records: list[Record], sizes: list[int]) -> None:
    check(records, sizes)


@settings(max_examples=40, deadline=None)
@given(logs(about_topics, about_others), st.integers(0, 60))
def test_a_copy_and_its_origin_go_their_own_ways(records: list[Record], at: int) -> None:
    first = applied(records[:at], 7)
    before = contents(first)
    second = applied(records[at:], 5, first.copy())
    assert contents(first) == before
    assert contents(applied(records[at:], 3, first)) == contents(second) == contents(applied(records))


ACLS = st.one_of(
    fields("AccessControlEntryRecord", id=st.sampled_from(UUIDS[:2]), principal=names),
    fields("RemoveAccessControlEntryRecord", id=st.sampled_from(UUIDS[:2])),
)


@settings(max_examples=60, deadline=None)
@given(logs(ACLS), st.lists(st.integers(1, 20), max_size=4))
def test_acls(records: list[Record], sizes: list[int]) -> None:
    """One that was removed is gone: to remove it again is refused, in the same chunk and in a later one."""
    check(records, sizes)
