"""What must hold of patches after every step of a play, whoever has died in it: the ledger is what
its events fold to; what was accepted was judged; nothing that was handed in is lost; and what is
the user's is as it was.

Told of what is handed in, said and asked for; what the program makes of that is looked at in git,
in the files and in the tables, never asked of the functions that made it.
"""

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.runs import task_rows as tasks
from inbox_orch.orch.runs.model import Attempt, Run, Task
from inbox_orch.orch.views import patches as views
from support import users
from support.patches import disagreements
from support.runs import Site, git

ACCEPTED = ("acceptance", "accepted")
ALLOWED, ASKED = ("policy", "allowed"), ("policy", "asked")
APPROVED = ("approval", "approved")
KEY = "AKIA" + "IOSFODNN7EXAMPLQ"
"""In the form of a key: no policy lets it in by itself."""


def blob_of(content: str) -> str:
    """The name that git has for it."""
    raw = content.encode()
    return hashlib.sha1(b"blob %d\0%b" % (len(raw), raw)).hexdigest()


class Watch:
    """The three things that hold, over one run."""

    def __init__(self, site: Site, policy: dict[str, Any] | None) -> None:
        self.site, self.policy = site, policy
        self.files: dict[tuple[str, str], str] = {}
        """What workers, and users, have written last: by worktree and path."""
        self.given: set[str] = set()
        """Blobs of all that was ever handed in."""
        self.contents: dict[str, str] = {}
        self.texts: dict[str, bytes] = {}
        self.answered: dict[str, bytes] = {}
        """By its thread: the text that a worker has handed in."""
        self.approved: defaultdict[str, set[str]] = defaultdict(set)
        self.released: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        """Rules, each with the tree for which it was released."""
        self._accepted: set[tuple[str, str]] = set()
        self._tips: set[tuple[str, int, int]] = set()
        self._objects: dict[tuple[str, ...], set[str]] = {}
        self.users = users.own(site.repository)

    # -- what it is told ---------------------------------------------------------------------

    def wrote(self, worktree: str, path: str, content: str) -> None:
        """Such a file lies there now, for whoever works there."""
        self.files[worktree, path] = content
        self.contents[blob_of(content)] = content

    def handed_in(self, content: str) -> None:
        """A file with this content was handed in, in whatever commit."""
        self.given.add(blob_of(content))
        self.contents[blob_of(content)] = content

    def text(self, content: bytes) -> None:
        """This was, or may have been, handed in as text."""
        self.texts[hashlib.sha256(content).hexdigest()] = content

    # -- what holds --------------------------------------------------------------------------

    def all_holds(self, run: Run) -> list[views.Listed]:
        """After any step; the patches as they stand."""
        self.events_are_the_ledger()
        listed = views.listed(self.site.scheduler.desk, run)
        self.accepted_was_judged(run, listed)
        self.integrated_was_accepted(run, listed)
        self.nothing_is_lost(run, listed)
        assert users.own(self.site.repository) == self.users, "what is the user's has changed"
        return listed

    def events_are_the_ledger(self) -> None:
        assert disagreements(self.site) == []

    # -- accepted ----------------------------------------------------------------------------

    def accepted_was_judged(self, run: Run, listed: list[views.Listed]) -> None:
        for task, attempt in self._every(run):
            head = task.accepted_head
            known = (str(attempt and attempt.id), str(head))
            if head is None or known in self._accepted:
                continue
            assert attempt is not None
            own = [
                each
                for each in listed
                if each.patch.attempt_id == attempt.id
                and each.patch.rollback_of is None
                and ACCEPTED in said(each)
            ]
            assert own, f"{task.key} was accepted with nothing that was judged"
            self._was_judged(task, head, own)
            self._accepted.add(known)

    def _was_judged(self, task: Task, head: str, own: list[views.Listed]) -> None:
        last = own[-1].patch
        where = self.site.repository
        tree = git(where, "rev-parse", f"{head}^{{tree}}")
        assert tree == last.tree, f"{task.key}: another tree was accepted than was judged"
        if self.policy is None:
            return
        base = own[0].patch.base
        brought = self._brought(base, head)
        commits = set(git(where, "rev-list", head, f"^{base}").split())
        judged = self._judged(own)
        if self.policy.get("history") == "keep":
            for each in commits:
                judged |= self._of_tree(each)
                self._may_come_in(task, (base, each), own)
        else:
            assert len(commits) == 1, f"{task.key} brings in commits that are no work of ours"
            self._may_come_in(task, (base, head), own)
        unseen = brought - commits - judged
        assert not unseen, f"{task.key} brings in what nobody has judged: {unseen}"

    def _may_come_in(self, task: Task, span: tuple[str, str], own: list[views.Listed]) -> None:
        """By the words of the policy, and by what people have said of it."""
        assert self.policy is not None
        form = git(self.site.repository, "diff", "--no-renames", "--numstat", *span)
        lines = [line.split("\t") for line in form.split("\n") if line]
        names = {path.rpartition("/")[2] for _, _, path in lines}
        changed = sum(int(added) + int(taken) for added, taken, _ in lines)
        tree = str(own[-1].patch.tree)
        let = {name for name, of in self.released[task.key] if of == tree}
        if names & set(self.policy.get("forbid_paths", ())):
            assert "forbid_paths" in let, f"{task.key}: what is forbidden came in"
        if names & set(self.policy.get("ask_paths", ())) and "ask_paths" not in let:
            writers = {str(each.patch.author) for each in own}
            by = self.approved[task.key] - writers
            assert len(by) >= self.policy.get("min_reviewers", 1), f"{task.key}: not approved"
            assert any(ASKED in said(each) and APPROVED in said(each) for each in own)
        if len(names) > self.policy.get("max_files", len(names)):
            assert "max_files" in let, f"{task.key}: more files came in than may"
        if changed > self.policy.get("max_lines", changed):
            assert "max_lines" in let, f"{task.key}: more lines came in than may"
        if "secrets" not in let:
            found = self._brought(*span)
            keys = {name for name, text in self.contents.items() if KEY in text}
            assert not found & keys, f"{task.key}: a key came in"

    def integrated_was_accepted(self, run: Run, listed: list[views.Listed]) -> None:
        """What the branch of the integration has of what was handed in, and who undid what."""
        where, branch = self.site.repository, branch_of(run)
        tip = git(where, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
        taken = [each for each in listed if ACCEPTED in said(each)]
        undone = {each.patch.id for each in listed if ("rollback", "undone") in said(each)}
        known = (tip, len(taken), len(undone))
        if not tip or known in self._tips:
            return
        commits = set(git(where, "rev-list", tip).split())
        for each in taken:
            if each.patch.rollback_of is not None:
                assert each.patch.head in commits, f"{each.name} is accepted, and not there"
        by = {each.patch.rollback_of for each in taken}
        assert undone == by - {None}, "undone by nothing, or by what undid nothing"
        if self.policy is not None:
            brought = self._brought("main", tip) & self.contents.keys()
            unseen = brought - self._judged(taken)
            if self.policy.get("history") == "keep":
                unseen = {name for name in unseen if KEY in self.contents[name]}
            assert not unseen, f"{branch} has what nobody has judged: {unseen}"
        self._tips.add(known)

    def _judged(self, listed: list[views.Listed]) -> set[str]:
        """The objects of the trees of patches that the policy has let in."""
        found: set[str] = set()
        for each in listed:
            assert {ALLOWED, APPROVED} & set(said(each)), f"{each.name}: {said(each)}"
            found |= self._of_tree(str(each.patch.tree))
        return found

    def _of_tree(self, name: str) -> set[str]:
        if (name,) not in self._objects:
            words = ("rev-parse", f"{name}^{{tree}}")
            listed = git(
                self.site.repository, "ls-tree", "-r", "-t", "--format=%(objectname)", name
            )
            self._objects[name,] = {*listed.split(), git(self.site.repository, *words)}
        return self._objects[name,]

    def _brought(self, base: str, head: str) -> set[str]:
        """Every object that a commit has and its base has not."""
        if (base, head) not in self._objects:
            words = ("rev-list", "--objects", "--no-object-names", head, f"^{base}")
            self._objects[base, head] = set(git(self.site.repository, *words).split())
        return self._objects[base, head]

    # -- lost --------------------------------------------------------------------------------

    def nothing_is_lost(self, run: Run, listed: list[views.Listed]) -> None:
        """Every byte that was handed in is where git's own pruning does not reach, or lies in its
        worktree; every text is kept as it came."""
        words = ("rev-list", "--objects", "--all", "--indexed-objects", "--no-object-names")
        kept = set(git(self.site.repository, *words).split())
        lying = {blob_of(text) for at, text in self.files.items() if _lies(at, text)}
        gone = {self.contents[name][:80] for name in self.given - kept - lying}
        assert not gone, f"handed in, and lost: {gone}"
        for worktree, path in self.files:
            content = self.files[worktree, path]
            lost = blob_of(content) not in kept | lying
            assert not lost, f"{worktree} {path} is lost: {content[:80]}"
        unkept = {each.patch.head for each in listed if each.patch.head} - kept
        assert not unkept, f"patches whose commits are lost: {unkept}"
        self._texts_are_kept(run, listed)

    def _texts_are_kept(self, run: Run, listed: list[views.Listed]) -> None:
        bus = self.site.scheduler.bus
        named = {str(each.patch.text) for each in listed if each.patch.text is not None}
        recorded = {each.where.thread_id for each in listed if each.patch.text is not None}
        for _, attempt in self._every(run, newest=False):
            assert attempt is not None
            found = attempts.details_of(attempt).text
            named |= set() if found is None else {found.sha256}
            thread = attempt.thread_id
            if thread in self.answered and thread not in recorded:
                said_last = bus.last_message(thread, "result")
                assert said_last is not None and said_last.payload is not None, "a text is lost"
                assert said_last.payload.encode() == self.answered[thread]
        for sha256 in named:
            place = Path(bus.artifacts.path(sha256))
            assert place.exists(), f"a text is lost: {self.texts[sha256]!r}"
            assert place.read_bytes() == self.texts[sha256]

    # -- looking -----------------------------------------------------------------------------

    def _every(self, run: Run, *, newest: bool = True) -> list[tuple[Task, Attempt | None]]:
        """Every task with its accepted attempt; or, with all of its attempts."""
        found: list[tuple[Task, Attempt | None]] = []
        with self.site.scheduler.database.snapshot() as snapshot:
            for task in tasks.of_run(snapshot, run.id):
                of_task = attempts.of_task(snapshot, task.id)
                if newest:
                    by_id = {each.id: each for each in of_task}
                    found.append((task, by_id.get(str(task.accepted_attempt))))
                else:
                    found += [(task, each) for each in of_task]
        return found

    def every_live(self, run: Run) -> list[tuple[Task, Attempt]]:
        """Every attempt that is not over, with its task."""
        every = self._every(run, newest=False)
        return [(task, each) for task, each in every if each is not None and each.live]


def said(listed: views.Listed) -> list[tuple[str, str]]:
    """What was said of a patch."""
    return [(each.kind, each.outcome) for each in listed.entries]


def _lies(at: tuple[str, str], content: str) -> bool:
    place = Path(*at)
    return place.is_file() and place.read_bytes() == content.encode()
