"""Building a run: the run itself, its tasks, what depends on what."""

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import check_name, named_by, new_id
from inbox_orch.shared.processes.signals import postponed
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Transaction

from ..git.recognising import has_begun
from ..git.repository import Repository
from ..git.settings import check_version
from . import blueprint_rows, graph, limits, policies
from . import plan as plans
from . import run_rows as runs
from . import task_rows as tasks
from .config import config_of
from .desk import Answer, Desk, keep_base
from .model import Dependency, Run, Task
from .names import check_task_key, run_name
from .plan import Link, Opening, TaskSpec
from .readiness import CONDITIONS

DEFAULT_LEADER = "leader"
DEFAULT_MAILBOX = "workers"
POLICIES = ("continue", "fail-fast", "abort")


def run_init(
    desk: Desk,
    opening: Opening,
    *,
    repository: str | None,
    worktree_root: str | None = None,
    key: str | None = None,
) -> Answer:
    """Open a run. `repository` is a folder inside it, None for a run without git.

    The base of the opening is resolved now and stays what it is now; without one HEAD is read at
    each dispatch.
    Errors: `usage` (also where the repository has no commit yet), `invalid_state` (a branch called
    `orch`), `git_missing`, `key_conflict`.
    """
    leader = check_name(desk.caller or DEFAULT_LEADER, "agent")
    facts = Facts.of(opening, repository, worktree_root)
    digest = digest_of(facts.as_request())
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "run init", leader, key, digest)
        if earlier is not None:
            return earlier
        run = insert_run(tx, leader, facts)
        answer = desk.remember(tx, "run init", leader, key, digest, {"run": run.as_json()})
    keep_base(desk, run)
    return answer


def insert_run(tx: Transaction, leader: str, facts: "Facts") -> Run:
    """The row of a new run, and its event."""
    opening, run_id = facts.opening, new_id()
    run = Run(
        id=run_id,
        name=run_name(opening.title, run_id),
        title=opening.title,
        state="open",
        leader=leader,
        base_ref=opening.base,
        worktree_root=facts.root,
        on_failure=opening.on_failure,
        max_parallel=opening.max_parallel,
        config=opening.config.canonical(),
        created_at=tx.now.wall_ms,
        closed_at=None,
        cancelled_at=None,
        patches=1,
        **facts.place,
    )
    runs.insert(tx, run)
    said = {"from": None, "to": "open", "title": run.title, "on_failure": run.on_failure}
    events.append(tx, "run_open", leader, said, events.About(run_id=run.id))
    return run


def add_task(desk: Desk, run: Run, spec: TaskSpec, *, key: str | None = None) -> Answer:
    """Add a task.

    Errors: `usage`, `not_found` (a dependency), `invalid_state` (the run is closed, or the
    task's key is taken), `key_conflict`.
    """
    _check_task(run, spec)
    if spec.result_schema is not None:
        # Only here: most tasks have none.
        from inbox_orch.inbox.services import accepting

        spec = spec._replace(result_schema=accepting.checked(spec.result_schema))
    columns = _columns(run, spec)
    named = [_as_asked(link) for link in spec.depends_on]
    asked = {"run": run.id, "task": spec.key, "to": spec.mailbox, "depends_on": named}
    actor, digest = desk.actor(run), digest_of({**asked, **columns})
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "task add", actor, key, digest)
        if earlier is not None:
            return earlier
        _check_addable(desk, tx, run, spec.key)
        columns |= {"key": spec.key, "mailbox": spec.mailbox or DEFAULT_MAILBOX}
        keep_blueprint(desk, tx, run, spec)
        task = _insert_task(desk, tx, run, columns)
        upstreams = _insert_links(desk, tx, run, task, spec.depends_on)
        data = {"task": task.as_json(), "depends_on": [u.key for u in upstreams]}
        return desk.remember(tx, "task add", actor, key, digest, data)


def _columns(run: Run, spec: TaskSpec) -> dict[str, Any]:
    """What is stored of a task, beside its key and whose it is."""
    columns = plans.columns(spec, config_of(run), DEFAULT_MAILBOX)
    checks, clocks = columns["checks"], columns["limits"]
    limits.check_commands(checks)
    if checks and not spec.worktree:
        raise usage(limits.NO_PLACE_FOR_CHECKS, hint="leave --check out")
    if spec.harvest and not spec.worktree:
        raise usage(limits.NOTHING_TO_HARVEST, hint="leave --harvest out")
    if spec.hands_in and (not spec.worktree or spec.blueprint):
        raise usage(limits.NO_PLACE_FOR_TEXT, hint="leave --hands-in out")
    if spec.blueprint and not spec.worktree:
        raise usage(limits.NO_PLACE_FOR_STAGES, hint="leave --blueprint or --no-worktree out")
    if spec.policy is not None and not spec.worktree:
        raise usage(limits.NOTHING_TO_JUDGE, hint="leave the policy or --no-worktree out")
    if spec.policy is not None or spec.drawn is not None:
        given = (spec.key, spec.policy)
        outer = policies.layers_of(config_of(run).policy, given, staged=spec.blueprint is not None)
        policies.require_tightening(outer, policies.of_stages(spec.drawn))
    del columns["key"], columns["mailbox"]
    return columns | {"checks": json.dumps(list(checks)), "limits": json.dumps(clocks.as_json())}


