"""Running the gates or the action of a stage: one visit, which belongs to one process at a time.

That is written down, and taken over when the process is gone: what it had judged stays, and how
often it was begun is counted, so that what ends its leader each time does not go round for ever.
"""

import contextlib
import json
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.store.engine import Transaction

from ..attempts import keep, moving, patches
from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.visits import Visit
from ..gates import proving, result_rows, surroundings_rows
from ..gates.definitions import Gate
from ..gates.grounds import ground_digest, tool_version
from ..gates.judging import Base
from ..gates.orphans import facts_of
from ..gates.results import GateResult
from ..gates.spec import NotStarted
from ..gates.trying import Ground, trying
from ..git.repository import is_there
from ..git.snapshots import Unfit
from ..journal import rows as journal_rows
from ..runs.desk import Desk
from . import actions, canaries, enter, grounds, judging, leavings
from . import settle as settling
from .course import Course, read, results_of
from .grounds import Chosen
from .leavings import Left
from .machine import CHECKS
from .model import SURROUNDINGS, Stage
from .settle import Outcome

if TYPE_CHECKING:
    from ..gates.running import Mandate, Runner

MOST_TRIES = 2
"""So often a leader may begin a gate and be gone before it has ended; then it counts as one that
cannot be judged."""
_GONE = "its worktree has gone away"


class _Tries:
    """How often leaders have begun the gate that comes next, and were gone before it ended."""

    def __init__(self, gone: int) -> None:
        self.gone = gone

    @property
    def used_up(self) -> bool:
        return self.gone >= MOST_TRIES


def is_next(course: Course) -> bool:
    """Whether what comes next is to be run by a leader."""
    if course.live is not None:
        return course.live.kind in ("gates", "action")
    return course.step().do in ("gates", "action")


def begin(desk: Desk, seen: Course) -> Course | None:
    """Begin the visit, or go on with one that another leader has begun; None when one was
    quicker."""
    if not is_there(str(seen.attempt.worktree_path)):
        return None  # `obstacle` tells of it
    with desk.database.transaction() as tx:
        course = read(tx, seen.run, seen.attempt.id)
        unmoved = course.attempt.state == seen.attempt.state
        if not unmoved or len(course.visits) != len(seen.visits) or not is_next(course):
            return None
        if keep.is_open(tx, course.attempt):
            return None
        stage = _enter(desk, tx, course)
        move = moving.Move("verifying", f"stage {stage}", {"stage": stage})
        moving.move_attempt(desk, tx, course.run, course.attempt, move)
        keep.open_verification(desk, tx, course.attempt, {"stage": stage})
        return read(tx, seen.run, seen.attempt.id)


def _enter(desk: Desk, tx: Transaction, course: Course) -> str:
    live = course.live
    if live is not None:
        return live.stage
    step = course.step()
    values = {"tree_before": course.last_tree, "tree_after": course.last_tree}
    number = enter.insert(tx, course, str(step.stage), step.do, values)
    enter.record(desk, tx, course, number, {"stage": step.stage})
    return str(step.stage)


def carry_on(
    desk: Desk, course: Course, starts_before_ms: float | None
) -> Generator[None, None, bool]:
    """Run it to its end, with turns for the caller, and end the visit; whatever goes wrong, the
    attempt is put back, and what was judged stays. Raises `Signalled`. Errors: those of git, of
    starting a command, and of every write."""
    from ..gates.running import Withdrawn

    visit = course.live
    assert visit is not None
    try:
        with _put_back_unless_done(desk, course):
            try:
                judged = yield from _judged(desk, course, visit, starts_before_ms)
                judged = judged and leavings.weighed(desk, course, visit, judged)
            except (Unfit, InboxOrchError) as error:
                judged = Left(_unreadable(course, error), {})
            if judged is not None:
                return _conclude(desk, course, visit, judged)
            keep.put_back(desk, course.run, course.attempt, "the wait is over")
    except Withdrawn as withdrawn:
        keep.put_back(desk, course.run, course.attempt, str(withdrawn))
    return False


def _unreadable(course: Course, error: Unfit | InboxOrchError) -> Outcome:
    from ..gates.running import Withdrawn

    if not is_there(str(course.attempt.worktree_path)):
        raise Withdrawn(_GONE) from error
    return settling.unreadable(course, error)


