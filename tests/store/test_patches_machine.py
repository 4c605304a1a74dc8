"""Random changes handed in as commits, files, text and stages, judged, approved, refused, edited,
released, dropped, tried again, integrated, rolled back, put back, cleaned up and pruned, by leaders
that die anywhere and leaders that act in the middle of one another. What `support.patch_watch` says
holds after every step. PATCH_RUNS=N runs N examples.
"""

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.attempts import submit
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import patches as views
from inbox_orch.shared.errors import InboxOrchError
from support import stages, users
from support.lengths import LONG
from support.mortal import OUTSIDE, PLACES, Fate, Leaders, Moment
from support.patch_watch import KEY, Watch
from support.runs import Site, commit, git

EXAMPLES = int(os.environ.get("PATCH_RUNS", "100" if LONG else "9"))
SHORT = "PATCH_RUNS" not in os.environ and not LONG
POLICIES: tuple[dict[str, Any] | None, ...] = (
    {"ask_paths": ["ci.yml"], "forbid_paths": ["no.txt"], "max_lines": 6},
    {"ask_paths": ["ci.yml"], "min_reviewers": 2, "history": "keep", "max_files": 2},
    {},
    None,
)
NAMES = st.lists(
    st.sampled_from(["a.txt", "b.txt", "ci.yml", "ci.yml", "no.txt", "long.txt", "key.txt"]),
    min_size=1,
    max_size=3,
    unique=True,
)
KINDS = ("commits", "commits", "again", "harvest", "stages", "text")
NUMBERS = st.sampled_from([1, 1, 2, 3, 4, 5, 7, 9, 12, 16, 23])
MOMENTS = st.one_of(
    st.builds(Moment, st.sampled_from(PLACES), NUMBERS),
    st.none(),
    st.builds(Moment, st.sampled_from(PLACES), NUMBERS),
)
MEETINGS = st.builds(Moment, st.sampled_from(OUTSIDE), NUMBERS)
WHO = st.sampled_from(["boss", "boss", "other", "third", "w1", "author"])
PICK = st.integers(0, 9)
REFUSED = {
    *("invalid_state", "policy_denied", "work_rejected", "approval_needed", "not_found", "usage"),
    *("live_attempt", "busy", "unsafe_removal", "unmerged_work", "dirty_repository"),
    *("patch_does_not_apply", "base_conflict", "dep_not_in_base", "edit_not_found"),
}
seen: Counter[str] = Counter()
"""What the plays have come to, for who runs many."""


def having(*states: str) -> Callable[[Any], Any]:
    """Where some patch is in one of these states."""
    return precondition(lambda self: any(self.now[state] for state in states))


