"""What tests of metadata logs share."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "metadata"))  # where records are drawn
sys.path.append(str(Path(__file__).parent))
