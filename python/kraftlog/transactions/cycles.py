"""Cycles in a graph: its strongly connected components of several nodes (Tarjan)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def cycles(following: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """Return the groups of nodes that all lead to each other.

    Parameters
    ----------
    following : mapping of node to iterable of nodes

    Examples
    --------
    >>> from kraftlog.transactions.cycles import cycles
    >>> [sorted(some) for some in cycles({1: [2], 2: [3], 3: [2, 4], 4: []})]
    [[2, 3]]
    """
    found: list[list[Node]] = []
    numbers: dict[Node, int] = {}
    lows: dict[Node, int] = {}
    path: list[Node] = []
    on_path: set[Node] = set()
    for root in following:
        if root in numbers:
            continue
        steps: list[tuple[Node, Iterator[Node]]] = []

        def enter(node: Node, steps: list[tuple[Node, Iterator[Node]]] = steps) -> None:
            numbers[node] = lows[node] = len(numbers)
            path.append(node)
            on_path.add(node)
            steps.append((node, iter(following.get(node, ()))))

        enter(root)
        while steps:
            node, rest = steps[-1]
            for other in rest:
                if other not in numbers:
                    enter(other)
                    break
                if other in on_path:
                    lows[node] = min(lows[node], numbers[other])
            else:
                steps.pop()
                if steps:
                    before = steps[-1][0]
                    lows[before] = min(lows[before], lows[node])
                if lows[node] == numbers[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    on_path.difference_update(component)
                    if len(component) > 1:
                        found.append(component)
    return found
