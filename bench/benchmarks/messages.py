"""Internal topics: typed records, JSON, images and committed offsets."""

from __future__ import annotations

import folds
import typed_records
from internal_topics import metadata_log, offsets_log
from rounds import Contender

from . import common


class _Contenders:
    """The contenders of a piece of work."""

    def take(self, contenders: list[Contender]) -> None:
        self.contenders = {contender.name: contender for contender in contenders}

    def run(self, name: str) -> None:
        self.contenders[name].run()

    def speed(self, name: str) -> float:
        contender = self.contenders[name]
        return common.speed(contender.run, contender.records)


class _Typed(_Contenders):
    """Work on values in memory."""

    params = ([typed_records.BINARY, typed_records.FROM_LOG],)
    param_names = ("contender",)

    def time_typed(self, name: str) -> None:
        """Read records to columns of their types."""
        self.run(name)

    def peakmem_typed(self, name: str) -> None:
        """Memory of the process that does, the log included."""
        self.run(name)

    def track_typed(self, name: str) -> float:
        """Return records read a second."""
        return self.speed(name)

    track_typed.unit = "records/s"


class Metadata(_Typed):
    def setup(self, _: str) -> None:
        self.take(typed_records.metadata(metadata_log(common.MEGABYTES), {}))


class OffsetCommits(_Typed):
    def setup(self, _: str) -> None:
        self.take(typed_records.commits(offsets_log(common.MEGABYTES), {}))


class Written(_Contenders):
    params = ([typed_records.JSON, typed_records.ENCODED],)
    param_names = ("contender",)

    def setup(self, _: str) -> None:
        self.take(typed_records.metadata(metadata_log(common.MEGABYTES), {}))

    def time_write(self, name: str) -> None:
        """Write two hundred thousand records as JSON, or their PartitionChangeRecords as bytes."""
        self.run(name)

    def track_write(self, name: str) -> float:
        """Return records written a second."""
        return self.speed(name)

    track_write.unit = "records/s"


class Image(_Contenders):
    params = ([folds.REPLAYED, folds.APPLIED],)
    param_names = ("contender",)

    def setup(self, _: str) -> None:
        self.take(folds.replay(metadata_log(common.MEGABYTES), {}))

    def time_replay(self, name: str) -> None:
        """Make the image of two hundred thousand records."""
        self.run(name)

    def peakmem_replay(self, name: str) -> None:
        """Memory of the process that does."""
        self.run(name)

    def track_replay(self, name: str) -> float:
        """Return records replayed a second."""
        return self.speed(name)

    track_replay.unit = "records/s"


class Offsets(_Contenders):
    params = ([folds.TABLE],)
    param_names = ("contender",)

    def setup(self, _: str) -> None:
        self.take(folds.offsets(offsets_log(common.MEGABYTES), {}))

    def time_fold(self, name: str) -> None:
        """Fold a hundred thousand commits."""
        self.run(name)

    def track_fold(self, name: str) -> float:
        """Return commits folded a second."""
        return self.speed(name)

    track_fold.unit = "records/s"
