"""Whether a blueprint can be gone by: every fault at once, each with its stage and key. Pure.

What a document reads already keeps to most of this; a blueprint that was made otherwise is checked
by the same rules.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import check_name, quoted

from ..runs.limits import MAX_CLOCK_SECONDS, check_commands, check_title
from ..runs.names import check_task_key
from . import loops
from .model import (
    ACTIONS,
    APPROVALS,
    ENDS,
    FIRST_STAGE,
    ROUTES,
    SURROUNDINGS,
    TYPES,
    Blueprint,
    Stage,
)

TAKEN = (FIRST_STAGE, SURROUNDINGS, "decision", *ENDS)
"""What no stage can be called: stages that `orch` has by itself, and the ends."""
ON_DIVERGING = ("go_on", "pause")
VERSION = 1
MOST_STAGES = 10_000
MOST_VISITS = 1000
MAX_GOAL_BYTES = 64 * 1024
MAX_TEXT_BYTES = 4 * 1024 * 1024
"""Of the goals and commands of all stages together: a run keeps the whole of it."""
MOST_NAMES = 100
MOST_NAMED = 8
_OF_AGENTS = ("role", "toolset", "writes", "reviews", "hands_in")
_DEFAULTS = Stage("", "")


class Fault(NamedTuple):
    """One thing that is wrong: the id of the stage (None: it is about the whole), the key in it,
    what is wrong, what to write instead, which of the stages it is, from 0, and the name that is
    known to nobody, if that is what is wrong."""

    stage: str | None
    key: str | None
    text: str
    instead: str | None = None
    place: int | None = None
    unknown: str | None = None


def faults(blueprint: Blueprint, *, ways: bool = True) -> list[Fault]:
    """Everything that is wrong, in the order of the stages; empty for one that can be gone by.

    What is wrong with the ways from stage to stage is told once every stage can be told apart and
    every target is known, and not at all without `ways`.
    """
    found = list(_of_the_whole(blueprint))
    for place, stage in enumerate(blueprint.stages):
        found += [each._replace(stage=stage.id, place=place) for each in _of_a_stage(stage)]
    names = [*_of_names(blueprint), *_of_targets(blueprint)]
    found += names
    if ways and blueprint.stages and not names:
        found += _of_ways(blueprint)
    return sorted(found, key=lambda fault: -1 if fault.place is None else fault.place)


def _fault(key: str | None, text: str, instead: str | None = None) -> Fault:
    return Fault(None, key, text, instead)


def _named(check: Callable[[str], object], key: str, text: str) -> Iterator[Fault]:
    """A fault for what a check of names refuses."""
    try:
        check(text)
    except InboxOrchError as error:
        yield _fault(key, error.message, error.hint)


def _of_the_whole(blueprint: Blueprint) -> Iterator[Fault]:
    if blueprint.version != VERSION:
        text = f"version {blueprint.version} is not known here"
        yield _fault("version", text, f"write `version: {VERSION}`")
    yield from _named(check_blueprint_id, "id", blueprint.id)
    if blueprint.title:
        yield from _named(check_title, "title", blueprint.title)
    if not 0 < len(blueprint.stages) <= MOST_STAGES:
        yield _fault("stages", f"a blueprint has 1 to {MOST_STAGES} stages")
    if sum(map(_text_bytes, blueprint.stages)) > MAX_TEXT_BYTES:
        yield _fault("stages", f"all goals together have more than {MAX_TEXT_BYTES} bytes")
    if not 1 <= blueprint.max_total_visits <= MOST_VISITS:
        yield _fault("max_total_visits", f"must be 1 to {MOST_VISITS}")
    if blueprint.on_diverging not in ON_DIVERGING:
        yield _fault("on_diverging", "must be `go_on` or `pause`")


def _text_bytes(stage: Stage) -> int:
    return sum(len(text.encode("utf-8", "replace")) for text in (stage.goal, stage.run) if text)


def check_blueprint_id(name: str) -> str:
    """The id of a blueprint, which follows the rule for the keys of tasks; error `usage`."""
    return _checked(name, "a blueprint")


def check_stage_id(name: str) -> str:
    """The id of a stage, which follows the rule for the keys of tasks; error `usage`."""
    return _checked(name, "a stage")


def _checked(name: str, what: str) -> str:
    try:
        return check_task_key(name)
    except InboxOrchError as error:
        message = f"{quoted(name[:60])} cannot be the id of {what}"
        raise usage(message, hint=error.hint) from error


def _of_names(blueprint: Blueprint) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for place, stage in enumerate(blueprint.stages):
        about = Fault(stage.id, "id", "", place=place)
        for fault in _named(check_stage_id, "id", stage.id):
            yield about._replace(text=fault.text, instead=fault.instead)
        if stage.id in TAKEN:
            text = f"{quoted(stage.id)} is a name that orch uses itself"
            yield about._replace(text=text, instead="give the stage another id")
        if stage.id in first:
            text = f"{quoted(stage.id)} is the id of stage {first[stage.id] + 1}, too"
            yield about._replace(text=text, instead="give each stage an id of its own")
        first.setdefault(stage.id, place)


# -- One stage -----------------------------------------------------------------------------


def _of_a_stage(stage: Stage) -> Iterator[Fault]:
    if stage.type not in TYPES:
        yield _fault("type", f"must be one of {', '.join(TYPES)}, not {quoted(stage.type)}")
        return
    if stage.type == "deterministic":
        yield from _of_a_deterministic(stage)
    else:
        yield from _of_one_that_judges(stage)
    yield from _of_numbers(stage)
    yield from _of_lists(stage)
    if stage.approval not in APPROVALS:
        yield _fault("approval", f"must be one of {', '.join(APPROVALS)}")
    if stage.gates is not None and stage.action != "run_gates":
        yield _fault("gates", "only `action: run_gates` names its gates", "leave `gates` out")
    if stage.gates == ():
        yield _fault("gates", "is empty", "name a gate, or leave `gates` out to run all of them")


def _of_a_deterministic(stage: Stage) -> Iterator[Fault]:
    if stage.action is None and stage.run is None:
        yield _fault(None, "has neither `action` nor `run`", "write one of them")
    elif stage.action is not None and stage.run is not None:
        yield _fault("run", "has `action` as well as `run`", "keep one of them")
    if stage.action is not None and stage.action not in ACTIONS:
        known = ", ".join(ACTIONS)
        yield _fault("action", f"there is no action {quoted(stage.action)}", f"known are: {known}")
    if stage.run is not None:
        yield from _named(_check_run, "run", stage.run)
    yield from _not_for(stage, ("goal", *_OF_AGENTS), "an agent")
    yield from _no_reject(stage)


def _of_one_that_judges(stage: Stage) -> Iterator[Fault]:
    if stage.goal is None:
        yield _fault(None, "has no goal", "write `goal: …`: what is to be done")
    elif not stage.goal.strip() or "\0" in stage.goal:
        yield _fault("goal", "must be text, not blank, without NUL")
    elif len(stage.goal.encode("utf-8", "replace")) > MAX_GOAL_BYTES:
        yield _fault("goal", f"has more than {MAX_GOAL_BYTES} bytes", "name a file in it instead")
    yield from _not_for(stage, ("action", "run"), "deterministic work")
    if stage.type == "council":
        yield from _not_for(stage, _OF_AGENTS[1:], "an agent")
    elif stage.reviews and stage.writes:
        text = "a review does not change what it judges"
        yield _fault("reviews", text, "write `writes: false` beside it")
    if stage.hands_in not in (None, "text"):
        yield _fault("hands_in", f"must be text, not {quoted(stage.hands_in)}")
    elif stage.hands_in is not None and not stage.writes:
        yield _fault("hands_in", "nothing is handed in where nothing is written", "leave it out")
    yield from _no_reject(stage)


def _check_run(line: str) -> None:
    check_commands([line], "command", "stage")


def _of_lists(stage: Stage) -> Iterator[Fault]:
    """What names something has a name, and each once."""
    for key in ("role", "toolset"):
        name = getattr(stage, key)
        if name is not None:
            yield from _named(partial(check_name, what=key), key, name)
    for key in ("inputs", "outputs", "gates"):
        names = getattr(stage, key) or ()
        if len(names) > MOST_NAMES:
            yield _fault(key, f"has more than {MOST_NAMES} names")
            continue
        for name, times in Counter(names).items():
            yield from _named(partial(check_name, what="the name"), key, name)
            if times > 1:
                yield _fault(key, f"names {quoted(name)} twice", "keep one")


def _not_for(stage: Stage, keys: tuple[str, ...], whose: str) -> Iterator[Fault]:
    """A fault for each key that is for stages of another type."""
    for key in keys:
        if getattr(stage, key) != getattr(_DEFAULTS, key):
            yield _fault(key, f"is for {whose}, and this stage is {stage.type}", "leave it out")


def _no_reject(stage: Stage) -> Iterator[Fault]:
    if stage.on_reject is not None and not stage.judges:
        yield _fault("on_reject", "only a review rejects", "leave it out, or write `reviews: true`")


def _of_numbers(stage: Stage) -> Iterator[Fault]:
    if stage.max_visits is not None and not 1 <= stage.max_visits <= MOST_VISITS:
        yield _fault("max_visits", f"must be 1 to {MOST_VISITS}")
    seconds = stage.timeout_seconds
    if seconds is not None and not (math.isfinite(seconds) and 0 < seconds <= MAX_CLOCK_SECONDS):
        yield _fault("timeout_seconds", f"must be more than 0, and at most {MAX_CLOCK_SECONDS:.0f}")


# -- The ways from stage to stage ----------------------------------------------------------


def _of_targets(blueprint: Blueprint) -> Iterator[Fault]:
    known = {stage.id for stage in blueprint.stages}
    for place, stage in enumerate(blueprint.stages):
        for route in ROUTES:
            target = getattr(stage, route)
            if target is not None and target not in known and target not in ENDS:
                text = f"there is no stage {quoted(target)}"
                ends = ", ".join(f"`{end}`" for end in ENDS)
                yield Fault(stage.id, route, text, f"name a stage, or {ends}", place, target)


def _of_ways(blueprint: Blueprint) -> Iterator[Fault]:
    places = {stage.id: place for place, stage in enumerate(blueprint.stages)}
    edges = loops.edges_of(blueprint)
    among = loops.reached(edges, blueprint.first)
    for name in places.keys() - among:
        text = "no stage leads to it"
        yield Fault(name, None, text, "name it in a route, or leave it out", places[name])
    ending = loops.leading_to(edges, {s.id for s in blueprint.stages if _can_end(s)})
    for name in among - ending:
        text = "no way leads from it to `done`"
        yield Fault(name, "on_success", text, "let a route of it lead on", places[name])
    unbounded = [s.id for s in blueprint.stages if s.id in among and not loops.bounds(s)]
    for part in loops.components(unbounded, edges):
        if loops.is_loop(part, edges):
            yield _endless(_around(part, edges), blueprint, places)


def _can_end(stage: Stage) -> bool:
    """Whether it leads to `done`, or where it succeeds to somebody who can accept."""
    ends = any(stage.target(route) == "done" for route in loops.routes_of(stage))
    return ends or stage.target("on_success") == "pause"


def _around(part: list[str], edges: loops.Edges) -> list[str]:
    """A way through a loop, its first stage once more at the end."""
    inside = set(part)
    way = {part[0]: None}
    here = part[0]
    while (here := next(n for n in edges[here] if n in inside)) not in way:
        way[here] = None
    stages = list(way)
    return [*stages[stages.index(here) :], here]


def _endless(way: list[str], blueprint: Blueprint, places: dict[str, int]) -> Fault:
    shown = way if len(way) <= MOST_NAMED + 1 else [*way[:MOST_NAMED], "…", way[-1]]
    agents = [n for n in way[:-1] if blueprint.stages[places[n]].type != "deterministic"]
    text = f"{' -> '.join(shown)} can go on for ever"
    if agents:
        instead = f"write `max_visits: 2`, say, to {quoted(agents[-1])}"
        return Fault(agents[-1], None, text, instead, places[agents[-1]])
    instead = "let it go through a stage of an agent that has `max_visits`"
    return Fault(way[0], None, f"{text}, with no agent in it", instead, places[way[0]])


# -- The bound --------------------------------------------------------------------------


def most_visits(blueprint: Blueprint) -> int:
    """How many visits of agents and councils an attempt has at most, as long as nobody answers
    `continue`: `max_total_visits`, or less where the stages cannot be entered so often.

    A stage on no loop is entered once. A loop that is bounded by n visits of its stage is gone
    through n + 1 times at most (before the first of them, and after each); loops inside of it begin
    anew each time.
    """
    most = blueprint.max_total_visits
    edges = loops.edges_of(blueprint)
    among = loops.reached(edges, blueprint.first)
    # A loop in a loop doubles what is gone through, so that few levels reach the bound in all.
    return _weight([s for s in blueprint.stages if s.id in among], edges, most, most.bit_length())


def _weight(stages: Sequence[Stage], edges: loops.Edges, most: int, levels: int) -> int:
    """The most visits on one way through these stages, or `most`."""
    by_id = {stage.id: stage for stage in stages}
    order = {stage_id: number for number, stage_id in enumerate(by_id)}
    heaviest: dict[str, int] = {}
    found = 0
    for part in reversed(loops.components(by_id, edges)):
        onward = (heaviest[n] for node in part for n in edges[node] if n in heaviest)
        in_order = [by_id[node] for node in sorted(part, key=order.__getitem__)]
        weight = _weight_of_part(in_order, edges, most, levels)
        total = min(most, weight + max(onward, default=0))
        heaviest |= dict.fromkeys(part, total)
        found = max(found, total)
    return found


def _weight_of_part(part: Sequence[Stage], edges: loops.Edges, most: int, levels: int) -> int:
    if not loops.is_loop([stage.id for stage in part], edges):
        return int(part[0].type != "deterministic")
    closing = next((stage for stage in reversed(part) if loops.bounds(stage)), None)
    if closing is None or closing.max_visits is None or levels == 0:
        return most
    inner = [stage for stage in part if stage is not closing]
    once = _weight(inner, edges, most, levels - 1)
    total: int = closing.max_visits + (closing.max_visits + 1) * once
    return min(most, total)
