"""Policies as they are in force, and what they say of a path or of a change. Only looks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage

from ..attempts import patches as handed_in
from ..attempts import verify
from ..cleanup import restore
from ..gates.at_hand import AtHand, at_hand
from ..git import diffs, history, snapshots
from ..git.diffs import Span
from ..git.harvest import Unfit
from ..git.mixed import taken_back
from ..git.repository import Repository
from ..git.sealed import sealed_folder
from ..patches import rows as patches
from ..patches.examine import Told, examine, examine_told, unjudged
from ..patches.policy import Examined, Layer, Policy, of_task
from ..patches.rules import patterns_of
from ..runs import blueprint_rows, policies
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.policies import RULES
from ..runs.secrets import secrets_of


class InForce(NamedTuple):
    """What holds for a run, or for a task of it; `stages` are what stages of its blueprint ask for
    beyond that. Both are None for what only a file says."""

    policy: Policy
    run: Run | None = None
    task: Task | None = None
    stages: tuple[Layer, ...] = ()

    @property
    def about(self) -> dict[str, Any]:
        """Whose it is, as JSON."""
        return {
            "run": None if self.run is None else self.run.name,
            "task": None if self.task is None else self.task.key,
        }


def of_file(given: Mapping[str, Any]) -> InForce:
    """As it would be in force for a run with this policy in its config."""
    return InForce(Policy(tuple(Layer(*named) for named in policies.layers_of(given))))


def in_force(desk: Desk, run: Run, task_name: str | None = None) -> InForce:
    """What is in force for a run, or a task of it. Error `not_found`."""
    config = config_of(run)
    if task_name is None:
        layers = policies.layers_of(config.policy)
        return InForce(Policy(tuple(Layer(*named) for named in layers)), run)
    with desk.database.snapshot() as snapshot:
        task = desk.task(snapshot, run, task_name)
        stages: tuple[Layer, ...] = ()
        if task.blueprint is not None:
            drawn = blueprint_rows.text_of(snapshot, run.id, task.blueprint)
            stages = tuple(Layer(*named) for named in policies.of_stages(drawn))
    policy = of_task(config, task, staged=task.blueprint is not None)
    return InForce(policy, run, task, stages)


class Said(NamedTuple):
    """What a layer says by a rule; `value` is one pattern, or the whole of it."""

    rule: str
    value: Any
    layer: str

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def said(found: InForce) -> list[Said]:
    """Every rule of every layer: those of one rule after the other, from the outermost layer."""
    layers = (*found.policy.layers, *found.stages)
    return [
        Said(name, layer.given[name], layer.name)
        for name in RULES
        for layer in layers
        if name in layer.given
    ]


# -- one path --------------------------------------------------------------------------------


class Spoken(NamedTuple):
    """What a layer says of a path by one of the rules about paths, and by which pattern."""

    layer: str
    rule: str
    outcome: str
    pattern: str | None

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


_PATH_RULES = {"forbid_paths": "denied", "ask_paths": "asked", "allow_paths": "denied"}


def of_path(found: InForce, path: str) -> list[Spoken]:
    """What each layer says of a path; nothing where it says nothing. Error `usage`."""
    if path.startswith("/") or ".." in path.split("/"):
        raise usage("a path counts from the top of the repository", hint="like src/parser.py")
    spoken = []
    for layer in (*found.policy.layers, *found.stages):
        for rule, outcome in _PATH_RULES.items():
            patterns = patterns_of(RULES[rule], layer)
            if patterns is None:
                continue
            pattern = patterns.found(path.rstrip("/"))
            if rule == "allow_paths":
                outcome = "allowed" if pattern is not None else outcome
            elif pattern is None:
                continue
            spoken.append(Spoken(layer.name, rule, outcome, pattern))
    return spoken


def verdict(spoken: list[Spoken]) -> str:
    """The gravest of what is said, stages apart: those hold for their own work alone."""
    found = {each.outcome for each in spoken if not each.layer.startswith("stage ")}
    return next((word for word in ("denied", "asked") if word in found), "allowed")


# -- a change --------------------------------------------------------------------------------


class Checked(NamedTuple):
    """What was judged, by what, and what came of it."""

    what: str
    force: InForce
    examined: Examined

    @property
    def failure(self) -> InboxOrchError | None:
        """The error that says so; None where all is allowed."""
        outcome, reason = self.examined.outcome, self.examined.reason
        if outcome == "denied":
            return InboxOrchError(
                "policy_denied",
                f"{self.what} is not allowed: {reason}",
                hint=self._remedy("denied"),
                details=self.as_json(),
            )
        if outcome == "asked":
            return InboxOrchError(
                "approval_needed",
                f"{self.what} needs approval: {reason}",
                hint=self._remedy("asked"),
                data=self.as_json(),
            )
        return None

    def _remedy(self, outcome: str) -> str:
        return next(o.remedy for o in self.examined.objections if o.outcome == outcome)

    def as_json(self) -> dict[str, Any]:
        return {
            **self.force.about,
            "what": self.what,
            "outcome": self.examined.outcome,
            "facts": self.examined.summary.as_json(),
            "objections": [each.as_json() for each in self.examined.objections],
            "policy": self.force.policy.digest,
        }


def check_here(desk: Desk, folder: str) -> Checked:
    """Judge what lies in the worktree in which somebody stands, committed or not, against the base
    of its attempt. Errors: `not_found`, those of git."""
    here = at_hand(desk, folder)
    force = in_force(desk, here.run, here.task.key)
    repository = desk.repository(here.run)
    base = handed_in.base_of(desk, repository, here.attempt)
    try:
        tree = _tree_here(repository, here)
    except Unfit as unfit:
        return Checked(here.name, force, unjudged(str(unfit)))
    head = Repository.at(here.folder).commit_of("HEAD", here.folder)
    with sealed_folder(repository) as sealed:
        commits = history.commits(sealed, base, head) or ()
    about = Told(secrets_of(config_of(here.run)), messages=tuple(each.text for each in commits))
    return Checked(here.name, force, examine_told(repository, base, tree, force.policy, about))


def _tree_here(repository: Repository, here: AtHand) -> str:
    """What lies there, and of what git takes for unchanged, filtered or not, what the base has."""
    known = verify.untracked_at_start(here.attempt)
    base = str(here.attempt.base_commit)
    tree = snapshots.tree_name(repository, here.folder, known)
    changed = {file.path for file in diffs.changed_files(Span(here.folder, base, None))}
    return taken_back(repository, base, tree, changed)


def check_named(desk: Desk, name: str, run_name: str | None) -> Checked:
    """Judge a patch (KEY/ATTEMPT/NUMBER) or the commits of an attempt (KEY/ATTEMPT) anew. Errors:
    `not_found`, `usage`, those of git."""
    parts = name.split("/")
    run, listed = restore.attempt_named(desk, "/".join(parts[:2]), run_name, shows=True)
    attempt = listed.attempt
    base, head = _ends(desk, attempt, parts[2:], name)
    force = in_force(desk, run, attempt.task_id)
    secrets = secrets_of(config_of(run))
    found = examine(desk.repository(run), base, head, force.policy, secrets=secrets)
    return Checked(name, force, found.named(name) if parts[2:] else found)


def _ends(desk: Desk, attempt: Attempt, number: list[str], name: str) -> tuple[str, str]:
    if not number:
        if attempt.base_commit is None or attempt.head_commit is None:
            raise InboxOrchError(
                "not_found",
                f"{name} has handed in nothing yet",
                hint="in its worktree, `orch policy check` judges what lies there",
                details={"kind": "patch", "id": name},
            )
        return attempt.base_commit, attempt.head_commit
    found = None
    if len(number) == 1 and number[0].isdecimal():
        with desk.database.snapshot() as snapshot:
            found = patches.numbered(snapshot, attempt.id, int(number[0]))
    if found is None or found.tree is None:
        raise InboxOrchError(
            "not_found",
            f"there is no patch {name} with a tree of its own",
            hint="`orch patch list` shows them",
            details={"kind": "patch", "id": name},
        )
    return found.base_tree, found.head or found.tree


def check_range(folder: str, text: str, force: InForce) -> Checked:
    """Judge what lies between two commits, `A..B`, in the repository of a folder. Errors: `usage`,
    those of git."""
    first, _, last = text.partition("..")
    if not first or not last.strip(".") or last.startswith("."):
        raise usage("a range is A..B: two commits", hint="like main..HEAD")
    repository = Repository.at(folder)
    base, head = (repository.commit_of(name, folder) for name in (first, last))
    return Checked(text, force, _examined(repository, base, head, force))


def _examined(repository: Repository, base: str, head: str, force: InForce) -> Examined:
    secrets = () if force.run is None else secrets_of(config_of(force.run))
    return examine(repository, base, head, force.policy, secrets=secrets)