def _judged(
    desk: Desk, course: Course, visit: Visit, starts_before_ms: float | None
) -> Generator[None, None, Left | None]:
    if visit.kind == "action":
        return Left(*actions.carried_out(desk, course, visit))
    return (yield from _run(desk, course, visit, starts_before_ms))


@contextlib.contextmanager
def _put_back_unless_done(desk: Desk, course: Course) -> Iterator[None]:
    from ..gates.running import Interrupted, Withdrawn

    put_back = partial(keep.put_back, desk, course.run, course.attempt)
    visit = course.live
    assert visit is not None
    try:
        yield
    except Withdrawn:
        raise
    except Interrupted as interrupted:
        # A wait goes on after `busy`, but not after this.
        with contextlib.suppress(InboxOrchError):
            put_back("it was interrupted")
        raise Signalled(interrupted.number) from None
    except GeneratorExit:
        _note_tries(desk, course, visit, visit.tries)
        put_back("it was left")
        raise
    except BaseException as error:
        with contextlib.suppress(InboxOrchError):
            _note_tries(desk, course, visit, visit.tries)
        with contextlib.suppress(InboxOrchError):
            put_back(f"it failed: {error}"[:300])
        raise
    finally:
        keep.AT_WORK.discard(course.attempt.id)


def _conclude(desk: Desk, course: Course, visit: Visit, judged: Left) -> bool:
    with desk.database.transaction() as tx:
        if not keep.close_verification(desk, tx, course.attempt, "done"):
            return False
        present = attempts.get(tx, course.attempt.id)
        assert present is not None
        if present.state == "verifying":
            before = "provisioned" if present.thread_id is None else "submitted"
            move = moving.Move(before, f"stage {visit.stage} is over")
            moving.move_attempt(desk, tx, course.run, present, move)
        if not settling.end(desk, tx, course, visit, judged.outcome, judged.columns):
            return False
        if judged.judged is not None:
            judging.record(desk, tx, course, judged.judged)
        if visit.kind == "gates" and judged.outcome.state == "failed" and course.run.patches:
            patches.checked(desk, tx, course.run, course.attempt, passed=False)
        return True


# -- gates -------------------------------------------------------------------------------


def _run(
    desk: Desk, course: Course, visit: Visit, starts_before_ms: float | None
) -> Generator[None, None, Left | None]:
    from ..gates.running import Mandate, Runner

    tries = _Tries(visit.tries)
    mandate = Mandate(
        begins=lambda group: _note_group(desk, course, visit, tries, group),
        wanted=lambda: is_wanted(desk, course),
        over=lambda: _time_is_over(desk, starts_before_ms),
    )
    with Runner(desk.database.notice, mandate, artifacts=desk.bus.artifacts) as runner:
        try:
            if visit.stage == SURROUNDINGS:
                ground = grounds.ground_of(desk, course, runner, ())
                return (yield from _prove(desk, course, visit, ground, tries))
            return (yield from _judge(desk, course, visit, (runner, mandate), tries))
        except NotStarted as failed:
            raise _not_started(failed) from failed.__cause__


def _not_started(failed: NotStarted) -> Exception:
    from ..gates.running import Withdrawn

    if failed.gone:
        return Withdrawn(_GONE)
    return failed.as_error("the attempt stays as it is; try again once that is put right")


def _judge(
    desk: Desk, course: Course, visit: Visit, where: "tuple[Runner, Mandate]", tries: _Tries
) -> Generator[None, None, Left | None]:
    """Every gate of a stage, in order."""
    runner, mandate = where
    stage = course.stage_of(visit) or Stage(CHECKS, "deterministic", action="run_gates")
    with desk.database.snapshot() as snapshot:
        wanted = grounds.chosen(snapshot, course, stage)
    results, tree = results_of(visit), str(visit.found.get("tree", course.last_tree))
    ground = grounds.ground_of(desk, course, runner, [each.gate for each in wanted])
    for number, each in enumerate(wanted[len(results) :]):
        if number and mandate.over():
            return None
        if tries.used_up:
            results.append(_gone_each_time(each.gate, tries.gone))
        else:
            results.append((yield from _one(desk, course, each, (ground, tree))))
        if results[-1].wrote and each.gate.writes == "keep":
            tree = ground.tree_now()  # what comes after it judges what it has written
        _note(desk, course, visit, _stored(course, stage, results, tree))
        tries.gone = 0
    leavings.head_as_before(desk, course, tree)
    columns = {"result": _stored(course, stage, results, tree)}
    if tree != course.last_tree:
        columns |= leavings.kept(desk, course, stage)
    return Left(_outcome(results), columns)


