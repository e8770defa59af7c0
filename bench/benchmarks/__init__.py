"""The asv suite: run ``asv run --python=same`` in ``bench/``; each benchmark says what one unit of its work is."""

import sys
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).resolve().parent.parent)
)  # asv finds this package by itself, but nothing beside it
