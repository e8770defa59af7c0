"""What stands in a page, by the parser of the standard library: tables, elements, text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

ENDS_ITSELF = {"meta", "br", "path"}


@dataclass
class Section:
    """What stands in one section: rows of its tables, the header of each first, and its text."""

    tables: list[list[list[str]]] = field(default_factory=list)
    titles: list[list[list[str]]] = field(default_factory=list)
    text: str = ""

    def rows(self, first: str) -> list[dict[str, str]]:
        """Return the rows of all tables whose first column is called so."""
        found = []
        for header, *rows in self.tables:
            if header[0] == first:
                found += [dict(zip(header, row, strict=True)) for row in rows]
        return found


class Page(HTMLParser):
    """A page by the ids of its sections.

    Attributes
    ----------
    elements : dict
        How many elements of each name there are.
    attributes : set
        Names of attributes.
    findings : list of dict
        kind, severity, title, text and commands of each.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.sections: dict[str, Section] = {}
        self.elements: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.findings: list[dict[str, str]] = []
        self.text = ""
        self._section = Section()
        self._cell: list[str] | None = None
        self._pre = self._in_style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.attributes |= given.keys()
        if "id" in given:
            self._section = self.sections.setdefault(given["id"], Section())
        if tag == "table":
            self._section.tables.append([])
            self._section.titles.append([])
        elif tag == "tr":
            self._section.tables[-1].append([])
            self._section.titles[-1].append([])
        elif tag in ("td", "th"):
            self._section.tables[-1][-1].append("")
            self._section.titles[-1][-1].append(given.get("title", ""))
            self._cell = self._section.tables[-1][-1]
        elif tag == "details" and "data-kind" in given:
            severity = given["class"].split()[1]
            self.findings.append({"kind": given["data-kind"], "severity": severity, "text": "", "commands": ""})
        elif tag == "pre":
            self._pre = True
        elif tag == "style":
            self._in_style = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._cell = None
        elif tag == "pre":
            self._pre = False
        elif tag == "style":
            self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            return
        self.text += data
        self._section.text += data
        if self._cell is not None:
            self._cell[-1] = (self._cell[-1] + data).strip()
        if self.findings and self._section is self.sections.get("findings"):
            self.findings[-1]["commands" if self._pre else "text"] += data

    @property
    def commands(self) -> list[str]:
        """All commands of findings."""
        return [line for one in self.findings for line in one["commands"].splitlines() if line]
