"""What every picture of a graph is made of: nodes and edges, and how states look."""

from collections.abc import Sequence
from typing import NamedTuple

from ..runs import graph
from ..runs.model import Dependency
from ..runs.readiness import Standing


class Node(NamedTuple):
    """A task: `number` is its place among the nodes."""

    number: int
    key: str
    title: str
    state: str


class Edge(NamedTuple):
    """From what must come first to what waits for it, by the numbers of the nodes."""

    source: int
    target: int
    condition: str


class Drawing(NamedTuple):
    """A graph to be drawn: a heading, nodes with everything after what it depends on, edges."""

    heading: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def upstream(self) -> list[list[Edge]]:
        """For each node the edges that lead to it."""
        found: list[list[Edge]] = [[] for _ in self.nodes]
        for edge in self.edges:
            found[edge.target].append(edge)
        return found


def drawing_of(
    heading: str, standings: Sequence[Standing], dependencies: Sequence[Dependency]
) -> Drawing:
    """The drawing of a run."""
    by_id = {s.task.id: s for s in standings}
    order = graph.ordered(by_id, graph.edges_of(dependencies))
    numbers = {task_id: number for number, task_id in enumerate(order)}
    nodes = (Node(numbers[i], by_id[i].task.key, by_id[i].task.title, by_id[i].state)
             for i in order)  # fmt: skip
    edges = sorted(
        Edge(numbers[d.upstream_id], numbers[d.task_id], d.condition) for d in dependencies
    )
    return Drawing(heading, tuple(nodes), tuple(edges))


# State -> fill, line; by kind of state, with enough contrast for black text on the fill.
COLOURS = {
    **dict.fromkeys(("succeeded",), ("#d7f0dc", "#1a7f37")),
    **dict.fromkeys(("active", "running", "submitted", "verifying", "ending", "offered",
                     "allocating", "provisioned"), ("#fff1c2", "#9a6700")),
    **dict.fromkeys(("ready",), ("#d6e9ff", "#0969da")),
    **dict.fromkeys(("waiting", "backing_off", "pending"), ("#f3f4f6", "#8b949e")),
    **dict.fromkeys(("blocked", "base_conflict"), ("#f3dcff", "#8250df")),
    **dict.fromkeys(("failed", "rejected", "timed_out", "lost", "unreachable",
                     "provision_failed"), ("#ffdcd9", "#cf222e")),
    **dict.fromkeys(("cancelled", "skipped"), ("#e5e7eb", "#6e7781")),
}  # fmt: skip


def states_in(drawing: Drawing) -> list[tuple[str, int]]:
    """The states of the nodes with their number, in the order in which they first appear."""
    counts: dict[str, int] = {}
    for node in drawing.nodes:
        counts[node.state] = counts.get(node.state, 0) + 1
    return list(counts.items())
