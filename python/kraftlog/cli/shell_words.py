r"""A command line as words.

Words stand apart by spaces. ``\`` takes the next character as it is; between single quotes everything is taken as it
is, between double quotes everything but ``\`` and ``"``. What is taken as it is has no meaning in a glob: a word's
pattern has a ``\`` before such a character.
"""

from __future__ import annotations

from dataclasses import dataclass

GLOB_CHARACTERS = frozenset("*?{}\\")
_SPACES = frozenset(" \t\n")
_QUOTES = frozenset("'\"")


@dataclass
class Word:
    """A word.

    Attributes
    ----------
    start : int
        Its first character in the line.
    raw : str
        As it was typed.
    text : str
        Without quotes and escapes.
    pattern : str
        The same as a glob.
    quote : str
        The quote that is still open at its end, or "".
    is_escaping : bool
        Whether it ends in a backslash that nothing follows.
    """

    start: int
    raw: str = ""
    text: str = ""
    pattern: str = ""
    quote: str = ""
    is_escaping: bool = False

    def take(self, character: str, *, is_plain: bool) -> None:
        """Add a character, which has no meaning in a glob when it is plain."""
        self.text += character
        self.pattern += f"\\{character}" if is_plain and character in GLOB_CHARACTERS else character


def split_words(line: str) -> list[Word]:
    """Return the words of a line; the last one is empty when the line is, or ends in a space."""
    words = [Word(0)]
    for place, character in enumerate(line):
        word = words[-1]
        if character in _SPACES and not word.quote and not word.is_escaping:
            if word.raw:
                words.append(Word(place + 1))
            else:
                word.start = place + 1
            continue
        word.raw += character
        if word.is_escaping:
            if word.quote and character not in ('"', "\\"):
                word.take("\\", is_plain=True)
            word.take(character, is_plain=True)
            word.is_escaping = False
        elif character == "\\" and word.quote != "'":
            word.is_escaping = True
        elif character == word.quote:
            word.quote = ""
        elif character in _QUOTES and not word.quote:
            word.quote = character
        else:
            word.take(character, is_plain=bool(word.quote))
    return words


def command_words(line: str) -> list[Word]:
    """Return the words of a whole command.

    Raises
    ------
    ValueError
        A quote is not closed, or nothing follows a backslash.
    """
    words = split_words(line)
    if words[-1].quote:
        raise ValueError(f"the quote {words[-1].quote} is not closed")
    if words[-1].is_escaping:
        raise ValueError("nothing follows the backslash at the end")
    return words if words[-1].raw else words[:-1]


def escaped(text: str, quote: str = "") -> str:
    """Return text as it is typed behind an open quote, or without one."""
    if quote == "'":
        return text.replace("'", "'\\''")
    special = {'"', "\\"} if quote else GLOB_CHARACTERS | _SPACES | _QUOTES
    return "".join(f"\\{character}" if character in special else character for character in text)
