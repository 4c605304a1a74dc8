"""A graph as SVG (w3.org/TR/SVG2): one file, no script, nothing that is loaded from elsewhere."""

from collections.abc import Callable, Iterator

from inbox_orch.shared.shell.blocks import harmless

from ..patches.hiding import hidden
from .drawing import COLOURS, Drawing, Node, states_in
from .layout import BOX_PADDING, CELL, Box, laid_out
from .widths import cells, fitted

MARGIN = 24
HEADING = 36
LEGEND = 40
LEAST_WIDTH = 480
FONT = "ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"


def xml(text: str) -> str:
    """Harmless text as content or as the value of an attribute. What XML 1.0 has no place for
    becomes the replacement character."""
    shown = "".join(
        "\ufffd" if 0xD800 <= ord(c) < 0xE000 or c in "\ufffe\uffff" else c
        for c in harmless(hidden(text))
    )
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(character, entity)
    return shown


def opening(width: float, height: float, heading: str) -> Iterator[str]:
    """The beginning of a picture with a white ground and a heading."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONT}" font-size="12">'
    )
    room = int((width - 2 * MARGIN) / (14 * CELL / 12))
    yield f"<title>{xml(heading)}</title>"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>'
    yield (
        f'<text x="{MARGIN}" y="{MARGIN + 10}" font-size="14" font-weight="bold">'
        f"{xml(fitted(heading, room))}</text>"
    )


def legend(states: list[tuple[str, int]], y: float, width: float) -> Iterator[str]:
    """A patch and a word for each state, as far as there is room."""
    x = float(MARGIN)
    for state, number in states:
        text = f"{number} {state}"
        if x + 18 + cells(text) * CELL > width - MARGIN:
            break
        fill, line = COLOURS[state]
        yield (
            f'<rect class="legend" x="{x:.0f}" y="{y:.0f}" width="12" height="12" rx="3"'
            f' fill="{fill}" stroke="{line}"/>'
        )
        yield f'<text x="{x + 18:.0f}" y="{y + 10:.0f}" fill="#57606a">{xml(text)}</text>'
        x += 18 + cells(text) * CELL + 16


def graph_svg(drawing: Drawing, link: Callable[[str], str] | None = None) -> str:
    """The picture. `link` gives for the key of a task the address that its box leads to, of
    characters that need not be escaped."""
    return "\n".join(_graph(drawing, link)) + "\n"


def _graph(drawing: Drawing, link: Callable[[str], str] | None) -> Iterator[str]:
    layout = laid_out(drawing)
    width = max(layout.width + 2 * MARGIN, LEAST_WIDTH)
    height = layout.height + 2 * MARGIN + HEADING + LEGEND
    yield from opening(width, height, drawing.heading)
    yield (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>'
    )
    yield f'<g transform="translate({MARGIN} {MARGIN + HEADING})">'
    for edge, way in zip(drawing.edges, layout.ways, strict=True):
        dashed = "" if edge.condition == "success" else ' stroke-dasharray="5 3"'
        yield (
            f'<path class="edge" d="{_curve(way)}" fill="none" stroke="#57606a"'
            f' stroke-opacity="0.75" marker-end="url(#tip)"{dashed}>'
            f"<title>{xml(_said(drawing, edge.source, edge.target, edge.condition))}</title></path>"
        )
    for node, box in zip(drawing.nodes, layout.boxes, strict=True):
        drawn = "".join(_box(node, box))
        yield drawn if link is None else f'<a href="{link(node.key)}">{drawn}</a>'
    yield "</g>"
    yield from legend(states_in(drawing), height - MARGIN - 12, width)
    yield "</svg>"


def _said(drawing: Drawing, source: int, target: int, condition: str) -> str:
    keys = drawing.nodes[target].key, drawing.nodes[source].key
    return f"{keys[0]} waits for {keys[1]} ({condition})"


def _curve(way: list[tuple[float, float]]) -> str:
    """A smooth way: level at each point."""
    (x, y), *rest = way
    parts = [f"M{x:.1f} {y:.1f}"]
    for following_x, following_y in rest:
        middle = (x + following_x) / 2
        parts.append(
            f"C{middle:.1f} {y:.1f} {middle:.1f} {following_y:.1f}"
            f" {following_x:.1f} {following_y:.1f}"
        )
        x, y = following_x, following_y
    return "".join(parts)


def _box(node: Node, box: Box) -> Iterator[str]:
    fill, line = COLOURS[node.state]
    room = int((box.width - BOX_PADDING) / CELL + 0.01)  # a whole number but for rounding
    dashed = ' stroke-dasharray="4 3"' if node.state in ("unreachable", "skipped") else ""
    yield (
        f"<g><title>{xml(f'{node.key} ({node.state}): {node.title}')}</title>"
        f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}"'
        f' height="{box.height:.1f}" rx="6" fill="{fill}" stroke="{line}"{dashed}/>'
        f'<text x="{box.x + BOX_PADDING / 2:.1f}" y="{box.y + 17:.1f}" font-weight="bold">'
        f"{xml(fitted(node.key, room))}</text>"
        f'<text x="{box.x + BOX_PADDING / 2:.1f}" y="{box.y + 32:.1f}" fill="#57606a">'
        f"{xml(fitted(node.title, room))}</text></g>"
    )
