"""Responses that have an error for everything that a request names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraftlog.messages.definition import BYTES, STRUCT, Field
from kraftlog.protocol.request import Request

_ERROR_CODE = "error_code"


def error_response(request: Request, code: int) -> dict[str, Any]:
    """Return a response that has an error for everything that a request names.

    Parameters
    ----------
    request : Request
    code : int
        The error code.
    """
    fields, version = request.api.response.fields, max(request.version, 0)
    return _with_error(fields, request.api.request.fields, request.values, version, code)


def _with_error(
    fields: tuple[Field, ...], of_request: tuple[Field, ...], values: Mapping[str, Any], version: int, code: int
) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    lists = [one for one in of_request if one.is_array and version in one.versions]
    for field in fields:
        if version not in field.versions:
            continue
        if field.column.endswith(_ERROR_CODE) and not field.is_array:
            answer[field.column] = code
        elif field.kind == STRUCT and field.is_array and _has_error(field, version):
            requested = next((one for one in lists if one.column == field.column), lists[0] if lists else None)
            if requested is not None:
                answer[field.column] = list(_each(field, requested, values[requested.column] or (), version, code))
        elif field.column in values and field.kind != BYTES and not field.is_array:  # bytes may be a password
            answer[field.column] = values[field.column]
    return answer


def _each(field: Field, requested: Field, rows: Any, version: int, code: int) -> Iterator[dict[str, Any]]:
    for row in rows:
        if isinstance(row, Mapping):
            known = dict(row)
            if "partition" in known:  # Fetch has another name for it
                known["partition_index"] = known["partition"]
            yield _with_error(field.fields, requested.fields, known, version, code)
        else:  # a name or a number alone, which is the first field of its answer
            names = (one.column for one in field.fields if version in one.versions)
            first = next(name for name in names if not name.endswith(_ERROR_CODE))
            yield _with_error(field.fields, (), {first: row}, version, code)


def _has_error(field: Field, version: int) -> bool:
    return any(
        version in one.versions
        and (one.column.endswith(_ERROR_CODE) or (one.kind == STRUCT and one.is_array and _has_error(one, version)))
        for one in field.fields
    )


def has_error(answer: Mapping[str, Any]) -> bool:
    """Whether a response names an error; one without any would be an answer to a client."""
    return any(
        (name.endswith(_ERROR_CODE) and bool(value))
        or (isinstance(value, list) and any(isinstance(one, Mapping) and has_error(one) for one in value))
        for name, value in answer.items()
    )
