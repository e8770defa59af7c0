"""What a crash takes, chosen: by kind, or at random from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from nodes import ZEROS, File, Folder, closed, dependencies
from sim_disk import Loss, SimDisk, entry_changes

KINDS = ("all", "none", "names", "data")  # what is kept of what was not synced
NEVER = 1 << 62


def loss_of(kind: str, disk: SimDisk) -> Loss:
    """Return what is lost when a kind of change is kept whole, and the other one not at all."""
    names = NEVER if kind in ("all", "names") else 0
    data = NEVER if kind in ("all", "data") else 0
    return until(disk, names, data)


def until(disk: SimDisk, names: int, data: int) -> Loss:
    """Return what is lost when all changes up to operations with these numbers are kept."""
    sectors: dict[tuple[int, int], int] = {}
    sizes: dict[int, int] = {}
    for number, node in _pending_files(disk):
        kept = sum(write.number <= data for write in node.pending)
        if kept == len(node.pending):
            continue
        sizes[number] = kept
        for sector, versions in node.touched().items():
            sectors[number, sector] = max((each for each in versions if each <= kept), default=versions[0])
    lost = frozenset(number for number, _ in entry_changes(disk.nodes) if number > names)
    return Loss(lost, sectors, sizes)


def one_lost(disk: SimDisk, dice: Random) -> Loss:
    """Return the loss of one change of entries, with those that need it."""
    before = dependencies(disk.nodes)
    if not before:
        return Loss()
    lost = _some_change(before, dice)
    return Loss(frozenset(number for number in before if lost in closed({number}, before)))


def _some_change(before: Mapping[int, set[int]], dice: Random) -> int:
    """Return a change of entries, often one of the last: what is under way depends on these."""
    changes = sorted(before)
    return dice.choice(changes[-4:] if dice.random() < 0.5 else changes)


def one_kept(disk: SimDisk, dice: Random) -> Loss:
    """Return the loss of all but one change of entries, and those that it needs."""
    before = dependencies(disk.nodes)
    kept = closed({_some_change(before, dice)}, before) if before else set()
    return replace(loss_of("names" if dice.random() < 0.5 else "all", disk), entries=frozenset(before.keys() - kept))


def random_loss(disk: SimDisk, dice: Random) -> Loss:
    """Return any loss that a file system is allowed."""
    if dice.random() < 0.25:
        numbers = [number for number, _ in entry_changes(disk.nodes)]
        numbers += [write.number for _, node in _pending_files(disk) for write in node.pending]
        at = dice.choice(numbers) if numbers else 0
        return until(disk, at, at)
    share = dice.choice((0.1, 0.5, 0.9))
    before = dependencies(disk.nodes)
    kept = closed({number for number in sorted(before) if dice.random() >= share}, before)
    sectors: dict[tuple[int, int], int] = {}
    sizes: dict[int, int] = {}
    for number, node in _pending_files(disk):
        how = dice.random()
        if how < 0.3:
            continue
        sizes[number] = 0 if how < 0.5 else dice.randrange(len(node.pending) + 1)
        for sector, versions in node.touched().items():
            sectors[number, sector] = versions[0] if how < 0.5 else dice.choice(versions)
    return Loss(frozenset(before.keys() - kept), sectors, sizes)


def _pending_files(disk: SimDisk) -> list[tuple[int, File]]:
    return [(number, node) for number, node in sorted(disk.nodes.items()) if isinstance(node, File) and node.pending]


def smaller(disk: SimDisk, loss: Loss) -> list[Loss]:
    """Return losses of one thing less."""
    found = []
    before = dependencies(disk.nodes)
    for number in sorted(loss.entries, reverse=True):
        found.append(replace(loss, entries=loss.entries - closed({number}, before)))
    for node in sorted({node for node, _ in loss.sectors} | loss.sizes.keys()):
        found.append(
            replace(
                loss,
                sectors={at: version for at, version in loss.sectors.items() if at[0] != node},
                sizes={at: version for at, version in loss.sizes.items() if at != node},
            )
        )
    for at in sorted(loss.sectors):
        found.append(replace(loss, sectors={each: version for each, version in loss.sectors.items() if each != at}))
    for node in sorted(loss.sizes):
        found.append(replace(loss, sizes={each: version for each, version in loss.sizes.items() if each != node}))
    return found


def described(disk: SimDisk, loss: Loss) -> list[str]:
    """Say what is lost."""
    names = _paths(disk)
    lines = [
        f"lost: {what} (operation {number})" for number, what in entry_changes(disk.nodes) if number in loss.entries
    ]
    for node, version in loss.sizes.items():
        versions = disk.nodes[node].versions()  # type: ignore[union-attr]
        lines.append(f"lost: size of {names.get(node, node)}: {len(versions[version])}, not {len(versions[-1])}")
    for (node, sector), version in loss.sectors.items():
        what = "zeros" if version == ZEROS else f"version {version} of {len(disk.nodes[node].pending)}"
        lines.append(f"lost: sector {sector} of {names.get(node, node)}: {what}")
    return lines


def _paths(disk: SimDisk) -> Mapping[int, str]:
    found: dict[int, str] = {}
    for number, node in disk.nodes.items():
        if isinstance(node, Folder):
            for name, below in {**node.durable, **node.view}.items():
                found[below] = f"{name} ({below}, in {number})"
    return found
