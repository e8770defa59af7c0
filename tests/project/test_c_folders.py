"""The folders of ``native/c``: their order is a table of CONTRIBUTING.md, and includes go down only."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
C = ROOT / "native" / "c"
INCLUDE = re.compile(r'^ *# *include +"(.*)"', re.MULTILINE)


def folders() -> list[str]:
    """Return the folders from the lowest up."""
    table = (ROOT / "CONTRIBUTING.md").read_text().split("| folder of `native/c` |")[1].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_the_table_has_every_folder_and_no_header_lies_outside():
    assert sorted(folders()) == sorted(path.name for path in C.iterdir())
    assert all(path.suffix == ".h" and path.is_file() for path in C.glob("*/*"))


def test_includes_name_their_folder_and_go_down_only():
    order = {name: place for place, name in enumerate(folders())}
    seen = 0
    for header in C.glob("*/*.h"):
        for included in INCLUDE.findall(header.read_text()):
            assert (C / included).is_file(), f"{header}: {included} is not a path below native/c"
            assert order[included.split("/")[0]] <= order[header.parent.name], (
                f"{header} includes {included} from above"
            )
            seen += 1
    assert seen > 100


def test_no_two_headers_of_a_folder_include_each_other():
    """The guards would hide it: what a header declares would depend on which of both is included first."""
    includes = {str(path.relative_to(C)): INCLUDE.findall(path.read_text()) for path in C.glob("*/*.h")}
    sound: set[str] = set()
    while ready := {name for name in includes.keys() - sound if sound.issuperset(includes[name])}:
        sound |= ready
    assert sound == includes.keys()
