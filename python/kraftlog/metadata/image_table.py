"""One type of an image's records, in the columns that the table of that type has."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata.image import TYPES, Image
from kraftlog.metadata.secrets import without_secrets


def image_table(image: Image, name: str, *, show_secrets: bool = False) -> pa.Table:
    """Return the records of a type that an image holds, uuids as text.

    Parameters
    ----------
    image : Image
    name : str
        One of ``kraftlog.metadata.image.TYPES``.
    show_secrets : bool
        Whether salt and keys of SCRAM credentials, and passwords in configs, are shown; else they are null, and
        ``[redacted]``.

    Raises
    ------
    ValueError
        When a snapshot has no records of that type.
    """
    if name not in TYPES:
        raise ValueError(f"an image has no records of type {name!r}; it has {', '.join(TYPES)}")
    definition = BUILT_IN.messages[name]
    assert definition.api_key is not None
    version = definition.versions.last
    values = encode_messages(definition, version, image.tables()[name], prefix=frame(definition.api_key, version))
    fields = MessageReader(BUILT_IN.formats["metadata"]).read(None, values).typed(name).fields
    return pa.Table.from_batches([fields if show_secrets else without_secrets(name, fields)])