def keep_blueprint(desk: Desk, tx: Transaction, run: Run, spec: TaskSpec) -> None:
    """A run keeps the text of a blueprint that its first task with it had."""
    if spec.blueprint is None or spec.drawn is None:
        return
    kept = blueprint_rows.keep(tx, run.id, spec.blueprint, spec.drawn, tx.now.wall_ms)
    if kept != spec.drawn:
        desk.database.notice(
            f"run {run.name} keeps the blueprint {spec.blueprint} that it began with: its file has"
            " changed since; a new run takes the new one"
        )


def _as_asked(link: Link) -> str | list[str]:
    """A dependency, as the key of a call stands for it."""
    return link.upstream if link.condition == "success" else list(link)


def _insert_links(
    desk: Desk, tx: Transaction, run: Run, task: Task, links: Sequence[Link]
) -> tuple[Task, ...]:
    """What a new task waits for, each once."""
    conditions: dict[Task, str] = {}
    for link in links:
        conditions.setdefault(desk.task(tx, run, link.upstream), link.condition)
    for upstream, condition in conditions.items():
        # Nothing else waits for a new task yet, so that only one to itself is a cycle.
        if upstream.id == task.id:
            _check_edge(tx, run, task, upstream)
        _insert_dependency(desk, tx, run, task.id, upstream.id, condition)
    return tuple(conditions)


def _insert_task(desk: Desk, tx: Transaction, run: Run, columns: dict[str, Any]) -> Task:
    task_id = new_id()
    tasks.insert(
        tx,
        {
            **columns,
            "id": task_id,
            "run_id": run.id,
            "state": "pending",
            "created_at": tx.now.wall_ms,
            "updated_at": tx.now.wall_ms,
        },
    )
    facts = {"from": None, "to": "pending", "key": columns["key"], "cause": "task add"}
    about = events.About(run_id=run.id, task_id=task_id)
    events.append(tx, "task_pending", desk.actor(run), facts, about)
    return tasks.by_id(tx, task_id)


def add_dependency(
    desk: Desk, run: Run, task_name: str, upstream_name: str, condition: str = "success"
) -> dict[str, Any]:
    """Let a pending task wait for another; adding the same edge again changes nothing.

    Errors: `not_found`, `cycle` (with the path), `invalid_state` (the task is not pending, or
    the edge is there with another condition), `usage`.
    """
    if condition not in CONDITIONS:
        raise usage(f"a condition is one of {', '.join(CONDITIONS)}")
    with desk.database.transaction() as tx:
        desk.require_open(tx, run)
        task = desk.task(tx, run, task_name)
        upstream = desk.task(tx, run, upstream_name)
        present = tasks.dependency(tx, task.id, upstream.id)
        if present is None:
            _check_edge(tx, run, task, upstream)
            _insert_dependency(desk, tx, run, task.id, upstream.id, condition)
        elif present.condition != condition:
            raise InboxOrchError(
                "invalid_state",
                f"{task.key} depends on {upstream.key} already, with `{present.condition}`",
                hint=f"`orch dep remove {task.key} --on {upstream.key}` first",
                details={"condition": present.condition},
            )
        shape = {
            "task": task.id,
            "key": task.key,
            "upstream": upstream.id,
            "upstream_key": upstream.key,
            "condition": condition,
        }
        return {"dependency": shape, "already": present is not None}


# -- checks ------------------------------------------------------------------------------


def _check_task(run: Run, spec: TaskSpec) -> None:
    check_task_key(spec.key)
    limits.check_title(spec.title)
    limits.check_task_body(spec.body)
    check_name(spec.kind, "kind")
    if spec.mailbox is not None:
        check_name(spec.mailbox, "mailbox")
    if spec.worktree and run.repository is None:
        raise usage(
            f"run {run.name} has no repository, so a task cannot have a worktree",
            hint="add --no-worktree",
        )


def _check_addable(desk: Desk, tx: Transaction, run: Run, key: str) -> None:
    desk.require_open(tx, run)
    if tasks.get(tx, run.id, key) is not None:
        raise InboxOrchError(
            "invalid_state",
            f"run {run.name} has a task {key} already",
            hint="choose another key; --key makes a repeated call return its first result",
            details={"run": run.name, "task": key},
        )