def _one(
    desk: Desk, course: Course, each: Chosen, where: tuple[Ground, str]
) -> Generator[None, None, GateResult]:
    gate, (ground, tree) = each.gate, where
    if each.objection is not None:
        state = "error" if each.named else "skipped"
        return GateResult(gate.name, state, each.objection, mode=gate.mode)
    start = attempts.details_of(course.attempt).start
    assert start is not None
    is_check = gate.name.startswith("check-") and gate.strict
    with desk.database.snapshot() as snapshot:
        known = surroundings_rows.get(snapshot, course.run.id, start.base_tree)
        proof = None if known is None else known.proof(gate)
        base: Base | None = None if is_check or proof is None else proving.base_by(proof)
        digest = _digest(gate, ground, known, None if base is None else start.base_tree)
        before = result_rows.get(snapshot, course.run.id, tree, gate.name, digest)
    if before is not None:
        return before
    result = yield from trying(ground, gate, tree, base)
    if not result.wrote or gate.writes != "keep":
        with desk.database.transaction() as tx:
            result_rows.put(tx, course.run.id, tree, digest, result)
    return result


def _digest(
    gate: Gate, ground: Ground, known: proving.Surroundings | None, base_tree: str | None
) -> str:
    setup = "" if known is None else known.setup or ""
    version = tool_version(gate, ground.environment, ground.folder)
    return ground_digest(gate, setup, [version], base_tree)


def _outcome(results: Sequence[GateResult]) -> Outcome:
    stopping = [r for r in results if r.stops]
    failed = [r for r in stopping if r.state == "failed"]
    if failed:
        reason = "; ".join(f"{r.gate}: {r.reason or 'failed'}" for r in failed)
        return Outcome("failed", reason=reason[:1000])
    if stopping:
        reason = "; ".join(f"{r.gate}: {r.reason or 'it cannot be judged'}" for r in stopping)
        return Outcome("error", reason=reason[:1000])
    if all(r.state == "skipped" for r in results):
        reason = "; ".join(f"{r.gate}: {r.reason}" for r in results) or "there are no gates"
        return Outcome("skipped", reason=reason[:1000])
    return Outcome("succeeded")


def _gone_each_time(gate: Gate, tries: int) -> GateResult:
    reason = f"it was begun {tries} times, and its leader was gone before it ended"
    return GateResult(gate.name, "error", reason, mode=gate.mode)


def _stored(course: Course, stage: Stage, results: Sequence[GateResult], tree: str) -> str:
    ran = [CHECKS] if grounds.checks(stage) else []
    facts: dict[str, Any] = {"gates": [r.as_json() for r in results], "ran": ran}
    if tree != course.last_tree:
        facts["tree"] = tree  # what gates have written, and those after them judge
    return json.dumps(facts, ensure_ascii=False)


# -- proving the base --------------------------------------------------------------------


def _prove(
    desk: Desk, course: Course, visit: Visit, ground: Ground, tries: _Tries
) -> Generator[None, None, Left]:
    """Try each gate on the base, in the worktree that no worker has had yet."""
    start = attempts.details_of(course.attempt).start
    assert start is not None
    with desk.database.snapshot() as snapshot:
        known = surroundings_rows.get(snapshot, course.run.id, start.base_tree)
    if known is not None:
        return _proved(known)  # another attempt has tried all of them on this base
    found = grounds.found_at(desk, course.run, str(course.attempt.base_commit))
    proofs = [proving.Proof.from_json(each) for each in visit.found.get("proofs", ())]
    for gate in found.gates[len(proofs) :]:
        if tries.used_up:
            proofs.append(proving.proof_of(gate, _gone_each_time(gate, tries.gone)))
        else:
            # Before the gate, which begins by putting back what this may have written.
            seen = yield from canaries.sighting(ground, gate, found.packages)
            result = yield from _tried_on_base(desk, course, (gate, found.setup), ground)
            proofs.append(proving.proof_of(gate, result, seen, found.packages))
        tries.gone = 0
        _note(desk, course, visit, json.dumps({"proofs": [p.as_json() for p in proofs]}))
    leavings.head_as_before(desk, course, start.tree)
    with desk.database.transaction() as tx:
        known = surroundings_rows.put(tx, course.run.id, start.base_tree, found, proofs)
    for sentence in _worth_saying(known):
        desk.database.notice(f"task {course.task.key}: {sentence}")
    return _proved(known)


