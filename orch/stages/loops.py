"""The loops of a blueprint, and which of them a stage counts its visits in. Pure, iterative.

A stage with `max_visits` bounds the loop that it closes: the stages that it can reach and that lead
back to it, without those bounded stages that stand after it in the file. So the loops of two stages
lie one in the other, or apart: a repair that stands before another is the inner one, and begins to
count anew each time the outer one comes back to it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .model import ROUTES, Blueprint, Stage

Edges = Mapping[str, Sequence[str]]
"""From each stage to those that may come next."""


def routes_of(stage: Stage) -> tuple[str, ...]:
    """The routes that a stage can take: a reject is for those that review."""
    return ROUTES if stage.judges else ROUTES[:-1]


def edges_of(blueprint: Blueprint) -> dict[str, list[str]]:
    """From each stage to those that may follow it, over any route; targets that are no stages are
    left out."""
    known = {stage.id for stage in blueprint.stages}
    return {
        stage.id: list(
            dict.fromkeys(t for r in routes_of(stage) if (t := stage.target(r)) in known)
        )
        for stage in blueprint.stages
    }


def bounds(stage: Stage) -> bool:
    """Whether `max_visits` of this stage ends a loop: what costs nothing bounds none."""
    return stage.max_visits is not None and stage.type != "deterministic"


def loop_of(blueprint: Blueprint, stage_id: str) -> frozenset[str]:
    """The stages of the loop that a stage counts in, itself among them; itself alone where it is on
    no loop. For a stage that bounds nothing, the loop that it is in when all bounded stages that
    stand after it are left out."""
    order = {stage.id: number for number, stage in enumerate(blueprint.stages)}
    inner = {s.id for s in blueprint.stages if not bounds(s) or order[s.id] <= order[stage_id]}
    edges = edges_of(blueprint)
    ahead = _reached(edges, stage_id, inner)
    return frozenset(ahead & _reached(_turned(edges, inner), stage_id, inner) | {stage_id})


def counted(history: Sequence[str], stage_id: str, loop: Collection[str]) -> int:
    """How often a stage was entered since its loop was: `history` has the stage of every visit,
    oldest first, without those that count for nothing (a provider's trouble, say). Whatever stands
    between and is not of the loop begins anew: another stage, or a decision to continue."""
    number = 0
    for each in reversed(history):
        if each not in loop:
            break
        number += each == stage_id
    return number


def _turned(edges: Edges, nodes: Collection[str]) -> dict[str, list[str]]:
    turned: dict[str, list[str]] = {}
    for source in nodes:
        for target in edges.get(source, ()):
            turned.setdefault(target, []).append(source)
    return turned


def _reached(edges: Edges, start: str, among: Collection[str]) -> set[str]:
    """What can be reached from `start` by one step or more."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for each in edges.get(waiting.pop(), ()):
            if each in among and each not in found:
                found.add(each)
                waiting.append(each)
    return found


def reached(edges: Edges, start: str) -> set[str]:
    """`start`, and everything that can be reached from it."""
    return _reached(edges, start, edges.keys()) | {start}


def leading_to(edges: Edges, goals: Collection[str]) -> set[str]:
    """The goals, and everything that a way to one of them begins at."""
    turned = _turned(edges, edges)
    found, waiting = set(goals), list(goals)
    while waiting:
        for each in turned.get(waiting.pop(), ()):
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found


def components(among: Iterable[str], edges: Edges) -> list[list[str]]:
    """The strongly connected parts of a graph, each before all that it leads to (Kosaraju)."""
    nodes = dict.fromkeys(among)
    turned = _turned(edges, nodes)
    parts: list[list[str]] = []
    taken: set[str] = set()
    for start in reversed(_finished(nodes, edges)):
        if start in taken:
            continue
        part = [start]
        taken.add(start)
        for node in part:  # grows while it is walked
            for each in turned.get(node, ()):
                if each in nodes and each not in taken:
                    taken.add(each)
                    part.append(each)
        parts.append(part)
    return parts


def _finished(nodes: Collection[str], edges: Edges) -> list[str]:
    """The nodes in the order in which a walk in depth leaves them."""
    order: list[str] = []
    seen: set[str] = set()
    for start in nodes:
        if start in seen:
            continue
        seen.add(start)
        way: list[tuple[str, Iterator[str]]] = [(start, iter(edges.get(start, ())))]
        while way:
            here, following = way[-1]
            onward = next((n for n in following if n in nodes and n not in seen), None)
            if onward is None:
                order.append(here)
                way.pop()
            else:
                seen.add(onward)
                way.append((onward, iter(edges.get(onward, ()))))
    return order


def is_loop(part: Sequence[str], edges: Edges) -> bool:
    """Whether one can come back to a part of `components` without leaving it."""
    return len(part) > 1 or part[0] in edges.get(part[0], ())
