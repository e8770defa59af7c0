"""``Log.grep`` against a search in plain Python over all records."""

from __future__ import annotations

import gzip
import json
import random
import re
import struct
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN, scenarios
from kraftlog import schema
from kraftlog._native.checksum import crc32c
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.held_texts import HeldTexts
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault
from kraftlog.tables.json_path import JsonPath
from kraftlog.tables.search import Search
from kraftlog.tables.text_match import TextMatch, needed_text

Row = dict[str, Any]
COLUMNS = ["topic", "partition", "offset", "key", "value", "headers"]
LOGS = ("codecs", "legacy", "transactions", "compaction", "deleted_records")


def rows_of(name: str, **options: Any) -> list[Row]:
    return kraftlog.open(GOLDEN / name / "log").records(COLUMNS, **options).to_table().to_pylist()


def found(name: str, **options: Any) -> list[Row]:
    return kraftlog.open(GOLDEN / name / "log").grep(COLUMNS, **options).to_table().to_pylist()


def texts_of(rows: list[Row], seed: int) -> list[bytes]:
    """Return pieces of values and keys, some of them rare, and one that is nowhere."""
    chance = random.Random(seed)
    texts = [b"\xfe nowhere \xfe"]
    for row in chance.sample(rows, min(len(rows), 12)):
        for value in (row["key"], row["value"]):
            if value:
                start = chance.randrange(len(value))
                texts.append(value[start : start + chance.choice((1, 2, 7, 40, 100))])
    return texts


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("column", ["key", "value"])
def test_texts_in_columns(name: str, column: str):
    rows = rows_of(name)
    for text in texts_of(rows, 1):
        wanted = [row for row in rows if row[column] is not None and text in row[column]]
        assert found(name, **{column: text}) == wanted
        assert found(name, **{column: re.escape(text.decode("latin-1")).encode("latin-1")}, regex=True) == wanted
        folded = [row for row in rows if row[column] is not None and text.lower() in row[column].lower()]
        assert found(name, **{column: text.swapcase()}, ignore_case=True) == folded
        others = [row for row in rows if row not in wanted]
        if text == b"\xfe nowhere \xfe":
            assert found(name, **{column: text}, invert=True) == others == rows


@pytest.mark.parametrize("name", LOGS)
def test_kinds_are_all_found_and_of_each_one_text(name: str):
    rows = rows_of(name)
    texts = [text for text in texts_of(rows, 2) if text]
    keys = [row["key"] for row in rows if row["key"]][::9]
    if not keys:
        keys = [b"none"]
    wanted = [
        row for row in rows if row["key"] in keys and row["value"] is not None and any(t in row["value"] for t in texts)
    ]
    assert found(name, key_equals=keys, value=texts) == wanted
    assert found(name, key_equals=keys, value=texts, invert=True) == [row for row in rows if row not in wanted]


