"""A blueprint as a picture: its stages, and where each leads; as text, for mermaid and for dot."""

from collections.abc import Iterator
from typing import NamedTuple

from inbox_orch.shared.shell.blocks import harmless

from ..stages.checking import most_visits
from ..stages.loops import routes_of
from ..stages.model import ENDS, Blueprint, Stage
from .notations import entities, quoted
from .text import Piece
from .widths import cells, fitted, padded

WIDTH = 80
_USUAL = ("on_success", "on_failure")
_COLOURS = {
    "deterministic": ("#d6e9ff", "#0969da"),
    "agent": ("#fff1c2", "#9a6700"),
    "council": ("#f3dcff", "#8250df"),
}
_ENDS = {
    "done": ("#d7f0dc", "#1a7f37"),
    "fail": ("#ffdcd9", "#cf222e"),
    "pause": ("#f3dcff", "#8250df"),
}


class Arrow(NamedTuple):
    """A way from a stage to another or to an end; `routes` are those that lead there, without
    `on_`."""

    source: str
    target: str
    routes: tuple[str, ...]

    @property
    def usual(self) -> bool:
        """Whether it is taken after a success."""
        return "success" in self.routes


def arrows_of(stage: Stage) -> list[Arrow]:
    """Where a stage leads: after success and failure always, by the other routes where it says
    so."""
    found: dict[str, list[str]] = {}
    for route in routes_of(stage):
        if route in _USUAL or getattr(stage, route) is not None:
            found.setdefault(stage.target(route), []).append(route.removeprefix("on_"))
    return [Arrow(stage.id, target, tuple(routes)) for target, routes in found.items()]


def words_of(stage: Stage) -> str:
    """What a stage is, in a few words."""
    parts = [stage.type if stage.type != "deterministic" else (stage.action or "run")]
    parts += [", ".join(stage.gates)] if stage.gates else []
    parts += ["reviews"] if stage.reviews else []
    if stage.max_visits is not None:
        parts.append(f"at most {stage.max_visits} visit{'s' * (stage.max_visits > 1)}")
    parts += [stage.role] if stage.role else []
    parts += [f"approval {stage.approval}"] if stage.approval != "none" else []
    return ", ".join(parts)


def bound_of(blueprint: Blueprint) -> str:
    """How many visits of agents there are at most, as a sentence."""
    most = most_visits(blueprint)
    return f"at most {most} visit{'' if most == 1 else 's'} of agents"


def heading_of(blueprint: Blueprint) -> str:
    """Id and title."""
    return f"{blueprint.id}: {blueprint.title}" if blueprint.title else blueprint.id


def text_lines(blueprint: Blueprint) -> Iterator[list[Piece]]:
    """The stages in their order, each with where it leads."""
    yield [(fitted(heading_of(blueprint), WIDTH), None)]
    room = max(cells(stage.id) for stage in blueprint.stages)
    for stage in blueprint.stages:
        about = fitted(words_of(stage), WIDTH - room - 4)
        yield [(f"  {padded(stage.id, room)}  {about}", None)]
        for arrow in arrows_of(stage):
            way = f"{'/'.join(arrow.routes)} -> {arrow.target}"
            yield [(" " * (room + 4) + fitted(way, WIDTH - room - 4), None)]
    yield [(bound_of(blueprint), None)]


def mermaid(blueprint: Blueprint) -> str:
    """A flowchart (mermaid.js.org/syntax/flowchart.html)."""
    return "\n".join(_mermaid(blueprint)) + "\n"


def _mermaid(blueprint: Blueprint) -> Iterator[str]:
    numbers = {stage.id: f"s{number}" for number, stage in enumerate(blueprint.stages)}
    numbers |= {end: f"end_{end}" for end in ENDS}
    yield f"%% {harmless(heading_of(blueprint)).replace('{', '(').replace('}', ')')}"
    yield "flowchart TD"
    for stage in blueprint.stages:
        label = f"<b>{entities(stage.id)}</b><br/>{entities(words_of(stage))}"
        yield f'  {numbers[stage.id]}["{label}"]:::{stage.type}'
    arrows = _arrows(blueprint)
    for end in _ends_in(arrows):
        yield f'  {numbers[end]}(["{end}"]):::{end}'
    for arrow in arrows:
        label = "/".join(arrow.routes)
        line = f'-- "{label}" -->' if arrow.usual else f'-. "{label}" .->'
        yield f"  {numbers[arrow.source]} {line} {numbers[arrow.target]}"
    for name, (fill, line) in _colours(blueprint, arrows).items():
        yield f"  classDef {name} fill:{fill},stroke:{line},color:#000"


def dot(blueprint: Blueprint) -> str:
    """A digraph (graphviz.org/doc/info/lang.html)."""
    return "\n".join(_dot(blueprint)) + "\n"


def _dot(blueprint: Blueprint) -> Iterator[str]:
    yield "digraph blueprint {"
    yield f"  label={quoted(heading_of(blueprint))};"
    yield '  node [shape=box, style="rounded,filled", fontname="monospace"];'
    for stage in blueprint.stages:
        fill, line = _COLOURS[stage.type]
        label = f"{quoted(stage.id)[:-1]}\\n{quoted(words_of(stage))[1:]}"
        yield f'  {quoted(stage.id)} [label={label}, fillcolor="{fill}", color="{line}"];'
    arrows = _arrows(blueprint)
    for end in _ends_in(arrows):
        fill, line = _ENDS[end]
        yield f'  "{end}" [shape=oval, fillcolor="{fill}", color="{line}"];'
    for arrow in arrows:
        style = "" if arrow.usual else ", style=dashed"
        label = "/".join(arrow.routes)
        yield f'  {quoted(arrow.source)} -> {quoted(arrow.target)} [label="{label}"{style}];'
    yield "}"


def _arrows(blueprint: Blueprint) -> list[Arrow]:
    return [arrow for stage in blueprint.stages for arrow in arrows_of(stage)]


def _ends_in(arrows: list[Arrow]) -> list[str]:
    reached = {arrow.target for arrow in arrows}
    return [end for end in ENDS if end in reached]


def _colours(blueprint: Blueprint, arrows: list[Arrow]) -> dict[str, tuple[str, str]]:
    types = dict.fromkeys(stage.type for stage in blueprint.stages)
    return {name: _COLOURS[name] for name in types} | {e: _ENDS[e] for e in _ends_in(arrows)}
