"""What tests of the audit share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_cluster import SmallCluster


@pytest.fixture
def cluster(tmp_path: Path) -> SmallCluster:
    """Return an empty log directory."""
    return SmallCluster(tmp_path)