def test_headers():
    rows = rows_of("codecs")
    each = [header for row in rows for header in row["headers"] if header["value"]]
    for header in each[:: len(each) // 15]:
        text, name = header["value"][:9], header["key"]
        in_any = [row for row in rows if any(text in (one["value"] or b"") for one in row["headers"])]
        assert found("codecs", header=b"=" + text) == in_any
        of_name = [
            row for row in rows if any(one["key"] == name and text in (one["value"] or b"") for one in row["headers"])
        ]
        if name:
            assert found("codecs", header=f"{name}=".encode() + text) == of_name
    there = [row for row in rows if any(one["key"] == "größe" and one["value"] is not None for one in row["headers"])]
    assert found("codecs", header="größe=") == there
    assert there


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("workers", [1, 2])
def test_isolation_levels_and_workers(level: Any, workers: int):
    rows = rows_of("transactions", isolation_level=level)
    wanted = [row for row in rows if b"lamb" in (row["value"] or b"")]
    assert found("transactions", value="lamb", isolation_level=level, workers=workers) == wanted
    assert wanted


def test_bounds():
    rows = rows_of("codecs", start_offset=20, end_offset=60)
    wanted = [row for row in rows if b"key-2" in (row["key"] or b"")]
    assert found("codecs", key="key-2", start_offset=20, end_offset=60) == wanted
    assert wanted


def test_damage_is_reported_as_records_does():
    """Whatever is wrong with batches and records that do not hold the text."""
    codes = set()
    for folder in scenarios():
        log = kraftlog.open(folder / "log")
        records, grep = log.records(["offset"]), log.grep(["offset"], value=b"\xfe nowhere \xfe")
        records.to_table()
        assert grep.to_table().num_rows == 0
        assert grep.faults == records.faults, folder
        assert [note for note in records.notes if "torn" in note] == [note for note in grep.notes if "torn" in note]
        codes |= {fault.error for fault in grep.faults}
    assert "bad_crc" in codes


BROKEN_RECORDS = {  # by hex of the record: what is wrong, as tests/native/test_record_faults.c has it
    "0e 000000000000": "bad_record_length",
    "0c 000000 06 0100": "bad_key_length",
    "0e 000000 02 61 04 62": "bad_value_length",
    "0c 000000 01 01 02": "bad_headers_count",
    "10 000000 01 01 02 04 61": "bad_header_key_length",
    "12 000000 01 01 02 02 61 04": "bad_header_value_length",
    "0e 000000 01 01 00 ff": "bad_record_size",
    "04 0080": "truncated_field",
    "16 00 00 00 01 808080808000 00": "varint_too_long",
    "": "missing_records",
    "0c 000000 01 01 00 00": "trailing_bytes",
}


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize(("record", "code"), BROKEN_RECORDS.items(), ids=BROKEN_RECORDS.values())
def test_broken_records_of_batches_without_the_text(codec: str, record: str, code: str):
    """Records that were broken before their checksum was made, in a batch whose other record is sound."""
    payload = bytes.fromhex("10 000000 01 04 6869 00") + bytes.fromhex(record)
    log = b"".join(
        [
            kraftlog.encode(pa.table({"value": [b"hay"] * 3})).to_pybytes(),
            batch_of(payload if codec == "none" else gzip.compress(payload), 3, 2, is_gzip=codec == "gzip"),
            kraftlog.encode(pa.table({"value": [b"hay", b"a needle"]}), base_offset=5).to_pybytes(),
        ]
    )
    whole = passed(log, None)
    assert [fault.error for fault in whole[1]] == [code]
    assert sorted(set(whole[0])) == [0, 1, 2, 3, 5, 6]
    assert passed(log, b"needle") == ([5, 6], *whole[1:])
    assert passed(log, b"nowhere") == ([], *whole[1:])


def passed(log: bytes, text: bytes | None) -> tuple[list[int], list[Fault], Any, Any]:
    """Return offsets and faults of the batches that hold a text, or of all, and where the log ends."""
    faults: list[Fault] = []
    holds = None if text is None else HeldTexts(((text,),))
    plan = DecodePlan(pa.schema([("offset", pa.int64())]), ReadOptions(holds=holds))
    decoder = RecordDecoder(log, 0, NO_BOUND, plan)
    offsets = [at for batch in decoder.batches(faults) for at in batch["offset"].to_pylist()]
    return offsets, faults, decoder.torn_at, decoder.reached


def batch_of(payload: bytes, base_offset: int, records_count: int, *, is_gzip: bool) -> bytes:
    """Return a batch of magic 2 with a right checksum, whatever its records are."""
    body = struct.pack(">hiqqqhii", int(is_gzip), records_count - 1, 0, 0, -1, -1, -1, records_count) + payload
    return struct.pack(">qiibI", base_offset, len(body) + 9, 0, 2, crc32c(body)) + body


def test_payloads_that_cannot_be_decompressed_and_a_torn_tail():
    sound = kraftlog.encode(pa.table({"value": [b"hay"] * 3}), base_offset=1).to_pybytes()
    log = batch_of(b"no gzip at all", 0, 1, is_gzip=True) + sound + sound[:-1]
    whole = passed(log, None)
    assert [fault.error for fault in whole[1]] == ["decompression_failed"]
    assert whole[2] == len(log) - len(sound) + 1
    assert passed(log, b"nowhere") == ([], *whole[1:])


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_broken_messages_of_old_formats_without_the_text(is_wrapped: bool):
    """A key that is longer than its message, alone and inside of a compressed wrapper."""

    def message(offset: int, key_length: int, attributes: int, value: bytes) -> bytes:
        key = b"k" * min(key_length, 1) if key_length >= 0 else b""
        body = struct.pack(">bbqi", 1, attributes, 0, key_length) + key + struct.pack(">i", len(value)) + value
        return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body

    log = message(0, 1, 0, b"hay") + message(1, 1000, 0, b"hay") + message(2, 1, 0, b"hay")
    if is_wrapped:
        log = message(2, -1, 1, gzip.compress(log)) + message(3, 1, 0, b"hay")
    whole = passed(log, None)
    assert whole[0] == ([0, 2, 3] if is_wrapped else [0, 2])
    assert [(fault.error, fault.record_index) for fault in whole[1]] == [("bad_key_length", 1 if is_wrapped else 0)]
    assert passed(log, b"nowhere") == ([], *whole[1:])


@given(st.randoms(use_true_random=False), st.sampled_from(["none", "lz4", "gzip"]), st.booleans())
def test_rows_of_damaged_logs(chance: random.Random, compression: str, check_crc: bool):
    """Whatever bytes are flipped or cut off: the rows are those of the whole pass that hold the text."""
    parts = [
        kraftlog.encode(
            pa.table({"value": [b"%d " % at + chance.choice([b"needle", b"hay"])] * 3}),
            base_offset=at,
            compression=compression,
        ).to_pybytes()
        for at in range(0, 30, 3)
    ]
    log = bytearray(b"".join(parts))
    for _ in range(chance.randrange(4)):
        log[chance.randrange(len(log))] ^= 1 << chance.randrange(8)
    data = bytes(log[: chance.randrange(len(log) // 2, len(log) + 1)])
    arrow_schema = pa.schema([("offset", pa.int64()), ("value", pa.binary())])
    search = Search(value="needle")
    passes = []
    for holds in (None, search.holds):
        faults: list[Fault] = []
        plan = DecodePlan(arrow_schema, ReadOptions(holds=holds, check_crc=check_crc))
        decoder = RecordDecoder(data, 0, NO_BOUND, plan)
        batches = [batch.filter(search.mask(batch)) for batch in decoder.batches(faults)]
        rows = pa.Table.from_batches(batches, arrow_schema).to_pylist()
        passes.append((rows, faults, decoder.torn_at, decoder.reached))
    assert passes[0] == passes[1]


def test_damage_beside_what_is_found():
    log = kraftlog.open(GOLDEN / "damaged" / "bit_flip_payload" / "log")
    rows = log.records(COLUMNS)
    table = rows.to_table().to_pylist()
    text = table[-1]["value"][:12]
    grep = log.grep(COLUMNS, value=text)
    assert grep.to_table().to_pylist() == [row for row in table if text in row["value"]]
    assert [fault.error for fault in grep.faults] == [fault.error for fault in rows.faults] == ["bad_crc"]
    with pytest.raises(kraftlog.CorruptRecordError, match="stored crc"):
        log.grep(value="nowhere at all", strict=True).to_table()


def test_only_batches_that_hold_it_are_decoded():
    values = [[b"hay"] * 50, [b"hay", b"a needle"], [b"hay"] * 50]
    for compression in ("none", "lz4", "zstd", "gzip", "snappy"):
        log = b"".join(
            kraftlog.encode(pa.table({"value": rows}), base_offset=100 * at, compression=compression).to_pybytes()
            for at, rows in enumerate(values)
        )
        plan = DecodePlan(pa.schema([("offset", pa.int64())]), ReadOptions(holds=HeldTexts(((b"needle", b"pin"),))))
        decoder = RecordDecoder(log, 0, NO_BOUND, plan)
        assert pa.Table.from_batches(decoder.batches([]))["offset"].to_pylist() == [100, 101]
        assert decoder.reached == (len(log), 250)


@given(
    st.lists(st.binary(max_size=90), min_size=1, max_size=6),
    st.integers(0, 200),
    st.integers(1, 80),
    st.booleans(),
)
def test_bytes_are_found_wherever_they_stand(values: list[bytes], at: int, size: int, ignore_case: bool):
    whole = b"".join(values)
    text = whole[at : at + size] or b"\xff"
    log = kraftlog.encode(pa.table({"value": values}))
    table = kraftlog.decode(log, columns=["value"]).to_table()
    search = Search(value=text.swapcase() if ignore_case else text, ignore_case=ignore_case)
    plan = DecodePlan(table.schema, ReadOptions(holds=search.holds))
    rows = list(RecordDecoder(log, 0, NO_BOUND, plan).batches([]))
    got = [value for batch in rows for value in batch.filter(search.mask(batch))["value"].to_pylist()]
    lower: Callable[[bytes], bytes] = bytes.lower if ignore_case else bytes
    assert got == [value for value in values if lower(text) in lower(value)]


EXPRESSIONS = [
    "a",
    "b",
    "c",
    ".",
    "[ab]",
    "[^c]",
    r"\.",
    r"\d",
    "(ab)",
    "(a)?",
    "a*",
    "b+",
    "c{2}",
    "^",
    "$",
    "ab",
    "1",
]


@given(st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=6), st.lists(st.text("abc.1", max_size=12)))
def test_expressions(parts: list[str], values: list[str]):
    pattern = "".join(parts).encode()
    try:
        match = TextMatch(pattern, regex=True, ignore_case=False)
        twin = re.compile(pattern.replace(b"$", rb"\Z"))
    except (ValueError, re.error):  # such as two signs of repetition
        return
    column = [value.encode() for value in values]
    is_found = [twin.search(value) is not None for value in column]
    assert match.mask(pa.array(column, pa.binary())).to_pylist() == is_found
    assert all(needed_text(pattern) in value for value, is_one in zip(column, is_found, strict=True) if is_one)


def test_needed_texts():
    for pattern, needed in [
        (b"abc", b"abc"),
        (b"ab*c", b"a"),
        (b"ab{2}cd", b"cd"),
        (rb"a\.b*cde", b"cde"),
        (b"[]a]bc", b"bc"),
        (b"[^]x]yz(foo)+bar$", b"bar"),
        (b"(?i)abc", b""),
        (b"abc|d", b""),
        (rb"\x41bc", b""),
        (rb"\Qa.b\E", b""),
        (rb"\pLbc", b""),
        (b"[[:alpha:]]b", b""),
    ]:
        assert needed_text(pattern) == needed


DOCUMENTS = [
    b'{"customer": {"id": 12, "name": "Ada"}, "items": [{"sku": "a-1"}, {"sku": "b-2"}]}',
    b'{"customer": {"id": "12", "name": "ADA"}, "items": []}',
    b'{"customer": {"id": 12.0, "name": "\\u0041da"}, "items": [{"sku": null}, 7]}',
    b'{"customer": {"id": 1.2e1, "name": null}, "items": {"x": {"sku": true}}}',
    b'{"customer": null, "a.b": "Ada", "cust\\u006fmer": {"name": "x/y", "big": 1e400}}',
    b'{"customer": {"name": "x\\/y"}} trailing',
    b'"Ada"',
    b"[1, [2, 3]]",
    b"\xff\xfe",
    b"",
    b"NaN",
    b"[" * 100_000,
]


def at_path(document: Any, steps: list[Any]) -> list[Any]:
    for step in steps:
        if step == "*":
            document = [
                v for d in document for v in (d if isinstance(d, list) else d.values() if isinstance(d, dict) else [])
            ]
        elif isinstance(step, int):
            document = [d[step] for d in document if isinstance(d, list) and -len(d) <= step < len(d)]
        else:
            document = [d[step] for d in document if isinstance(d, dict) and step in d]
    return document


def is_equal(value: Any, text: str) -> bool:
    if isinstance(value, bool) or value is None:
        return json.dumps(value) == text
    if isinstance(value, str):
        return value == text
    try:
        return isinstance(value, int | float | Decimal) and Decimal(str(value)) == Decimal(text)
    except ArithmeticError:
        return False


def documents() -> list[Any]:
    found = []
    for value in DOCUMENTS:
        try:
            found.append([json.loads(value.decode(), parse_float=Decimal)] if value != b"NaN" else [])
        except (ValueError, RecursionError):
            found.append([])
    return found


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("customer.id", ["customer", "id"]),
        ("$.customer.name", ["customer", "name"]),
        ("$['customer'][\"name\"]", ["customer", "name"]),
        ("customer", ["customer"]),
        ("['a.b']", ["a.b"]),
        ("items[*].sku", ["items", "*", "sku"]),
        ("items.*.sku", ["items", "*", "sku"]),
        ("items[-1].sku", ["items", -1, "sku"]),
        ("[1][0]", [1, 0]),
        ("customer.big", ["customer", "big"]),
    ],
)
@pytest.mark.parametrize("text", [None, "12", "12.0", "Ada", "null", "true", "a-1", "x/y", "2", "1e400", "absent"])
def test_json_paths(path: str, steps: list[Any], text: str | None):
    log = b"".join(
        kraftlog.encode(pa.table({"value": [document]}), base_offset=row).to_pybytes()
        for row, document in enumerate(DOCUMENTS)
    )
    search = Search(json_path=path if text is None else f"{path}={text}")
    table = kraftlog.decode(log, columns=["offset", "value"]).to_table()
    plan = DecodePlan(table.schema, ReadOptions(holds=search.holds))
    got = [
        offset
        for batch in RecordDecoder(log, 0, NO_BOUND, plan).batches([])
        for offset in batch.filter(search.mask(batch))["offset"].to_pylist()
    ]
    values = [at_path(document, steps) for document in documents()]
    assert got == [
        row for row, there in enumerate(values) if any(text is None or is_equal(value, text) for value in there)
    ]


def test_json_paths_with_expressions():
    rows = pa.record_batch({"value": pa.array(DOCUMENTS, pa.binary())})
    for wanted, ignore_case, expected in [
        ("customer.name=^Ad", False, [0, 2]),
        ("customer.name=^ad", True, [0, 1, 2]),
        ("customer.name=^(null|x)", False, [3, 4]),
        ("customer.id=^12", False, [0, 1, 2]),
        ("customer.id=", False, [0, 1, 2, 3]),
    ]:
        mask = Search(json_path=wanted, regex=True, ignore_case=ignore_case).mask(rows).to_pylist()
        assert [row for row, is_found in enumerate(mask) if is_found] == expected
    assert Search(json_path="customer.name=aDA", ignore_case=True).mask(rows).true_count == 3


def test_wrong_searches():
    for options, text in [
        ({}, "nothing to search for"),
        ({"key": "(", "regex": True}, r"expression '\(': missing \)"),
        ({"value": "ö", "regex": True, "ignore_case": True}, "only the case of ASCII"),
        ({"json_path": "a..b=1"}, r"JSON path 'a..b=1': expected names .* found '..b=1' at character 1"),
        ({"json_path": ["a", "="]}, "JSON path '': expected"),
        ({"value": "a", "key_partitions": 3}, "requires key_equals"),
        ({"key_equals": "a", "key_partitions": 3, "invert": True}, "cannot be combined with invert"),
        ({"key_equals": "a", "key_partitions": 0}, "at least one partition, not 0"),
        ({"header": b"\xff=a"}, "decode"),
    ]:
        with pytest.raises(ValueError, match=text):
            Search(**options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="key_partitions 2: orders has a partition 2"):
        found("transactions", key_equals="a", key_partitions=2)
    with pytest.raises(ValueError, match="of the table records"):
        kraftlog.open(GOLDEN / "codecs" / "log").scan("batches", search=Search(key="a"))
    with pytest.raises(ValueError, match="path '\\$'"):
        JsonPath("$")


def test_partitions_of_keys(tmp_path: Any):
    """Only the partition is read into which Kafka's murmur2 puts the key."""
    store = kraftlog.LogStore(tmp_path / "store")
    store.create_topic("orders", partitions=4)
    with store.producer() as producer:
        for number in range(40):
            producer.send("orders", key=f"k{number}", value=f"v{number}")
    store.close()
    log = kraftlog.open(tmp_path / "store", topics=["orders"])
    rows = log.records(["partition", "key"]).to_table().to_pylist()
    assert {row["partition"] for row in rows} == {0, 1, 2, 3}
    for row in rows:
        read: list[int] = []
        search = Search(key_equals=row["key"], key_partitions=4)
        assert log.scan(
            "records", ["partition", "key"], search=search, on_progress=read.append
        ).to_table().to_pylist() == [row]
        assert sum(read) == sum(one.size for one in log.found.segments if one.partition == row["partition"])


AMOUNTS = [
    b'{"amount": 99.5, "at": "2024-01-02", "tags": [1, 20]}',
    b'{"amount": 100, "at": "2024-02-01", "tags": []}',
    b'{"amount": "100", "at": null}',
    b'{"amount": 1e3, "at": "2023-12-31", "tags": [5]}',
    b"no JSON",
    None,
]


@pytest.mark.parametrize(
    ("json_path", "any_of", "found"),
    [
        ("amount>100", False, [3]),
        ("amount >= 100", False, [1, 2, 3]),
        ("amount<100", False, [0]),
        ("amount<=100.0", False, [0, 1, 2]),
        ("amount!=100", False, [0, 3]),
        ("at!=2024-01-02", False, [1, 2, 3]),
        ("at>=2024", False, [0, 1]),
        ("tags[*]>10", False, [0]),
        ("['amount']>100", False, [3]),
        (["amount>99", "at<2024"], False, [3]),
        (["amount>99", "tags"], False, [0, 1, 3]),
        (["amount<100", "at<2024"], True, [0, 3]),
        (["amount=100", "at=null"], False, [2]),
    ],
)
def test_comparisons_and_several_paths(json_path: str | list[str], any_of: bool, found: list[int]):
    search = Search(json_path=json_path, any_of=any_of)
    rows = pa.record_batch({"value": pa.array(AMOUNTS, pa.binary())})
    assert pc.indices_nonzero(search.mask(rows)).to_pylist() == found
    held = search.holds
    for at in found:  # a batch that holds such a record is never passed over
        assert held is None or all(any(text in (AMOUNTS[at] or b"") for text in texts) for texts in held.clauses)


def test_any_of_several_kinds():
    rows = pa.record_batch(
        {
            "key": [b"lost", b"k", b"k", None],
            "value": [b"v", b"is lost", b"v", b'{"a": 2}'],
            "headers": pa.array([[], [], [{"key": "h", "value": b"lost"}], []], schema.HEADERS),
        }
    )
    everywhere = Search(text="lost")
    assert everywhere.mask(rows).to_pylist() == [True, True, True, False]
    assert everywhere.holds is not None
    assert everywhere.holds.clauses == ((b"lost",),)
    either = Search(key="lost", json_path="a>1", any_of=True)
    assert either.mask(rows).to_pylist() == [True, False, False, True]
    assert either.holds is not None
    assert either.holds.clauses == ((b"lost", b"a", b"\\"),)
    with pytest.raises(ValueError, match="> does not compare with a regular expression"):
        Search(json_path="a>1", regex=True)