class Patches(RuleBasedStateMachine):
    """One run on one repository."""

    def __init__(self) -> None:
        super().__init__()
        self.now: Counter[str] = Counter()

    @initialize(policy=st.sampled_from(POLICIES), checked=st.booleans())
    def begin(self, policy: dict | None, checked: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.site = Site(self.folder)
        users.at_work(self.site.repository)
        self.leaders = Leaders(self.site)
        self.policy, self.tasks, self.texts = policy, 0, 0
        self.checks = ["true"] if checked else []
        self.watch = Watch(self.site, policy)
        self.run = self.site.open_run(config=Config(policy=policy, finds=()))

    def teardown(self) -> None:
        if not hasattr(self, "leaders"):
            return
        try:
            for _ in range(2):
                self.calmly(lambda leader: leader.reconcile(self.run))
            self.calmly(lambda leader: leader.integrate(self.run))
            self.prune()
            self.watch.all_holds(self.run)
            assert self.site.open_intents(self.run) == []
            assert self.site.scheduler.doctor(verify=True).problems == 0
            git(self.site.repository, "fsck", "--strict", "--connectivity-only")
            seen.update(f"patch {each.state}" for each in self._listed())
        finally:
            self.leaders.close()
            self.site.close()
            shutil.rmtree(self.folder)

    # -- what is handed in -------------------------------------------------------------------

    @rule(names=NAMES, kind=st.sampled_from(KINDS), at=MOMENTS)
    def hand_in(self, names: list[str], kind: str, at: Moment | None) -> None:
        """A task is sent out, its worker does it, and a leader looks."""
        key = self._task(kind)
        self.calmly(lambda leader: leader.dispatch(self.run, task_names=[key], allow_dirty=True))
        self._worked(names, kind, only=key)
        self.lead(at)

    @rule(names=NAMES)
    def work(self, names: list[str]) -> None:
        """A worker does what is there to be done."""
        self._worked(names, "commits", only=None)

    @rule(names=NAMES, at=MOMENTS)
    def submit(self, names: list[str], at: Moment | None) -> None:
        key, text = self._task("commits"), self._text(names)

        def act(leader: Scheduler) -> None:
            submit.submit(leader.desk, self.run, key, text)

        self.watch.text(text)
        self.act(at, act, "author")

    @rule(pick=PICK, committed=st.booleans())
    def edit(self, pick: int, committed: bool) -> None:
        """Somebody goes on in a worktree."""
        there = sorted({at for at, _ in self.watch.files if os.path.isdir(at)})
        if there:
            worktree = there[pick % len(there)]
            self.texts += 1
            self._write(worktree, "later/no.txt", f"unseen {self.texts}\n")
            if committed:
                git(worktree, "add", "--all")
                git(worktree, "commit", "--quiet", "--message", "later")

    # -- what leaders do ---------------------------------------------------------------------

    @rule(at=MOMENTS)
    def lead(self, at: Moment | None) -> None:
        self.act(at, lambda leader: leader.reconcile(self.run))

    @having("queued")
    @rule(
        pick=PICK,
        answer=st.sampled_from(["approve", "approve", "approve", "refuse"]),
        who=WHO,
        by_name=st.booleans(),
        at=MOMENTS,
    )
    def answer(self, pick: int, answer: str, who: str, by_name: bool, at: Moment | None) -> None:
        """By the name of a task, or of a patch."""
        queued = [each for each in self._listed() if each.state == "queued"]
        if not queued:
            return
        chosen = queued[pick % len(queued)]
        key = chosen.where.key
        if answer == "approve":
            self.watch.approved[key].add(who)

        def act(leader: Scheduler) -> None:
            if by_name:
                leader.answer(self.run, key, body="so", decided=Answered(answer, "so"))
            else:
                said = deeds.approve if answer == "approve" else deeds.refuse
                said(leader.desk, self.run, chosen.patch, "so")

        self.act(at, act, who)

    @having("quarantined")
    @rule(pick=PICK, who=WHO, adopts=st.booleans(), at=MOMENTS)
    def release(self, pick: int, who: str, adopts: bool, at: Moment | None) -> None:
        refused = [each for each in self._listed() if each.state == "quarantined"]
        if not refused:
            return
        chosen = refused[pick % len(refused)]
        rules = [each["rule"] for each in chosen.objections]
        let = {(name, str(chosen.patch.tree)) for name in rules}
        self.watch.released[chosen.where.key] |= let

        def act(leader: Scheduler) -> None:
            for name in rules:
                deeds.release(leader.desk, self.run, chosen.patch, name, "so")
            if adopts:
                leader.adopt(self.run, chosen.where.key)

        self.act(at, act, who)

    @having("quarantined", "apply_failed")
    @rule(pick=PICK, at=MOMENTS)
    def drop(self, pick: int, at: Moment | None) -> None:
        every = [e for e in self._listed() if e.state in ("quarantined", "apply_failed")]
        if every:
            chosen = every[pick % len(every)].patch
            self.act(at, lambda leader: deeds.drop(leader.desk, self.run, chosen))

    @rule(pick=PICK, goes_on=st.booleans(), at=MOMENTS)
    def retry(self, pick: int, goes_on: bool, at: Moment | None) -> None:
        over = [key for key, state in self.site.states(self.run).items() if state != "active"]
        if over:
            key = over[pick % len(over)]
            number = 1 if goes_on else None
            self.act(
                at, lambda leader: leader.retry(self.run, [key], from_attempt=number, force=True)
            )

    @having("committed")
    @rule(at=MOMENTS)
    def bring_in(self, at: Moment | None) -> None:
        self.act(at, lambda leader: leader.integrate(self.run))

    @having("committed")
    @rule(pick=PICK, brought=st.booleans(), who=WHO, at=MOMENTS)
    def roll_back(self, pick: int, brought: bool, who: str, at: Moment | None) -> None:
        """What was accepted, or what has undone that; mostly it was brought in just before."""
        if brought:
            self.calmly(lambda leader: leader.integrate(self.run))
        every = self._accepted()
        if not every:
            return
        chosen = every[pick % len(every)]

        def act(leader: Scheduler) -> None:
            leader.patch_rollback(self.run, chosen.name, reason="so")

        self.act(at, act, who)

    @rule(force=st.booleans(), at=MOMENTS)
    def clean_up(self, force: bool, at: Moment | None) -> None:
        self.act(at, lambda leader: leader.cleanup(self.run, force=force))

    @rule(pick=PICK, edited=st.booleans(), at=MOMENTS)
    def go_back(self, pick: int, edited: bool, at: Moment | None) -> None:
        """To a checkpoint: of one that is made by hand where there is none."""
        every = [
            each
            for each in self.site.scheduler.attempt_list(self.run)
            if each.attempt.removed_at is None and each.attempt.branch is not None
        ]
        if not every:
            return
        listed = every[pick % len(every)]
        self.act(None, lambda leader: leader.checkpoint_make(self.run, listed))
        if edited:
            self.edit(pick, committed=False)
        there = self.site.scheduler.checkpoint_list(self.run, listed)
        if there:
            chosen = there[pick % len(there)]
            self.act(at, lambda leader: leader.checkpoint_restore(self.run, chosen))

    @rule()
    def prune(self) -> None:
        self.site.clock.advance(90 * 86400)
        self.site.scheduler.bus.prune(1)
        now = ("gc.reflogExpire=now", "gc.reflogExpireUnreachable=now")
        settings_of = [word for each in now for word in ("-c", each)]
        git(self.site.repository, *settings_of, "gc", "--quiet", "--prune=now")

    @rule(at=MEETINGS, first=PICK, second=PICK, death=MOMENTS)
    def meet(self, at: Moment, first: int, second: int, death: Moment | None) -> None:
        """One leader acts, and in the middle of that another one does, and may die."""
        does = (
            lambda leader: leader.reconcile(self.run),
            lambda leader: leader.integrate(self.run),
            lambda leader: leader.cleanup(self.run, force=True),
            self._approve_of_any,
            self._roll_any_back,
        )

        def other() -> None:
            self._acts(Fate(death), does[second % len(does)], "third")

        self._acts(Fate(at, other), does[first % len(does)], "other")

    # -- what holds --------------------------------------------------------------------------

    @invariant()
    def all_holds(self) -> None:
        if hasattr(self, "watch"):
            self.now = Counter(each.state for each in self.watch.all_holds(self.run))

    # -- how ---------------------------------------------------------------------------------

    def _task(self, kind: str) -> str:
        """One that is there to be done, or a new one."""
        if kind in ("commits", "again"):
            for key, state in self.site.states(self.run).items():
                if state == "ready":
                    return key
        self.tasks += 1
        key = f"t{self.tasks}"
        if kind == "stages":
            write = stages.agent("write", on_success="more", on_failure="write", max_visits=2)
            more = stages.agent("more", on_failure="write")
            stages.add(self.site, self.run, key, write, more, mailbox="workers")
            return key
        options: dict[str, Any] = {"harvest": True} if kind == "harvest" else {}
        options |= {"hands_in": "text"} if kind == "text" else {}
        self.site.add(self.run, key, checks=self.checks, max_attempts=2, **options)
        return key

    def _worked(self, names: list[str], kind: str, only: str | None) -> None:
        for task, attempt in self.watch.every_live(self.run):
            if only is not None and task.key != only:
                continue
            if attempt.thread_id is None or attempt.state not in ("offered", "running", "blocked"):
                continue
            if attempt.deciding:
                continue
            self._does(names, kind, task, attempt)
            return

    def _does(self, names: list[str], kind: str, task: Any, attempt: attempts.Attempt) -> None:
        worker, thread = self.site.worker, str(attempt.thread_id)
        try:
            claimed = worker.claim(thread, mailboxes=[attempt.mailbox])
        except InboxOrchError as error:
            if error.code not in ("not_found", "nothing_available", "invalid_state"):
                raise
            return
        token, worktree = str(claimed.lease.token), str(attempt.worktree_path)
        if task.hands_in == "text":
            text = self._text(names)
            self.watch.text(text)
            self.watch.answered[thread] = text
            worker.done(thread, token, body="so", payload=text.decode())
            return
        for number, name in enumerate(names):
            path, content = f"in/{name}", self._content(name)
            if attempt.staged or kind == "harvest":
                self._write(worktree, path, content)
            else:
                self._commits(worktree, path, content, again=kind == "again" and number == 0)
            self.watch.handed_in(content)
        worker.done(thread, token, body="done")

    def _commits(self, worktree: str, path: str, content: str, *, again: bool) -> None:
        """A file; or first one with a key in its place, which is gone in the next commit."""
        if again:
            secret = f"{KEY}\n{self.texts}\n"
            commit(worktree, path, secret)
            self.watch.handed_in(secret)
        self._write(worktree, path, content)
        commit(worktree, path, content)

    def _write(self, worktree: str, path: str, content: str) -> None:
        place = Path(worktree, path)
        place.parent.mkdir(exist_ok=True)
        place.write_text(content)
        self.watch.wrote(worktree, path, content)

    def _content(self, name: str) -> str:
        self.texts += 1
        line = f"{KEY} {self.texts}\n" if name == "key.txt" else f"text {self.texts}\n"
        return line * (9 if name == "long.txt" else 2)

    def _text(self, names: list[str]) -> bytes:
        edits = [{"path": f"out{self.tasks}/{n}", "content": self._content(n)} for n in names]
        return json.dumps({"edits": edits}).encode()

    def _listed(self) -> list[views.Listed]:
        return views.listed(self.site.scheduler.desk, self.run)

    def _accepted(self) -> list[views.Listed]:
        return [each for each in self._listed() if each.state == "committed"]

    def _approve_of_any(self, leader: Scheduler) -> None:
        for each in self._listed():
            if each.state == "queued":
                self.watch.approved[each.where.key].add(str(leader.desk.actor(self.run)))
                deeds.approve(leader.desk, self.run, each.patch)

    def _roll_any_back(self, leader: Scheduler) -> None:
        for each in self._accepted()[:1]:
            leader.patch_rollback(self.run, each.name)

    def act(
        self, at: Moment | None, act: Callable[[Scheduler], Any], who: str | None = None
    ) -> None:
        """A leader acts, and may die."""
        self._acts(Fate(at), act, who)

    def calmly(self, act: Callable[[Scheduler], Any]) -> None:
        self._acts(Fate(None), act, None)

    def _acts(self, fate: Fate, act: Callable[[Scheduler], Any], who: str | None) -> None:
        try:
            self.leaders.act(act, fate, who)
        except InboxOrchError as error:
            if error.code not in REFUSED:
                raise
            seen[f"refused {error.code}"] += 1
        seen[f"died {fate.moment.place}" if fate.dead and fate.moment else "lived"] += 1


Patches.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=16 if SHORT else 30,
    deadline=None,
    derandomize=SHORT,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestPatches = Patches.TestCase
