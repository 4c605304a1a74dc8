"""Random changes handed in, judged, approved, edited, released, given up, pruned, by leaders that
crash: folding gives the ledger, every object that accepted work brings in was judged, and no byte
that was handed in is lost. PATCH_RUNS=N runs N examples.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from inbox_orch.orch.attempts import submit
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import patches as views
from inbox_orch.shared.errors import InboxOrchError
from support.patches import disagreements
from support.runs import Site, commit, git

EXAMPLES = int(os.environ.get("PATCH_RUNS", "5"))
POLICIES = (
    None,
    {},
    {"ask_paths": ["ci.yml"], "forbid_paths": ["no.txt"], "max_lines": 6},
    {"ask_paths": ["ci.yml"], "min_reviewers": 2, "history": "keep", "max_files": 2},
)
NAMES = st.lists(
    st.sampled_from(["a.txt", "b.txt", "ci.yml", "no.txt", "long.txt"]), min_size=1, max_size=3
)
CRASH = st.sampled_from([None, None, 1, 2, 3, 5, 8])
WHO = st.sampled_from(["boss", "other", "w1"])
PICK = st.integers(0, 9)
REFUSED = {
    *("invalid_state", "policy_denied", "work_rejected", "approval_needed", "not_found", "usage"),
    *("live_attempt", "busy", "unsafe_removal", "unmerged_work", "dirty_repository"),
}


class Crash(BaseException):
    """A leader dies here: nothing on the way may swallow it."""


class Patches(RuleBasedStateMachine):
    """One run on one repository."""

    @initialize(policy=st.sampled_from(POLICIES), checked=st.booleans())
    def begin(self, policy: dict | None, checked: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.site = Site(self.folder)
        self.policy, self.tasks = policy, 0
        self.checks = ["true"] if checked else []
        config = {} if policy is None else {"config": Config(policy=policy)}
        self.run = self.site.open_run(**config)
        self.items: list[dict[str, Any]] = []

    def teardown(self) -> None:
        if hasattr(self, "site"):
            self.lead(None)
            self.lead(None)
            self.all_that_was_accepted_was_judged()
            self.prune()
            self.site.close()
            shutil.rmtree(self.folder)

    # -- what happens ------------------------------------------------------------------------

    @rule(names=NAMES, twice=st.booleans())
    def hand_in(self, names: list[str], twice: bool) -> None:
        key = self._task()
        item = self.site.dispatch(self.run, key)[key]
        for number, name in enumerate(dict.fromkeys(names)):
            lines = 9 if name == "long.txt" else 2
            commit(item["worktree"], name, f"{key}\n" * lines)
            if twice and not number:
                commit(item["worktree"], name, f"{key} again\n")
        self.site.done(item)
        self.items.append(item)

    @rule(names=NAMES)
    def submit(self, names: list[str]) -> None:
        key = self._task()
        edits = [{"path": name, "content": f"text of {key}\n"} for name in dict.fromkeys(names)]
        with self._refusals():
            desk = self.site.leader("author").desk
            submit.submit(desk, self.run, key, json.dumps({"edits": edits}).encode())

    @rule(crash=CRASH)
    def lead(self, crash: int | None) -> None:
        self._crashing(crash, lambda leader: leader.reconcile(self.run))

    @rule(pick=PICK, answer=st.sampled_from(["approve", "approve", "refuse"]), who=WHO, crash=CRASH)
    def answer(self, pick: int, answer: str, who: str, crash: int | None) -> None:
        waiting = self.site.scheduler.questions(self.run)
        if waiting:
            key = waiting[pick % len(waiting)].task.key
            given = Answered(answer, "so")
            self._crashing(
                crash, lambda leader: leader.answer(self.run, key, body="so", decided=given), who
            )

    @rule(pick=PICK, who=WHO, crash=CRASH)
    def release(self, pick: int, who: str, crash: int | None) -> None:
        refused = [each for each in self._listed() if each.state == "quarantined"]
        if not refused:
            return
        chosen = refused[pick % len(refused)]

        def act(leader: Scheduler) -> None:
            for each in chosen.objections:
                deeds.release(leader.desk, self.run, chosen.patch, each["rule"], "so")
            leader.adopt(self.run, chosen.where.key)

        self._crashing(crash, act, who)

    @rule(pick=PICK)
    def drop(self, pick: int) -> None:
        every = self._listed()
        if every:
            with self._refusals():
                deeds.drop(self.site.scheduler.desk, self.run, every[pick % len(every)].patch)

    @rule(pick=PICK, committed=st.booleans())
    def edit(self, pick: int, committed: bool) -> None:
        there = [item for item in self.items if os.path.isdir(item["worktree"])]
        if there:
            worktree = there[pick % len(there)]["worktree"]
            Path(worktree, "no.txt").write_text("unseen\n")
            if committed:
                commit(worktree, "later.txt", "later\n")

    @rule(crash=CRASH)
    def bring_in(self, crash: int | None) -> None:
        self._crashing(crash, lambda leader: leader.integrate(self.run))
        self._crashing(crash, lambda leader: leader.cleanup(self.run, force=True))

    @rule()
    def prune(self) -> None:
        """No byte that was handed in is lost."""
        self.site.clock.advance(90 * 86400)
        self.site.scheduler.bus.prune(1)
        git(self.site.repository, "reflog", "expire", "--expire=now", "--all")
        git(self.site.repository, "gc", "-q", "--prune=now")
        for each in self._listed():
            if each.patch.head is not None:
                git(self.site.repository, "rev-list", "--objects", "--quiet", each.patch.head)
            if each.patch.text is not None:
                assert self.site.scheduler.bus.artifacts.path(each.patch.text)

    # -- what holds --------------------------------------------------------------------------

    @invariant()
    def the_events_are_the_ledger(self) -> None:
        if hasattr(self, "site"):
            assert disagreements(self.site) == []

    def all_that_was_accepted_was_judged(self) -> None:
        repository = self.site.repository
        judged: dict[str, set[str]] = {}
        for each in self._listed():
            if each.state == "committed":
                text = git(
                    repository, "ls-tree", "-r", "-t", "--format=%(objectname)", each.patch.tree
                )
                judged.setdefault(each.where.key, {str(each.patch.tree)}).update(text.split())
        for row in self.site.scheduler.status(self.run).rows:
            task = row.standing.task
            if task.accepted_head is None:
                continue
            base = str(self.site.attempts(self.run, task.key)[-1].base_commit)
            span = f"{base}..{task.accepted_head}"
            commits = set(git(repository, "rev-list", span).split())
            every = git(repository, "rev-list", "--objects", "--no-object-names", span).split()
            if self.policy is not None and "history" not in self.policy:
                assert len(commits) == 1
                assert set(every) - commits <= judged[task.key]
            head = git(repository, "rev-parse", f"{task.accepted_head}^{{tree}}")
            assert head in judged[task.key]

    # -- how ---------------------------------------------------------------------------------

    def _task(self) -> str:
        self.tasks += 1
        key = f"t{self.tasks}"
        self.site.add(self.run, key, checks=self.checks, max_attempts=1)
        return key

    def _listed(self) -> list[views.Listed]:
        return views.listed(self.site.scheduler.desk, self.run)

    def _refusals(self) -> "_Refusals":
        return _Refusals()

    def _crashing(self, crash: int | None, act: Any, who: str | None = None) -> None:
        """A leader acts, and dies before its transaction with this number."""
        leader = self.site.leader(who)
        begin, left = leader.database.transaction, crash

        def transaction(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left is not None:
                left -= 1
                if left <= 0:
                    raise Crash
            return begin(*arguments, **options)

        leader.database.transaction = transaction  # type: ignore[method-assign]
        try:
            with self._refusals():
                act(leader)
        except Crash:
            pass


class _Refusals:
    """What may be refused, since it is not asked whether it can be done."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return isinstance(error, InboxOrchError) and error.code in REFUSED


Patches.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=14,
    deadline=None,
    derandomize=EXAMPLES <= 5,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestPatches = Patches.TestCase
