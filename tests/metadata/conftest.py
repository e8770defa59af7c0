"""What tests of the metadata image share."""

import sys
from pathlib import Path

from command_line import kraftlog_command

__all__ = ["kraftlog_command"]

sys.path.insert(0, str(Path(__file__).parent))
