"""Where the boxes of a graph stand: in columns by the longest way to them, in an order with few
crossings, with lanes for the edges that pass a column."""

from itertools import pairwise
from typing import NamedTuple

from .drawing import Drawing
from .widths import cells

BOX_HEIGHT = 40
ROW_GAP = 16
LANE_HEIGHT = 10
COLUMN_GAP = 56
CELL = 7.3
"""The width of a character of 12 px in a fixed-width font, rounded up."""
MOST_CELLS, LEAST_CELLS = 28, 8
BOX_PADDING = 20
SWEEPS = 6
MOST_LANES = 20_000


class Box(NamedTuple):
    """Left, top, width, height."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """A box for each node, the points of each edge from left to right, and the whole size."""

    boxes: list[Box]
    ways: list[list[tuple[float, float]]]
    width: float
    height: float


class _Place(NamedTuple):
    """A node in its column, or a lane of an edge."""

    node: int | None
    edge: int | None


def laid_out(drawing: Drawing) -> Layout:
    """Coordinates from (0, 0)."""
    columns = _columns(drawing)
    order, places = _placed(drawing, columns)
    _untangle(order, _neighbours(drawing, columns, places))
    return _coordinates(drawing, order, places, columns)


def _columns(drawing: Drawing) -> list[int]:
    """The column of each node; the nodes come in topological order."""
    columns = [0] * len(drawing.nodes)
    for edge in sorted(drawing.edges, key=lambda e: e.target):
        columns[edge.target] = max(columns[edge.target], columns[edge.source] + 1)
    return columns


def _placed(drawing: Drawing, columns: list[int]) -> tuple[list[list[int]], list[_Place]]:
    """(the places of each column, every place): first the nodes, then lanes for long edges."""
    places = [_Place(node.number, None) for node in drawing.nodes]
    order: list[list[int]] = [[] for _ in range(max(columns, default=0) + 1)]
    for number, column in enumerate(columns):
        order[column].append(number)
    lanes = sum(columns[e.target] - columns[e.source] - 1 for e in drawing.edges)
    if lanes <= MOST_LANES:
        for index, edge in enumerate(drawing.edges):
            for column in range(columns[edge.source] + 1, columns[edge.target]):
                order[column].append(len(places))
                places.append(_Place(None, index))
    return order, places


def _neighbours(
    drawing: Drawing, columns: list[int], places: list[_Place]
) -> tuple[list[list[int]], list[list[int]]]:
    """For each place those that it is joined with to the left, and to the right."""
    left: list[list[int]] = [[] for _ in places]
    right: list[list[int]] = [[] for _ in places]
    lanes: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        if place.edge is not None:
            lanes.setdefault(place.edge, []).append(number)
    for index, edge in enumerate(drawing.edges):
        chain = [edge.source, *lanes.get(index, ()), edge.target]
        for here, following in pairwise(chain):
            right[here].append(following)
            left[following].append(here)
    return left, right


def _untangle(order: list[list[int]], joined: tuple[list[list[int]], list[list[int]]]) -> None:
    """Sort each column by the middle of what its places are joined with, there and back."""
    left, right = joined
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        side = left if forward else right
        position = {p: i for column in order for i, p in enumerate(column)}
        for column in order if forward else reversed(order):
            middles = {
                p: sum(position[n] for n in side[p]) / len(side[p]) if side[p] else position[p]
                for p in column
            }
            column.sort(key=lambda p: (middles[p], position[p]))
            position.update({p: i for i, p in enumerate(column)})


def _coordinates(
    drawing: Drawing, order: list[list[int]], places: list[_Place], columns: list[int]
) -> Layout:
    heights = [BOX_HEIGHT if place.node is not None else LANE_HEIGHT for place in places]
    tallest = max((_height(column, heights) for column in order), default=0.0)
    boxes: dict[int, Box] = {}
    x = 0.0
    for column in order:
        width = _width(drawing, column, places)
        y = (tallest - _height(column, heights)) / 2
        for place in column:
            boxes[place] = Box(x, y, width, heights[place])
            y += heights[place] + ROW_GAP
        x += width + COLUMN_GAP
    count = len(drawing.nodes)
    ways = _ways(drawing, boxes, places)
    return Layout([boxes[n] for n in range(count)], ways, max(0.0, x - COLUMN_GAP), tallest)


def _height(column: list[int], heights: list[int]) -> float:
    return float(sum(heights[p] for p in column) + ROW_GAP * max(0, len(column) - 1))


def _width(drawing: Drawing, column: list[int], places: list[_Place]) -> float:
    nodes = [drawing.nodes[n] for p in column if (n := places[p].node) is not None]
    widest = max((max(cells(n.key), cells(n.title)) for n in nodes), default=LEAST_CELLS)
    return min(max(widest, LEAST_CELLS), MOST_CELLS) * CELL + BOX_PADDING


def _ways(
    drawing: Drawing, boxes: dict[int, Box], places: list[_Place]
) -> list[list[tuple[float, float]]]:
    ways: list[list[tuple[float, float]]] = []
    lanes: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        if place.edge is not None:
            lanes.setdefault(place.edge, []).append(number)
    for index, edge in enumerate(drawing.edges):
        source, target = boxes[edge.source], boxes[edge.target]
        points = [(source.x + source.width, source.y + source.height / 2)]
        for lane in lanes.get(index, ()):
            box = boxes[lane]
            middle = box.y + box.height / 2
            points += [(box.x, middle), (box.x + box.width, middle)]
        ways.append([*points, (target.x, target.y + target.height / 2)])
    return ways
