"""Types that several modules name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer as Buffer
else:
    Buffer: TypeAlias = Any  # collections.abc has it from Python 3.12 on