def _check_edge(tx: Transaction, run: Run, task: Task, upstream: Task) -> None:
    """Refuse a cycle in the transaction that would close it: two halves added at once
    cannot both pass."""
    if task.state != "pending":
        raise InboxOrchError(
            "invalid_state",
            f"task {task.key} is {task.state}: it waits for nothing any more",
            hint="only a task that has not been dispatched can wait; add another task",
            details={"task": task.key, "state": task.state},
        )
    if tasks.waits_for(tx, upstream.id, task.id):
        edges = graph.edges_of(tasks.dependencies_above(tx, upstream.id))
        way = graph.path(edges, upstream.id, task.id)
        assert way is not None, "it was found a moment ago"
        ids = {task_id: name for name, task_id in tasks.ids_by_key(tx, run.id).items()}
        keys = [ids[task_id] for task_id in (task.id, *way)]
        raise InboxOrchError(
            "cycle",
            "that would close a cycle: " + " -> ".join(keys),
            hint="`orch status` shows what depends on what",
            details={"cycle": keys},
        )


def _insert_dependency(
    desk: Desk, tx: Transaction, run: Run, task_id: str, upstream_id: str, condition: str
) -> None:
    tasks.insert_dependency(tx, Dependency(task_id, upstream_id, condition))
    facts = {"upstream": upstream_id, "condition": condition}
    about = events.About(run_id=run.id, task_id=task_id)
    events.append(tx, "dependency_added", desk.actor(run), facts, about)


def check_run(opening: Opening, repository: str | None, worktree_root: str | None) -> None:
    """Raise what `run_init` would raise, without a database."""
    Facts.of(opening, repository, worktree_root)


class Facts(NamedTuple):
    """All that a run stores when it is opened: what was asked for, where worktrees are made, and
    what is so in its repository. `asked_root` is the place for worktrees that was asked for."""

    opening: Opening
    root: str
    place: dict[str, Any]
    asked_root: str | None

    @classmethod
    def of(cls, opening: Opening, repository: str | None, worktree_root: str | None) -> "Facts":
        """Looked up now; errors as of `run_init`."""
        limits.check_title(opening.title)
        root = _worktree_root(worktree_root)
        if repository is not None or worktree_root is not None:
            _check_writable(root)
        place = _repository_facts(repository, opening.base)
        _check_outside(root, place["repository"])
        return cls(opening, root, place, worktree_root)

    def as_request(self) -> dict[str, Any]:
        """What must be the same for the same key."""
        return {
            "title": self.opening.title,
            "base": self.opening.base,
            "on_failure": self.opening.on_failure,
            "max_parallel": self.opening.max_parallel,
            "config": self.opening.config.given(),
            "worktree_root": self.asked_root,
            "repository": self.place["repository"],
        }


def _repository_facts(folder: str | None, base: str | None) -> dict[str, Any]:
    if folder is None:
        if base is not None:
            raise usage("--base needs a repository")
        return dict.fromkeys(("repository", "repository_identity", "base_commit"))
    check_version()
    folder = os.path.abspath(folder)
    repository = Repository.at(folder)
    if repository.has_branch("orch"):
        raise InboxOrchError(
            "invalid_state",
            f"{repository.path} has a branch called `orch`, which leaves no room for orch/…",
            hint="rename it: git branch -m orch orch-old",
        )
    if base is None:
        _require_commit(repository, folder)
    return {
        "repository": repository.path,
        "repository_identity": repository.identity(),
        "base_commit": None if base is None else repository.commit_of(base, folder),
    }


def _require_commit(repository: Repository, folder: str) -> None:
    """Error `usage`, which the first dispatch would raise, in a repository that has no commit yet.
    A HEAD that is yet to be born beside other branches is their user's: a base can be given."""
    try:
        repository.commit_of("HEAD", folder)
    except InboxOrchError as error:
        if error.code != "usage" or not has_begun(repository.path):
            raise


def _worktree_root(chosen: str | None) -> str:
    """An absolute path; error `usage` for one that cannot be stored or shown, or an empty HOME."""
    if chosen is None:
        home = os.environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(home):  # so the specification of that variable says
            named_by("HOME")  # an empty one would lead to the top of the file system
            home = os.path.expanduser("~/.local/state")
        chosen = os.path.join(home, "inbox-orch", "worktrees")
    path = os.path.abspath(chosen)
    if not path.isprintable() or any(0xD800 <= ord(c) < 0xE000 for c in path):
        raise usage("the worktrees' folder must be UTF-8 without control characters")
    return path


def _check_writable(path: str) -> None:
    """Whether worktrees can be made there; error `usage`."""
    above = path
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    try:
        # Only making one tells: in some places, /proc say, not even root can.
        tried = os.path.join(above, f".inbox-orch-{new_id()}")
        with postponed():
            os.mkdir(tried, 0o700)
            os.rmdir(tried)
    except OSError as error:
        raise usage(
            f"no worktree can be made below {path}: no folder can be made in {above}"
            f" ({error.strerror})",
            hint="give another one with --worktree-root DIR",
        ) from error


def _check_outside(root: str, repository: str | None) -> None:
    """What lies inside the repository would make it dirty, or be cleaned away."""
    if repository is None:
        return
    real = os.path.realpath(root)
    if os.path.commonpath((real, repository)) == repository:
        raise usage(
            f"the worktrees' folder {root} lies inside the repository {repository}",
            hint="give another one with --worktree-root DIR",
        )
