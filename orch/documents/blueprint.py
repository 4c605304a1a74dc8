"""Blueprints as documents: read with every problem told by its line.

Shapes and types are judged here; what a blueprint may say, `stages.checking` judges, of the stages
whose shape is right.
"""

import os
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import quoted
from inbox_orch.shared.shell.inputs import decode_body, read_input

from ..stages.checking import MAX_GOAL_BYTES, MAX_TEXT_BYTES, MOST_NAMES, MOST_STAGES, Fault, faults
from ..stages.model import ENDS, MAX_TOTAL_VISITS, ROUTES, Blueprint, Stage
from .parts import Part, Seconds, keys_of
from .policy import PolicyPart
from .problems import Problem, near, problems_of
from .reading import Source, read_document

MAX_BLUEPRINT_BYTES = 4 * 1024 * 1024
_MOST_COMPARED = 200
"""Of more stages the nearest name is not looked for."""
_TYPES = {"agentic": "agent"}
_TARGETS = {"paused": "pause"}


def _renamed(names: dict[str, str]) -> BeforeValidator:
    """Another word for a value is read as the value itself."""
    return BeforeValidator(lambda given: names.get(given, given) if type(given) is str else given)


Type = Annotated[str, _renamed(_TYPES)]
Target = Annotated[str, _renamed(_TARGETS)]
Names = Annotated[list[str], Field(max_length=MOST_NAMES)]


class StagePart(Part):
    """One entry of `stages`."""

    id: str
    type: Type
    action: str | None = None
    run: str | None = None
    goal: str | None = None
    goal_file: str | None = None
    role: str | None = None
    toolset: str | None = None
    writes: bool = True
    reviews: bool = False
    hands_in: str | None = None
    inputs: Names = Field([])
    outputs: Names = Field([])
    gates: Names | None = None
    max_visits: int | None = None
    timeout_seconds: Seconds | None = None
    approval: str = "none"
    on_success: Target | None = None
    on_failure: Target | None = None
    on_error: Target | None = None
    on_skip: Target | None = None
    on_reject: Target | None = None
    policy: PolicyPart | None = None

    def value(self, goal: str | None) -> Stage:
        """The stage as a frozen value; `goal` is what its file says, or its own."""
        given = self.model_dump(exclude={"goal", "goal_file", "policy"})
        lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
        policy = None if self.policy is None else self.policy.value()
        return Stage(**{**given, **lists, "goal": goal, "policy": policy})


class BlueprintPart(Part):
    """A blueprint but for its stages, which are read one by one."""

    version: int
    id: str
    title: str = ""
    max_total_visits: int = MAX_TOTAL_VISITS
    on_diverging: str = "go_on"
    stages: list[Any]


class _Read(NamedTuple):
    """What could be read; stages of a wrong shape only have their id, and are in `wrong`."""

    blueprint: Blueprint
    wrong: frozenset[int]
    problems: list[Problem]


def read_blueprint(path: str, taken: Sequence[str] = ()) -> Blueprint:
    """The blueprint in a file of YAML or JSON (`-`: standard input), without faults. `taken` are
    ids that it may not have.

    Goals in files of their own (`goal_file`) are named from the folder of the blueprint, and lie
    in its repository or, outside of one, in its folder. Error `usage` that lists every problem by
    its line.
    """
    source = read_document(path, MAX_BLUEPRINT_BYTES)
    folder = os.getcwd() if path == "-" else os.path.dirname(os.path.abspath(path))
    read = _read(source, _Goals(folder))
    problems = [*read.problems, *_faulty(read, source.value)]
    if read.blueprint.id in taken:
        message = f"{quoted(read.blueprint.id)} is the id of a blueprint that comes with orch"
        problems.append(Problem(("id",), message, "give this one another id"))
    if problems:
        raise source.refusal(problems)
    return read.blueprint


