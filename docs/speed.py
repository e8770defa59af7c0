"""Draws docs/speed.svg: how fast logs are read and written, from the figures of docs/performance.md."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parent / "speed.svg"
FIGURES = Path(__file__).parent / "performance.md"
MATERIAL = "v100_b64"  # values of 100 bytes in batches of 64 KiB
SHOWN = {
    "decode": (
        "Reading: log bytes to columns or records",
        {
            "kraftlog, streamed": "kraftlog, to Arrow",
            "Kafka's Java, in memory": "Kafka's Java",
            "Go franz-go kmsg": "Go, franz-go",
            "Rust kafka-protocol": "Rust, kafka-protocol",
            "aiokafka, iterated": "Python, aiokafka",
            "aiokafka, to pyarrow": "aiokafka, to Arrow",
        },
    ),
    "encode": (
        "Writing: columns or records to log bytes",
        {
            "kraftlog, streamed": "kraftlog, from Arrow",
            "Rust kafka-protocol": "Rust, kafka-protocol",
            "Kafka's Java, MemoryRecordsBuilder": "Kafka's Java",
            "aiokafka, builder": "Python, aiokafka",
        },
    ),
}
_WIDTH, _NAMES, _BARS, _ROW, _MARGIN = 760, 190, 480, 24, 20
_STYLE = """text { font: 14px system-ui, sans-serif; fill: #d8dee9; } .title { font-weight: 600; }
.name { text-anchor: end; } .own { fill: #58a6ff; } .other { fill: #7d8797; }"""


def figures(work: str) -> dict[str, float]:
    """Return the M records/s of each implementation, as the performance page has them."""
    found = re.search(rf"^{work}, M records/s .*?\n\n(.*?)\n\n", FIGURES.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None, f"no table of {work} in {FIGURES.name}"
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found[1].splitlines()]
    at = header.index(MATERIAL)
    return {row[0]: float(row[at].split()[0].replace(",", "")) for row in rows if row[at]}


def picture() -> str:
    """Return the drawing; it has a background of its own, so that it can be read on light and dark pages."""
    lines, y = list[str](), _MARGIN
    for work, (title, names) in SHOWN.items():
        measured = figures(work)
        most = max(measured[name] for name in names)
        y += _ROW
        lines.append(f'<text class="title" x="{_MARGIN}" y="{y - 6}">{escape(title)}</text>')
        for name, shown in names.items():
            length = max(2, round(_BARS * measured[name] / most))
            kind = "own" if name.startswith("kraftlog") else "other"
            lines.append(f'<text class="name" x="{_NAMES - 8}" y="{y + 17}">{escape(shown)}</text>')
            lines.append(f'<rect class="{kind}" x="{_NAMES}" y="{y + 4}" width="{length}" height="{_ROW - 8}" rx="2"/>')
            lines.append(f'<text x="{_NAMES + length + 8}" y="{y + 17}">{measured[name]:g}</text>')
            y += _ROW
        y += _MARGIN // 2
    note = "Million records a second on one core; values of 100 bytes in batches of 64 KiB, checksums compared."
    height = y + _ROW + _MARGIN
    lines.append(f'<text x="{_MARGIN}" y="{y + _ROW - 4}">{note}</text>')
    head = f'<svg viewBox="0 0 {_WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" role="img">'
    background = f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#22272e"/>'
    return "\n".join([head, f"<title>{note}</title>", f"<style>{_STYLE}</style>", background, *lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
