"""What the gates of an attempt stand on: its set-up, the gates that were found or configured, and
how they came out on its base.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from inbox_orch.shared.store.engine import Session

from ..attempts import rows as attempts
from ..attempts import verify
from ..attempts.equip import SetupFailed
from ..gates import finding, proving, surroundings_rows
from ..gates.chosen import checks_of, gates_of
from ..gates.definitions import Gate
from ..gates.interpreters import activated
from ..gates.look import Found
from ..gates.looking import Machine, TreeLook
from ..gates.patch_safety import RawChange
from ..gates.proving import Surroundings
from ..gates.running import Runner
from ..gates.surroundings import Subject, command_environment, environment_for
from ..gates.trying import Ground
from ..git import checkouts, snapshots, worktrees
from ..git.commands import output_of
from ..git.facts import facts
from ..runs.config import Config, Setup, config_of
from ..runs.desk import Desk, place_of
from ..runs.limits import DEFAULT_CHECK_SECONDS
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from .course import Course
from .machine import CHECKS
from .model import Stage

ABSENT = "000000"
"""The mode of what is not there, as git writes it."""


class Base(NamedTuple):
    """What is known of the base of an attempt before its worktree is made: the tree of its commit,
    and what was found out there by others, None where nothing was."""

    tree: str
    known: Surroundings | None


def base_of(desk: Desk, run: Run, attempt: Attempt) -> Base:
    """Errors: those of git."""
    commit, repository = str(attempt.base_commit), desk.repository(run)
    about = (repository.path, repository.identity(), commit)
    tree = _trees.get(about)
    if tree is None:
        tree = output_of(repository.path, "rev-parse", f"{commit}^{{tree}}")
        _remember(_trees, about, tree)
    with desk.database.snapshot() as snapshot:
        return Base(tree, surroundings_rows.get(snapshot, run.id, tree))


_MOST_REMEMBERED = 100
# By the path and the identity of a repository and a commit: what a commit's tree is never changes.
_trees: dict[tuple[str, str, str], str] = {}
# By a run, its config and a commit.
_looked: dict[tuple[str, str, str], Found] = {}


def _remember(known: dict[Any, Any], about: object, found: object) -> None:
    # Several threads of a server may be here: none takes away what another is about to read.
    for oldest in list(known)[: max(0, len(known) - _MOST_REMEMBERED)]:
        known.pop(oldest, None)
    known[about] = found


def found_once(desk: Desk, run: Run, commit: str) -> Found:
    """`found_at`, once in a process: many attempts of a run begin at one commit before the gates
    are tried there."""
    about = (run.id, str(run.config), commit)
    found = _looked.get(about)
    if found is None:
        found = found_at(desk, run, commit)
        _remember(_looked, about, found)
    return found


def found_at(desk: Desk, run: Run, commit: str) -> Found:
    """Set-up and gates of the run at a commit: what its config names, and what the repository says
    by itself. Reads only. Errors: those of git."""
    config, repository = config_of(run), desk.repository(run)
    subject = Subject(run, repository.path, None, commit, None)
    machine = Machine(environment_for(desk.database, config, subject))
    setup = config.setup.command if config.setup is not None else "setup" in config.finds
    found = finding.find(TreeLook(repository, commit, machine), setup)
    if "gates" not in config.finds:
        found = found._replace(gates=())
    return finding.configured(found, configured_gates(config))


def configured_gates(config: Config) -> tuple[Gate, ...]:
    """The gates that the config of a run names."""
    return tuple(gates_of(config))


def with_setup(run: Run, setup: str | None) -> Run:
    """The run, with a set-up for a worktree where its config says nothing of one."""
    config = config_of(run)
    if setup is None or config.setup is not None:
        return run
    return run._replace(config=config._replace(setup=Setup(setup)).canonical())


def without_setup(
    desk: Desk, run: Run, base: Base, found: Found, failed: SetupFailed
) -> Surroundings:
    """Set-up that was found does not work there: then none of the gates can judge, and that is
    written down, so that nobody tries it again on this base."""
    proofs = [proving.proof_without_setup(gate, str(failed)) for gate in found.gates]
    with desk.database.transaction() as tx:
        return surroundings_rows.put(tx, run.id, base.tree, found._replace(setup=None), proofs)


def has_to_prove(task: Task, stages: Sequence[Stage], found: Found, base: Base) -> bool:
    """Whether gates have still to be tried on a base before the first stage."""
    if not any(stage.runs_gates for stage in stages):
        return False
    return bool(proving.needed(found, base.known))


# -- the gates of a stage ----------------------------------------------------------------


class Chosen(NamedTuple):
    """A gate that a stage runs, and why it cannot judge, if it cannot; `named`: somebody has asked
    for it by its name."""

    gate: Gate
    objection: str | None = None
    named: bool = False


def chosen(tx: Session, course: Course, stage: Stage) -> list[Chosen]:
    """The gates of a stage, in order: those that it names, or that its action means; and the checks
    of the task."""
    start = attempts.details_of(course.attempt).start
    assert start is not None
    known = surroundings_rows.get(tx, course.run.id, start.base_tree) or Surroundings()
    if stage.run is not None:
        limit = stage.timeout_seconds or DEFAULT_CHECK_SECONDS
        return [Chosen(Gate(stage.id, stage.run, timeout_seconds=limit))]
    found: list[Chosen] = []
    if stage.id != CHECKS:
        found = [_with_objection(gate, known) for gate in known.gates if _means(stage, gate)]
        there = {each.gate.name for each in found}
        absent = "there is no such gate: name it under `gates` of the config"
        found += [Chosen(Gate(n, ()), absent, True) for n in stage.gates or () if n not in there]
        found = [each._replace(named=each.named or stage.gates is not None) for each in found]
    return found + ([Chosen(gate) for gate in checks_of(course.task)] if checks(stage) else [])


def checks(stage: Stage) -> bool:
    """Whether the checks of the task are run in a stage, too."""
    return stage.run is None and stage.gates is None and stage.action in ("run_gates", "run_tests")


def _means(stage: Stage, gate: Gate) -> bool:
    if stage.gates is not None:
        return gate.name in stage.gates
    if stage.action == "run_gates":
        return True
    return gate.lints == (stage.action == "run_linters")


def _with_objection(gate: Gate, known: Surroundings) -> Chosen:
    proof = known.proof(gate)
    if proof is None or proof.usable:
        return Chosen(gate)
    return Chosen(gate, proof.sentence)


# -- where they run ----------------------------------------------------------------------


def ground_of(desk: Desk, course: Course, runner: Runner, gates: Sequence[Gate]) -> Ground:
    """The worktree of an attempt, as these gates stand on it. Errors: those of git."""
    run, attempt, config = course.run, course.attempt, config_of(course.run)
    repository, worktree = desk.repository(run), str(attempt.worktree_path)
    known, ref = verify.untracked_at_start(attempt), snapshots.ref_of(attempt.id)
    inherited = command_environment(desk.database, run, course.task, attempt, config, worktree)
    start = attempts.details_of(attempt).start
    assert start is not None

    def put_back(tree: str) -> tuple[str, ...]:
        with worktrees.alone(repository, place_of(desk, attempt)):
            return snapshots.put_back(repository, worktree, tree, known, ref)

    def changes(tree: str) -> list[RawChange]:
        return [
            RawChange(
                each.path,
                each.old_mode or ABSENT,
                each.new_mode or ABSENT,
                each.size,
                each.link_target,
            )
            for each in facts(repository, start.tree, tree).files
        ]

    def between(one: str, other: str) -> tuple[str, ...]:
        return tuple(each.path for each in facts(repository, one, other).files)

    last = course.last_tree or start.tree
    changed = between(start.tree, last) if any(gate.paths for gate in gates) else None
    return Ground(
        runner,
        worktree,
        repository.common_directory,
        activated(inherited, worktree),
        secrets_of(config),
        changed,
        lambda: snapshots.tree_name(repository, worktree, known),
        put_back,
        between,
        changes,
        checkout=partial(checkouts.checkout, repository),
    )
