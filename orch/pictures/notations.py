"""A graph in the languages of other programs: mermaid and dot."""

from collections.abc import Iterator

from inbox_orch.shared.shell.blocks import harmless

from .drawing import COLOURS, Drawing, states_in

_PLAIN = frozenset(" ,.-_/()")


def mermaid(drawing: Drawing) -> str:
    """A flowchart (mermaid.js.org/syntax/flowchart.html). Ids are numbers, since words such as
    `end` would be taken for its own."""
    return "\n".join(_mermaid(drawing)) + "\n"


def _mermaid(drawing: Drawing) -> Iterator[str]:
    yield f"%% {harmless(drawing.heading).replace('{', '(').replace('}', ')')}"
    yield "flowchart LR"
    for node in drawing.nodes:
        label = f"<b>{entities(node.key)}</b><br/>{entities(node.title)}"
        yield f'  t{node.number}["{label}"]:::{node.state}'
    for edge in drawing.edges:
        arrow = "-->" if edge.condition == "success" else f"-. {edge.condition} .->"
        yield f"  t{edge.source} {arrow} t{edge.target}"
    for state, _ in states_in(drawing):
        fill, line = COLOURS[state]
        yield f"  classDef {state} fill:{fill},stroke:{line},color:#000"


def entities(text: str) -> str:
    """Only what can mean nothing to mermaid or HTML stays as it is."""
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" for c in harmless(text))


def dot(drawing: Drawing) -> str:
    """A digraph (graphviz.org/doc/info/lang.html)."""
    return "\n".join(_dot(drawing)) + "\n"


def _dot(drawing: Drawing) -> Iterator[str]:
    yield "digraph run {"
    yield f"  label={quoted(drawing.heading)};"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style="rounded,filled", fontname="monospace"];'
    for node in drawing.nodes:
        fill, line = COLOURS[node.state]
        label = f"{quoted(node.key)[:-1]}\\n{quoted(node.title)[1:]}"
        tooltip = quoted(node.state)
        yield (
            f"  {quoted(node.key)} [label={label}, tooltip={tooltip},"
            f' fillcolor="{fill}", color="{line}"];'
        )
    for edge in drawing.edges:
        source, target = drawing.nodes[edge.source].key, drawing.nodes[edge.target].key
        style = "" if edge.condition == "success" else f' [label="{edge.condition}", style=dashed]'
        yield f"  {quoted(source)} -> {quoted(target)}{style};"
    yield "}"


def quoted(text: str) -> str:
    """A string of dot. `&` would begin an entity."""
    safe = harmless(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{safe}"'
