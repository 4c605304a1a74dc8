"""A graph as text of at most 80 columns: each task once, below what it waits for."""

from collections.abc import Iterator

from .drawing import Drawing, Edge, Node
from .widths import cells, fitted, padded

WIDTH = 80
MOST_INDENT = 18
MOST_NAME = 44
Piece = tuple[str, str | None]
"""Text, and the state whose colour it has."""

_MARKS = {
    "succeeded": "✓",
    "failed": "✗",
    "unreachable": "⊘",
    "cancelled": "⊘",
    "skipped": "–",
    "active": "▶",
    "blocked": "?",
    "base_conflict": "!",
    "ready": "●",
}


def graph_lines(drawing: Drawing) -> Iterator[list[Piece]]:
    """The lines, in pieces."""
    yield [(fitted(drawing.heading, WIDTH), None)]
    upstream = drawing.upstream()
    below = _below(drawing, upstream)
    states = max((len(node.state) for node in drawing.nodes), default=0)
    placed = list(_placed(drawing, upstream, below))
    widest = max((cells(lead + node.key) for node, lead in placed), default=0)
    room = min(MOST_NAME, widest + 4)
    for node, lead in placed:
        yield _line(node, lead, _also(drawing, upstream[node.number]), (room, states))


def _placed(
    drawing: Drawing, upstream: list[list[Edge]], below: list[list[int]]
) -> Iterator[tuple[Node, str]]:
    """Every node with the branch that leads to it, from top to bottom."""
    roots = [node.number for node in drawing.nodes if not upstream[node.number]]
    # A stack instead of recursion: a chain may have thousands of tasks.
    stack = [(number, "", "") for number in reversed(roots)]
    while stack:
        number, lead, indent = stack.pop()
        yield drawing.nodes[number], lead
        children = below[number]
        for position, child in reversed(list(enumerate(children))):
            last = position == len(children) - 1
            bar = "└─ " if last else "├─ "
            deeper = indent + ("   " if last else "│  ")
            # From some depth on everything stands in one column: there is no room for more.
            stack.append((child, indent + bar, deeper if len(deeper) <= MOST_INDENT else indent))


def _below(drawing: Drawing, upstream: list[list[Edge]]) -> list[list[int]]:
    """For each node those that are drawn below it: each below the last that it waits for."""
    below: list[list[int]] = [[] for _ in drawing.nodes]
    for node in drawing.nodes:
        if upstream[node.number]:
            below[upstream[node.number][-1].source].append(node.number)
    return below


def _also(drawing: Drawing, edges: list[Edge]) -> str:
    """What else it waits for, and under which condition if not the usual one."""
    parts = [_condition(edges[-1], "")] if edges else []
    parts += [_condition(edge, drawing.nodes[edge.source].key) for edge in edges[:-1]]
    return ", ".join(part for part in parts if part)


def _condition(edge: Edge, key: str) -> str:
    if edge.condition == "success":
        return f"+{key}" if key else ""
    return f"+{key} ({edge.condition})" if key else f"if {edge.condition}"


def _line(node: Node, lead: str, also: str, widths: tuple[int, int]) -> list[Piece]:
    room, states = widths
    room = max(room, cells(lead) + 8)
    rest = WIDTH - room - states - 2
    note = f"{also}  {node.title}" if also else node.title
    return [
        (lead, None),
        (padded(f"{_MARKS.get(node.state, '○')} {node.key}", room - cells(lead)), node.state),
        (padded(node.state, states), node.state),
        ("  " + fitted(note, rest), None),
    ]