def _read(source: Source, goals: "_Goals") -> _Read:
    given = source.value if isinstance(source.value, dict) else {}
    problems: list[Problem] = []
    whole: dict[str, Any] = {}
    try:
        whole = BlueprintPart.model_validate(source.value).model_dump(exclude={"stages"})
    except ValidationError as error:
        problems += problems_of(error, keys_of(BlueprintPart))
        wrong_keys = {problem.path[0] for problem in problems if problem.path}
        whole = {
            key: given[key]
            for key in BlueprintPart.model_fields
            if key not in wrong_keys and key != "stages" and given.get(key) is not None
        }
    stages, wrong = [], set()
    listed = given.get("stages")
    for place, each in enumerate(listed[: MOST_STAGES + 1] if isinstance(listed, list) else []):
        stage, found = _stage(each, goals)
        problems += [problem._replace(path=("stages", place, *problem.path)) for problem in found]
        stages.append(stage)
        if found:
            wrong.add(place)
    blueprint = Blueprint(**{"id": "", **whole, "stages": tuple(stages)})
    return _Read(blueprint, frozenset(wrong), problems)


def _stage(given: Any, goals: "_Goals") -> tuple[Stage, list[Problem]]:
    """A stage, and what is wrong with its shape; with its id alone where anything is."""
    try:
        part = StagePart.model_validate(given)
        return part.value(goals.of(part)), []
    except ValidationError as error:
        problems = problems_of(error, keys_of(StagePart))
    except InboxOrchError as error:
        problems = [Problem(("goal_file",), error.message, error.hint)]
    name = given.get("id") if isinstance(given, dict) else None
    return Stage(name if isinstance(name, str) else "", ""), problems


def _faulty(read: _Read, given: Any) -> list[Problem]:
    """The faults of what could be read. What is wrong in its shape is told already; the ways from
    stage to stage are judged only where each can be read."""
    told = {problem.path[0] for problem in read.problems if len(problem.path) == 1}
    unread = bool(told & {"stages"}) or not isinstance(given, dict)
    found = faults(read.blueprint, ways=not (read.wrong or unread))
    names = [stage.id for stage in read.blueprint.stages]
    return [
        _problem(fault, names)
        for fault in found
        if fault.place not in read.wrong
        and not (fault.place is None and (unread or told & {fault.key}))
    ]


def _problem(fault: Fault, names: list[str]) -> Problem:
    key = () if fault.key is None else (fault.key,)
    path = key if fault.place is None else ("stages", fault.place, *key)
    instead = fault.instead
    if fault.key in ROUTES and fault.unknown is not None and len(names) <= _MOST_COMPARED:
        instead = near(fault.unknown, [*names, *ENDS]) or instead
    return Problem(path, fault.text, instead)


# -- Goals in files of their own -----------------------------------------------------------


class _Goals:
    """Reads goals from files below one folder, each file once, and not more than all may have."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._found: dict[str, str] = {}
        self._left = MAX_TEXT_BYTES

    def of(self, part: StagePart) -> str | None:
        """The goal of a stage, from its file if it names one; error `usage`."""
        if part.goal_file is None:
            return part.goal
        if part.goal is not None:
            raise usage("stands beside `goal`", hint="keep one of them")
        try:
            return self._read(self._place(part.goal_file))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "that is no path"
            raise usage(f"cannot read {quoted(part.goal_file)}: {reason}") from error

    def _place(self, name: str) -> str:
        root = os.path.realpath(top_of(self._folder))
        path = os.path.realpath(os.path.join(self._folder, name))
        inside = os.path.relpath(path, root).split(os.sep)
        if os.path.isabs(name) or inside[0].lower() in ("", ".", "..", ".git"):
            raise usage(
                f"{quoted(name)} leads out of {quoted(root, 200)}",
                hint="name a file of the repository, from the folder of the blueprint on",
            )
        os.stat(path)  # says why it cannot be read
        if not os.path.isfile(path):
            raise usage(f"{quoted(name)} is no file")
        return path

    def _read(self, path: str) -> str:
        if path not in self._found:
            content = read_input(path, MAX_GOAL_BYTES)
            if len(content) > MAX_GOAL_BYTES:
                raise usage(f"the file has more than {MAX_GOAL_BYTES} bytes", hint="shorten it")
            self._found[path] = decode_body(content, MAX_GOAL_BYTES)
        self._left -= len(self._found[path])
        if self._left < 0:
            raise usage(f"all goals together have more than {MAX_TEXT_BYTES} bytes")
        return self._found[path]


def top_of(folder: str) -> str:
    """The top of the working tree that a folder lies in; the folder itself outside of one."""
    here = os.path.abspath(folder)
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return folder
        here = above
    return here
