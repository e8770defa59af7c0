"""Texts and regular expressions in columns of bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_CLASSES = b"dDwWsSbBAzCnrtfav"  # behind a backslash: of one byte, or of none


class TextMatch:
    """Matches of a text or an RE2 regular expression in a column of bytes.

    Parameters
    ----------
    text : bytes
    regex : bool
    ignore_case : bool
        Whether to ignore the case of ASCII letters.

    Attributes
    ----------
    needed : bytes
        Bytes that every match contains, in this case or, with ``ignore_case``, in another; empty if unknown.

    Raises
    ------
    ValueError
        When the expression is invalid, or its case cannot be ignored.

    Examples
    --------
    >>> TextMatch(b"O[0-9]", regex=True, ignore_case=True).mask(pa.array([b"no7", b"no", None])).to_pylist()
    [True, False, False]
    """

    def __init__(self, text: bytes, *, regex: bool, ignore_case: bool) -> None:
        self.needed = needed_text(text) if regex else text
        self._literal = text if not regex and not ignore_case else None
        self._pattern = text
        if regex and ignore_case:
            if not text.isascii():
                raise ValueError(f"expression {_shown(text)}: only the case of ASCII can be ignored, and it has others")
            self._pattern = b"(?i)" + text
        elif ignore_case:
            self._pattern = b"".join(_of_any_case(byte) for byte in text)
        self._check(text)

    def _check(self, text: bytes) -> None:
        try:
            self.mask(pa.array([b""]))
        except pa.ArrowInvalid as error:
            raise ValueError(f"expression {_shown(text)}: {str(error).split('expression: ')[-1]}") from None

    def mask(self, column: pa.Array) -> pa.Array:
        """Return which values match; nulls do not."""
        if self._literal is not None:
            found = pc.match_substring(column, self._literal)
        else:
            found = pc.match_substring_regex(column, self._pattern)
        return pc.fill_null(found, False)


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))


def _of_any_case(byte: int) -> bytes:
    character = bytes([byte])
    if character.isalpha():
        return b"[" + character.lower() + character.upper() + b"]"
    return b"\\x%02x" % byte


def needed_text(pattern: bytes) -> bytes:
    r"""Return bytes that every match of an expression contains, the longest that are easy to find; or none.

    Examples
    --------
    >>> needed_text(rb"order-[0-9]+ (was )?lost\.?$")
    b'order-'
    >>> needed_text(b"lost|gone")
    b''
    """
    if any(odd in pattern for odd in (b"|", b"(?", b"[:")):
        return b""
    best, run, at, depth = b"", b"", 0, 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        literal, at = b"", at + 1
        if byte == b"\\":
            escaped = pattern[at : at + 1]
            at += 1
            if escaped.isalnum() and escaped not in _CLASSES:
                return b""
            literal = b"" if escaped.isalnum() or not escaped.isascii() else escaped
        elif byte == b"[":
            at = _behind_class(pattern, at)
        elif byte in b"()":
            depth += 1 if byte == b"(" else -1
        elif byte == b"{":
            end = pattern.find(b"}", at)
            if end < 0:
                return b""
            at = end + 1
        elif byte not in b".^$*?+":
            literal = byte
        following = pattern[at : at + 1]
        if literal and depth == 0 and not (following and following in b"*?{"):
            run += literal
        else:
            best, run = max(best, run, key=len), b""
    return max(best, run, key=len)


def _behind_class(pattern: bytes, at: int) -> int:
    """Return the end of a character class whose ``[`` is before a position."""
    if pattern[at : at + 1] == b"^":
        at += 1
    start = at
    while at < len(pattern) and (pattern[at : at + 1] != b"]" or at == start):
        at += 2 if pattern[at : at + 1] == b"\\" else 1
    return at + 1
