"""What tests of metadata logs share."""

import sys
from pathlib import Path

from command_line import kraftlog_command

__all__ = ["kraftlog_command"]

sys.path.append(str(Path(__file__).parent.parent / "metadata"))  # where records are drawn
sys.path.append(str(Path(__file__).parent))
