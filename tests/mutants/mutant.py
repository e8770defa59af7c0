"""The table of mutants: changes of the code that tests or the simulator have to notice."""

from __future__ import annotations

import gc
import importlib.machinery
import inspect
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "python" / "kraftlog"
TABLE = Path(__file__).parent / "mutants.toml"
SIMULATION = "simulation "  # how a check begins that is no test of pytest


class NotApplicableError(ValueError):
    """A mutant whose text the code no longer has."""


@dataclass(frozen=True)
class Mutant:
    """A change of the code.

    Attributes
    ----------
    file : str
        Below the package.
    before, after : str
        What the file has once, and what takes its place.
    meaning : str
        What goes wrong.
    killed_by : str
        The check that notices: a test of pytest, or ``simulation WORKLOAD SEED``.
    equivalent : str
        Why nothing can notice it; then ``killed_by`` is empty.
    """

    name: str
    file: str
    before: str
    after: str
    meaning: str
    killed_by: str = ""
    equivalent: str = ""

    @property
    def path(self) -> Path:
        """Of the file."""
        return PACKAGE / self.file

    def applied(self) -> str:
        """Return the file with the change.

        Raises
        ------
        NotApplicableError
            When the text is not in the file, or more than once.
        """
        text = self.path.read_text()
        count = text.count(self.before)
        if count != 1:
            found = "text not found" if not count else f"the text occurs {count} times"
            raise NotApplicableError(f"mutant {self.name}: {found} in {self.file}; the table follows the code")
        return text.replace(self.before, self.after)

    def install(self) -> None:
        """Change the file in this process: functions of a module that is imported get the code of the changed file.

        Raises
        ------
        NotApplicableError
            When the change is outside of functions, where it ran when the module was imported.
        """
        changed = compile(self.applied(), str(self.path), "exec")
        get_code = importlib.machinery.SourceFileLoader.get_code

        def code_of(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
            return changed if loader.path == str(self.path) else get_code(loader, name)

        name = ".".join(("kraftlog", *Path(self.file).with_suffix("").parts))
        if name not in sys.modules:
            importlib.machinery.SourceFileLoader.get_code = code_of  # type: ignore[method-assign]
            return
        before, after = list[CodeType](), list[CodeType]()
        if _body(compile(self.path.read_text(), str(self.path), "exec"), before) != _body(changed, after):
            raise NotApplicableError(f"mutant {self.name} changes what runs when {self.file} is imported")
        codes = dict(zip(before, after, strict=True))
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename == str(self.path):
                each.__code__ = codes.get(each.__code__, each.__code__)


def _body(code: CodeType, functions: list[CodeType]) -> list[object]:
    """Return what runs when a module is imported, and add the functions that it makes to a list."""
    found: list[object] = [code.co_code, code.co_names]
    for each in code.co_consts:
        if not isinstance(each, CodeType):
            found.append(each)
        elif each.co_flags & inspect.CO_NEWLOCALS:
            found.append(each.co_qualname)
            functions.append(each)
        else:  # a class
            found.append(_body(each, functions))
    return found


def mutants() -> list[Mutant]:
    """Return the table."""
    return [Mutant(**row) for row in tomllib.loads(TABLE.read_text())["mutant"]]


def write(table: list[Mutant]) -> None:
    """Write the table."""
    parts = [
        "# Changes of the code, with the check that notices each; run.py runs them, and finds checks with --search.\n"
    ]
    for each in table:
        parts.append(
            f'\n[[mutant]]\nname = "{each.name}"\nfile = "{each.file}"\nmeaning = "{each.meaning}"\n'
            f"before = '''\n{each.before}'''\nafter = '''\n{each.after}'''\n"
        )
        parts += [f"{name} = '{text}'\n" for name in ("killed_by", "equivalent") if (text := getattr(each, name))]
    TABLE.write_text("".join(parts))
