"""The text in which messages are defined."""

from __future__ import annotations

import pytest

from kraftlog.messages.definition import NO_VERSIONS, Definition, Field, Versions
from kraftlog.messages.definition_text import parse

TEXT = """
# A comment.
format metadata

ExampleRecord: metadata, api key 7, versions 1-4, flexible 2+
    id            int64           default -1, ignorable
    parts         []struct   2+   nullable 3+, tag 0 4, default null
        name      string     3
            # and one more
        flag      bool            default true
    owner         uuid       0-2

PlainData: data, versions 0, flexible none
"""
ALL = Versions(1, 4)


def test_all_that_a_text_says() -> None:
    name = Field("name", "string", False, Versions(3, 3), default="")
    flag = Field("flag", "bool", False, Versions(2, 4), default=True)
    fields = (
        Field("id", "int64", False, ALL, default=-1, is_ignorable=True),
        Field("parts", "struct", True, Versions(2, 4), Versions(3, 4), 0, Versions(4, 4), None, False, (name, flag)),
        Field("owner", "uuid", False, Versions(1, 2), default="AAAAAAAAAAAAAAAAAAAAAA"),
    )
    assert parse(TEXT, "text") == [
        Definition("ExampleRecord", "metadata", 7, ALL, Versions(2, 4), fields, "metadata"),
        Definition("PlainData", "data", None, Versions(0, 0), NO_VERSIONS, (), "metadata"),
    ]


HEAD = "One: data, versions 0-1, flexible none\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("One: data, versions 0-1\n", 1, "a message begins as"),
        ("    id int32\n", 1, "a message begins as"),
        ("One: header, versions 0, flexible none\n", 1, "role is one of"),
        ("One: data, versions 3-1, flexible none\n", 1, "the first one first"),
        ("One: data, versions 0-40000, flexible none\n", 1, "from 0 to 32767"),
        ("One: data, versions a, flexible none\n", 1, "versions are written as"),
        (HEAD + HEAD, 2, "a second One"),
        (HEAD + "   id int32\n", 2, "an indent is a multiple of 4"),
        (HEAD + "        id int32\n", 2, "an indent below what is no struct"),
        (HEAD + "    id int32\n        part int8\n", 3, "an indent below what is no struct"),
        (HEAD + "    id\n", 2, "a field is"),
        (HEAD + "    id number\n", 2, "type is one of"),
        (HEAD + "    id int32 1..2\n", 2, "versions are written as"),
        (HEAD + "    id int32 tag x\n", 2, "a remark is"),
        (HEAD + "    id int32 optional\n", 2, "a remark is"),
        (HEAD + "    id int32 default null\n", 2, "never nullable"),
        (HEAD + "    id int8 default 128\n", 2, "from -128 to 127"),
        (HEAD + "    id int8 default x\n", 2, "invalid literal"),
        (HEAD + "    id bool default 1\n", 2, "true or false"),
        (HEAD + "    id []int8 default 1\n", 2, "null or empty"),
        (HEAD + "    id int8\n\n    id int8\n", 4, "a second field id"),
    ],
)
def test_a_line_that_is_wrong_is_named(text: str, line: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as error:
        parse(text, "some.messages")
    assert str(error.value).startswith(f"some.messages, line {line}: ")