def _worth_saying(known: proving.Surroundings) -> list[str]:
    """Of each gate that cannot judge here, why; of each that judges only what is new, that: work
    that is to mend what the base has needs a check of its own."""
    told = []
    for proof in known.proofs:
        if not proof.usable:
            told.append(proof.sentence)
        elif proof.state == "failed":
            told.append(f"{proof.sentence} What is to be mended there, a `--check` has to say.")
    return told


def _proved(known: proving.Surroundings) -> Left:
    told = {"proofs": [p.as_json() for p in known.proofs], "notes": list(known.notes)}
    able = [p for p in known.proofs if p.usable]
    reason = f"{len(able)} of {len(known.proofs)} gates can judge here"
    return Left(
        Outcome("succeeded", reason=reason),
        {"result": json.dumps({**told, "setup": known.setup}, ensure_ascii=False)},
    )


def _tried_on_base(
    desk: Desk, course: Course, tried: tuple[Gate, str | None], ground: Ground
) -> Generator[None, None, GateResult]:
    """What a gate comes to on the base; a leader that died there has left what it had judged."""
    gate, setup = tried
    tree, version = str(course.last_tree), tool_version(gate, ground.environment, ground.folder)
    digest = ground_digest(gate, setup or "", [version])
    with desk.database.snapshot() as snapshot:
        before = result_rows.get(snapshot, course.run.id, tree, gate.name, digest)
    if before is not None:
        return before
    result = yield from trying(ground, gate, tree, None)
    with desk.database.transaction() as tx:
        result_rows.put(tx, course.run.id, tree, digest, result)
    return result


# -- what is written down ----------------------------------------------------------------


def _note_group(desk: Desk, course: Course, visit: Visit, tries: _Tries, group: int) -> bool:
    """That a gate begins, once more; so that a process that takes the visit over can end it, and
    does not begin it for ever."""
    with desk.database.transaction(durable=False) as tx:
        me, attempt = desk.database.owner(), course.attempt
        noted = journal_rows.note_in_intent(tx, attempt.id, "verify", facts_of(group), me)
        return noted and visits.update(tx, visit, {"tries": tries.gone + 1})


def _note_tries(desk: Desk, course: Course, visit: Visit, tries: int) -> None:
    """A gate that was left, for no reason of its own, was not begun."""
    with desk.database.transaction() as tx:
        if journal_rows.owns_intent(tx, course.attempt.id, "verify", desk.database.owner()):
            present = visits.live_of(tx, course.attempt.id)
            if present is not None and present.tries > tries:
                visits.update(tx, visit, {"tries": tries})


def _note(desk: Desk, course: Course, visit: Visit, result: str) -> None:
    """What was judged stays, whoever goes on."""
    from ..gates.running import Withdrawn

    with desk.database.transaction() as tx:
        me = desk.database.owner()
        mine = journal_rows.owns_intent(tx, course.attempt.id, "verify", me)
        if not mine or not visits.update(tx, visit, {"result": result, "tries": 0}):
            raise Withdrawn("another leader has taken it over")


def is_wanted(desk: Desk, course: Course) -> bool:
    """Whether the visit is still this process's."""
    try:
        with desk.database.snapshot() as snapshot:
            present = attempts.get(snapshot, course.attempt.id)
            me = desk.database.owner()
            mine = journal_rows.owns_intent(snapshot, course.attempt.id, "verify", me)
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return True  # it cannot be told just now
    return mine and present is not None and present.state == "verifying"


def _time_is_over(desk: Desk, starts_before_ms: float | None) -> bool:
    now = desk.database.now().monotonic_ms
    return starts_before_ms is not None and now >= starts_before_ms
