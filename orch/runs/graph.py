"""The dependency graph: order, cycles, distance to the end. Iterative, for graphs of any depth."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .model import Dependency

Edges = Mapping[str, Collection[str]]
"""From each node to those it depends on."""


def edges_of(dependencies: Iterable[Dependency]) -> dict[str, list[str]]:
    """From each task that waits to those that it waits for, whatever the condition."""
    edges: dict[str, list[str]] = {}
    for dependency in dependencies:
        edges.setdefault(dependency.task_id, []).append(dependency.upstream_id)
    return edges


def path(edges: Edges, start: str, goal: str) -> list[str] | None:
    """A shortest way from `start` to `goal` along `edges`, both included; None if there is none."""
    came_from: dict[str, str | None] = {start: None}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node == goal:
            return _walked_back(came_from, goal)
        for following in edges.get(node, ()):
            if following not in came_from:
                came_from[following] = node
                queue.append(following)
    return None


def ordered(nodes: Iterable[str], edges: Edges) -> list[str]:
    """The nodes with everything after what it depends on; otherwise in the order given.

    Nodes on a cycle, which the store never lets in, are left out.
    """
    missing = dict.fromkeys(nodes, 0)
    followers: dict[str, list[str]] = {}
    for node in missing:
        for upstream in edges.get(node, ()):
            if upstream in missing and upstream != node:
                missing[node] += 1
                followers.setdefault(upstream, []).append(node)
    queue = deque(n for n, number in missing.items() if number == 0)
    order = []
    while queue:
        node = queue.popleft()
        order.append(node)
        for follower in followers.get(node, ()):
            missing[follower] -= 1
            if missing[follower] == 0:
                queue.append(follower)
    return order


def ancestors(edges: Edges, start: str) -> set[str]:
    """Everything that `start` depends on, directly or not."""
    found: set[str] = set()
    queue = deque(edges.get(start, ()))
    while queue:
        node = queue.popleft()
        if node not in found:
            found.add(node)
            queue.extend(edges.get(node, ()))
    return found


def remaining_lengths(nodes: Sequence[str], edges: Edges) -> dict[str, int]:
    """For each node, the number of nodes on the longest chain that starts with it and goes on
    to what depends on it."""
    lengths = dict.fromkeys(nodes, 1)
    for node in reversed(ordered(nodes, edges)):
        for upstream in edges.get(node, ()):
            if upstream in lengths:
                lengths[upstream] = max(lengths[upstream], lengths[node] + 1)
    return lengths


def _walked_back(came_from: Mapping[str, str | None], goal: str) -> list[str]:
    way: list[str] = []
    node: str | None = goal
    while node is not None:
        way.append(node)
        node = came_from[node]
    return way[::-1]


def cycle(nodes: Collection[str], edges: Edges) -> list[str] | None:
    """A cycle among `nodes`, its first node once more at the end; None if there is none."""
    done: set[str] = set()
    for start in nodes:
        if start in done:
            continue
        way: dict[str, Iterator[str]] = {start: iter(edges.get(start, ()))}
        while way:
            here = next(reversed(way))
            following = next(way[here], None)
            if following is None:
                done.add(here)
                del way[here]
            elif following in way:
                keys = list(way)
                return [*keys[keys.index(following) :], following]
            elif following in nodes and following not in done:
                way[following] = iter(edges.get(following, ()))
    return None
