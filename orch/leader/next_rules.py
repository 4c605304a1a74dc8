"""What to do next: of how a run stands, the one line that leads on.

A rule over values, which looks at nothing. No command has such a text of its own.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

_SAME_CALL = "the same `orch do` call again"


class Facts(NamedTuple):
    """A run after a call that went well.

    `name` is how a call has to name it, None where the default leads to it. `state` is that of the
    run; `asking`, `deciding`, `conflicting`, `failed` are keys of tasks, those with an open
    question, those whose blueprints ask for a decision, those whose base does not merge, those that
    failed or can never start. `offered` are the mailboxes
    with attempts that nobody has taken; `ready` and `moving` count tasks. `unmerged`: accepted work
    has not been integrated; `worktrees`: those of ended attempts are there still. `just` is what
    the call itself has done, where the rest does not tell: `brought_in` (merged accepted work, and
    moved no branch of the caller's), `brought_onto` (a branch), `cleaned` (taken away what
    worktrees it may). `by_do`: `orch do` has opened it, whose next call has the workers, too.
    """

    name: str | None
    state: str
    council: bool = False
    tasks: int = 0
    asking: tuple[str, ...] = ()
    conflicting: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    ready: int = 0
    moving: int = 0
    unmerged: bool = False
    worktrees: bool = False
    just: str | None = None
    deciding: tuple[str, ...] = ()
    by_do: bool = False


def next_line(facts: Facts) -> str:
    """What to do next, as one line without its end: first what waits for somebody, then what can
    go on, then what is left to be done at the end."""
    rules = _OF_A_COUNCIL if facts.council and facts.state != "closed" else _OF_A_RUN
    for holds, line in rules:
        if holds(facts):
            return line(facts)
    raise AssertionError("the last rule always holds")


def _orch(facts: Facts, words: str) -> str:
    """A call of `orch` about this run; `{run}` is where its name belongs, if it needs one."""
    option = "--council" if words.startswith("council") else "--run"
    named = "" if facts.name is None else f" {option} {facts.name}"
    return f"`orch {words.replace('{run}', named)}`"


def _asked(facts: Facts) -> str:
    first = facts.asking[0]
    shows, answers = (
        _orch(facts, "blocked{run}"),
        _orch(facts, f"answer{{run}} {first} --body TEXT"),
    )
    return f"{_listed(facts.asking)} asks: {shows} shows what, {answers} answers"


def _deciding(facts: Facts) -> str:
    first = facts.deciding[0]
    shows, decides = (
        _orch(facts, "blocked{run}"),
        _orch(facts, f"answer{{run}} {first} --decide ANSWER"),
    )
    return f"{_listed(facts.deciding)} needs a decision: {shows} shows why, {decides} decides"


def _conflicting(facts: Facts) -> str:
    call = _orch(facts, f"dispatch{{run}} {facts.conflicting[0]} --base COMMIT")
    return f"what {_listed(facts.conflicting)} builds on does not merge: merge by hand, then {call}"


def _failed(facts: Facts) -> str:
    shows, again = _orch(facts, "status{run}"), _orch(facts, f"retry{{run}} {facts.failed[0]}")
    if facts.by_do:
        again = _SAME_CALL
    return f"{shows} shows why {_listed(facts.failed)} did not succeed, {again} tries again"


def _empty(facts: Facts) -> str:
    one = _orch(facts, "task add{run} --task KEY --title TEXT")
    return f"{one} adds a task, {_orch(facts, 'plan import{run} FILE')} a whole plan"


def _ready(facts: Facts) -> str:
    opens = _orch(facts, "dispatch{run}")
    return f"{opens} opens the attempts, {_orch(facts, 'drive{run} --worker CMD')} does it all"


def _offered(facts: Facts) -> str:
    starts = f"{_worker(facts.offered)} starts a worker"
    return f"{starts}, {_orch(facts, 'drive{run} --worker CMD')} does it all"


def _seats(facts: Facts) -> str:
    return f"{_worker(facts.offered)} starts a reviewer, {_orch(facts, 'council wait{run}')} waits"


def _worker(mailboxes: Sequence[str]) -> str:
    return f"`inbox work --agent NAME --mailbox {mailboxes[0]} -- CMD`"


def _merge(facts: Facts) -> str:
    if facts.by_do and facts.state != "closed":
        return f"{_SAME_CALL} brings what was accepted onto its branch"
    call = _orch(facts, "integrate{run} --onto BRANCH")
    return f"{call} brings what was accepted onto a branch"


def _says(words: str, means: str) -> Callable[[Facts], str]:
    return lambda facts: f"{_orch(facts, words)} {means}"


def _goes_on(facts: Facts) -> str:
    return f"{_SAME_CALL} goes on to the end"


_Rule = tuple[Callable[[Facts], object], Callable[[Facts], str]]

_OF_A_RUN: tuple[_Rule, ...] = (
    (
        lambda f: f.state == "cancelling",
        _says("wait{run} --until run", "waits until the last worker has learned of it"),
    ),
    (lambda f: f.state != "closed" and f.asking, _asked),
    (lambda f: f.state != "closed" and f.deciding, _deciding),
    (lambda f: f.state != "closed" and not f.tasks, _empty),
    (
        lambda f: f.state == "paused",
        _says("run resume{run}", "goes on: nothing is dispatched until then"),
    ),
    (
        lambda f: f.by_do and f.state != "closed" and (f.offered or f.ready or f.moving),
        _goes_on,
    ),
    (lambda f: f.state != "closed" and f.offered, _offered),
    (lambda f: f.state != "closed" and f.ready, _ready),
    (
        lambda f: f.state != "closed" and f.moving,
        _says("drive{run}", "goes on to the end"),
    ),
    (lambda f: f.state != "closed" and f.conflicting, _conflicting),
    (lambda f: f.state != "closed" and f.failed, _failed),
    (lambda f: f.just == "brought_in", _merge),
    (lambda f: f.unmerged and f.just != "brought_onto", _merge),
    (lambda f: f.state != "closed", _says("run close{run}", "closes the run")),
    (
        lambda f: f.worktrees and f.just != "cleaned",
        _says("cleanup{run}", "takes the worktrees away; nothing is lost with them"),
    ),
    (lambda f: True, _says("report{run}", "tells what became of it")),
)
_OF_A_COUNCIL: tuple[_Rule, ...] = (
    (lambda f: f.offered, _seats),
    (lambda f: f.moving or f.ready, _says("council wait{run}", "waits for the reviewers")),
    (lambda f: True, _says("council report{run}", "tells what they say")),
)


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return keys[0] + more
