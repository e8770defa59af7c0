"""The options that say what keys and values are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftlog.cli.options import applied

if TYPE_CHECKING:
    from kraftlog.values.typed_options import TypedOptions

FORMAT_NAMES = (
    "avro",
    "protobuf",
    "json",
    "string",
    "long",
    "integer",
    "short",
    "double",
    "float",
    "uuid",
    "hex",
    "base64",
    "bytes",
)

TYPED = applied(
    [
        click.option(
            "--value-format",
            type=click.Choice(FORMAT_NAMES),
            metavar="FORMAT",
            help=f"What values are; they become columns: {', '.join(FORMAT_NAMES)}.",
        ),
        click.option(
            "--key-format", type=click.Choice(FORMAT_NAMES), metavar="FORMAT", help="What keys are: one of the same."
        ),
        click.option(
            "--value-schema",
            help="The schema to read values by: an id, a subject, SUBJECT:VERSION, or a file .avsc, .proto or .json"
            " (JSON Schema); else the newest.",
        ),
        click.option("--key-schema", help="The same of keys."),
        click.option(
            "--value-framing",
            type=click.Choice(("confluent", "apicurio", "none")),
            help="What stands before a value: an id of four bytes (confluent, the default), of eight, or nothing.",
        ),
        click.option(
            "--key-framing", type=click.Choice(("confluent", "apicurio", "none")), help="What stands before a key."
        ),
        click.option(
            "--json-sample",
            metavar="N|all",
            help="How many values of each partition say the type of JSON; 2,000 by default, all for export, --output"
            " and sql.",
        ),
        click.option(
            "--schemas",
            type=click.Path(exists=True, file_okay=False),
            help="A folder of schemas; by default they come from the topic _schemas of the same log directory.",
        ),
    ]
)


def typed_options(given: dict[str, Any]) -> TypedOptions | None:
    """Take the options of formats, and return what they say."""
    names = ("value_format", "key_format", "value_schema", "key_schema", "value_framing", "key_framing", "json_sample")
    texts, schemas = {name: given.pop(name) for name in names}, given.pop("schemas")
    if not any((*texts.values(), schemas)):
        return None
    from kraftlog.values.typed_options import TypedOptions

    return TypedOptions.of(schemas=schemas, **texts)
