"""The requests that are known, by their API keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kraftlog.messages import definition_text
from kraftlog.messages.definition import Definition

_REQUEST, _RESPONSE = "Request", "Response"


@dataclass(frozen=True)
class Api:
    """A request and its response.

    Attributes
    ----------
    key : int
    name : str
        For example ``Fetch``.
    request, response : Definition
        Both have the same versions.
    """

    key: int
    name: str
    request: Definition
    response: Definition


@cache
def apis() -> dict[int, Api]:
    """Return all known requests by key."""
    messages = definition_text.parse_folder(Path(__file__).with_name("definitions"))
    found: dict[int, Api] = {}
    for name, request in messages.items():
        if request.role == "request" and request.api_key is not None:
            response = messages[name.removesuffix(_REQUEST) + _RESPONSE]
            found[request.api_key] = Api(request.api_key, name.removesuffix(_REQUEST), request, response)
    return found
