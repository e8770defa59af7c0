"""Regular expressions that name topics: those of RE2, as in Kafka, so that no expression takes long."""

from __future__ import annotations

from collections.abc import Iterable

from kraftlog.errors import KraftlogError


class InvalidRegexError(KraftlogError):
    """A text that is not a regular expression of RE2."""


def check_regex(regex: str) -> None:
    """Check a regular expression.

    Raises
    ------
    InvalidRegexError
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from kraftlog.codec.arrow_arrays import texts_of

    try:
        pc.match_substring_regex(texts_of([""]), pattern=regex)
    except pa.ArrowInvalid as error:
        raise InvalidRegexError(str(error)) from error


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that a valid regular expression matches as a whole.

    Examples
    --------
    >>> sorted(matching("orders|pay.*", ["orders", "orders-late", "payments"]))
    ['orders', 'payments']
    """
    import pyarrow.compute as pc

    from kraftlog.codec.arrow_arrays import texts_of

    candidates = texts_of(sorted(names))
    found = pc.match_substring_regex(candidates, pattern=rf"\A(?:{regex})\z")
    return frozenset(candidates.filter(found).to_pylist())
