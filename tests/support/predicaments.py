"""What a worktree can be found in when it is to be cleaned up, and what has to become of it.

`PREDICAMENTS` are the rows of the clean-up matrix. Each brings the worktree of task `a` into a
state, and writes contents that exist nowhere else: `precious(...)` gives the bytes to look for.
"""

import os
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from inbox_orch.orch.git import manifest
from inbox_orch.orch.runs.model import Run
from support.runs import Site, commit, git

KEPT, REMOVED = "kept", "removed"


class Scene:
    """A run whose task `a` was delivered, accepted and merged into `main`."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.precious: list[bytes] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        commit(site.repository, ".gitignore", "*.env\nnode_modules/\n")
        self.run: Run = site.open_run()
        site.add(self.run, "a")
        self.item = site.dispatch(self.run)["a"]
        self.worktree = Path(self.item["worktree"])

    @property
    def repository(self) -> Path:
        return self.site.repository

    def something(self, name: str) -> str:
        """A content that is nowhere else."""
        content = f"precious: {name}\n"
        self.precious.append(content.encode())
        return content

    def write(self, name: str) -> Path:
        """Such a file in the worktree, not committed."""
        path = self.worktree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.something(name))
        return path

    def commit(self, name: str) -> str:
        """Such a file, committed in the worktree."""
        return commit(self.worktree, name, self.something(name))

    def deliver(self) -> None:
        """A commit, accepted."""
        self.commit("work.txt")
        self.site.done(self.item)
        self.site.scheduler.reconcile(self.run)

    def merge(self, *options: str) -> None:
        """The branch of the attempt into `main`."""
        git(self.repository, "merge", "--quiet", *options, self.item["branch"])

    def delivered(self) -> None:
        """A commit, accepted and merged."""
        self.deliver()
        self.merge()

    def close(self) -> None:
        """End what works there."""
        for process in self.processes:
            process.kill()
            process.wait()


class Row(NamedTuple):
    """`plain` and `forced` are what becomes of it, `reason` the first code that is named."""

    arrange: Callable[[Scene], None]
    reason: str | None
    plain: str
    forced: str
    salvaged: bool = False
    branch_goes: bool = True


def clean_and_merged(scene: Scene) -> None:
    scene.delivered()


def squashed_by_hand(scene: Scene) -> None:
    scene.deliver()
    commit(scene.repository, "before.txt", "elsewhere\n")
    scene.merge("--squash")
    git(scene.repository, "commit", "--quiet", "--message", "Squashed")
    commit(scene.repository, "after.txt", "elsewhere\n")


def cherry_picked_by_hand(scene: Scene) -> None:
    scene.deliver()
    commit(scene.repository, "before.txt", "elsewhere\n")
    git(scene.repository, "cherry-pick", scene.item["branch"])


def dirty(scene: Scene) -> None:
    scene.delivered()
    scene.write("README.md")


def staged_and_changed_again(scene: Scene) -> None:
    scene.delivered()
    scene.write("README.md")
    git(scene.worktree, "add", "README.md")
    (scene.worktree / "README.md").write_text(scene.something("second version"))


def untracked(scene: Scene) -> None:
    git(scene.repository, "config", "status.showUntrackedFiles", "no")
    scene.delivered()
    scene.write("notes/new.txt")


def ignored_and_changed(scene: Scene) -> None:
    (scene.worktree / "local.env").write_text("as it was copied\n")
    (scene.worktree / "other.env").write_text("as it was copied\n")
    manifest.write(str(scene.worktree))
    scene.delivered()
    scene.write("local.env")


def ignored_as_handed_out(scene: Scene) -> None:
    (scene.worktree / "local.env").write_text("as it was copied\n")
    manifest.write(str(scene.worktree))
    scene.delivered()


def assumed_unchanged(scene: Scene) -> None:
    scene.delivered()
    git(scene.worktree, "update-index", "--assume-unchanged", "README.md")
    scene.write("README.md")


def skipped_and_changed(scene: Scene) -> None:
    scene.delivered()
    git(scene.worktree, "update-index", "--skip-worktree", "README.md")
    scene.write("README.md")


def unpushed(scene: Scene) -> None:
    scene.deliver()


def detached(scene: Scene) -> None:
    scene.delivered()
    git(scene.worktree, "checkout", "--quiet", "--detach")
    scene.commit("detached.txt")


def amended_away(scene: Scene) -> None:
    scene.commit("first.txt")
    git(scene.worktree, "rm", "--quiet", "first.txt")
    (scene.worktree / "work.txt").write_text(scene.something("work.txt"))
    git(scene.worktree, "add", "work.txt")
    git(scene.worktree, "commit", "--quiet", "--amend", "--message", "Amended")
    scene.site.done(scene.item)
    scene.site.scheduler.reconcile(scene.run)
    scene.merge()


def other_branch(scene: Scene) -> None:
    scene.delivered()
    git(scene.worktree, "switch", "--quiet", "--create", "other")
    scene.commit("other.txt")


def _side(scene: Scene, name: str, content: str) -> str:
    """A commit that only what is in progress knows."""
    git(scene.worktree, "checkout", "--quiet", "--detach", scene.item["base_commit"])
    made = commit(scene.worktree, name, content)
    git(scene.worktree, "checkout", "--quiet", scene.item["branch"])
    return made


def mid_merge(scene: Scene) -> None:
    scene.delivered()
    side = _side(scene, "side.txt", scene.something("the other side"))
    git(scene.worktree, "merge", "--quiet", "--no-commit", "--strategy", "ours", side)
    assert git(scene.worktree, "status", "--porcelain") == "", "nothing of it is to be seen"


def mid_merge_in_conflict(scene: Scene) -> None:
    scene.delivered()
    side = _side(scene, "work.txt", scene.something("the other side"))
    git(scene.worktree, "merge", "--quiet", side, status=1)
    (scene.worktree / "work.txt").write_text(scene.something("half resolved"))


def mid_rebase(scene: Scene) -> None:
    scene.delivered()
    side = _side(scene, "work.txt", scene.something("the other side"))
    git(scene.worktree, "rebase", "--quiet", side, status=1)


def mid_cherry_pick(scene: Scene) -> None:
    scene.delivered()
    side = _side(scene, "work.txt", scene.something("the other side"))
    git(scene.worktree, "cherry-pick", side, status=1)


def mid_revert(scene: Scene) -> None:
    scene.delivered()
    git(scene.worktree, "revert", "--no-commit", "HEAD")
    git(scene.worktree, "reset", "--quiet", "--hard")
    admin = Path(git(scene.worktree, "rev-parse", "--absolute-git-dir"))
    (admin / "REVERT_HEAD").write_text(git(scene.worktree, "rev-parse", "HEAD") + "\n")


def mid_bisect(scene: Scene) -> None:
    scene.delivered()
    git(scene.worktree, "bisect", "start")
    git(scene.worktree, "bisect", "bad")


def submodule_commit(scene: Scene) -> None:
    library = scene.site.folder / "library"
    library.mkdir()
    git(library, "init", "--quiet", "--initial-branch", "main")
    commit(library, "library.txt", "a library\n")
    allowed = ("-c", "protocol.file.allow=always")
    git(scene.worktree, *allowed, "submodule", "--quiet", "add", str(library), "library")
    commit(scene.worktree / "library", "own.txt", scene.something("in the submodule"))
    git(scene.worktree, "add", "--all")
    scene.delivered()


def nested_repository(scene: Scene) -> None:
    scene.delivered()
    nested = scene.worktree / "node_modules" / "x"
    nested.mkdir(parents=True)
    git(nested, "init", "--quiet")
    commit(nested, "own.txt", scene.something("in a clone"))
    (nested / "own.txt").unlink()


def _clone(scene: Scene) -> Path:
    """A clone inside the worktree, all of which is in its remote."""
    scene.delivered()
    library = scene.site.folder / "library"
    library.mkdir()
    git(library, "init", "--quiet", "--initial-branch", "main")
    commit(library, ".gitignore", "*.env\n")
    clone = scene.worktree / "node_modules" / "library"
    git(scene.worktree, "clone", "--quiet", str(library), str(clone))
    return clone


def clone_with_nothing_of_its_own(scene: Scene) -> None:
    _clone(scene)


def clone_with_an_ignored_file(scene: Scene) -> None:
    (_clone(scene) / "local.env").write_text(scene.something("in a clone, ignored"))


def live_lease(scene: Scene) -> None:
    scene.site.claim(scene.item)
    scene.write("in-work.txt")
    scene.site.scheduler.reconcile(scene.run)


def process_inside(scene: Scene) -> None:
    scene.delivered()
    folder = scene.worktree / "deep"
    folder.mkdir()
    scene.processes.append(subprocess.Popen(["sleep", "600"], cwd=folder))


def foreign_worktree(scene: Scene) -> None:
    scene.delivered()
    git(scene.repository, "worktree", "remove", "--force", "--force", str(scene.worktree))
    git(scene.repository, "worktree", "add", "--quiet", "--detach", str(scene.worktree))
    scene.write("somebodys.txt")


def foreign_lock(scene: Scene) -> None:
    scene.delivered()
    git(scene.repository, "worktree", "unlock", str(scene.worktree))
    git(scene.repository, "worktree", "lock", "--reason", "mine", str(scene.worktree))
    scene.write("somebodys.txt")


def swapped(scene: Scene) -> None:
    scene.site.add(scene.run, "b")
    other = scene.site.dispatch(scene.run, "b")["b"]["worktree"]
    scene.delivered()
    scene.write("mine.txt")
    aside = scene.worktree.with_name("aside")
    scene.worktree.rename(aside)
    Path(other).rename(scene.worktree)
    aside.rename(other)


def moved_away(scene: Scene) -> None:
    scene.delivered()
    scene.write("taken-along.txt")
    scene.worktree.rename(scene.site.folder / "elsewhere")


def without_its_pointer(scene: Scene) -> None:
    scene.delivered()
    scene.write("precious.txt")
    (scene.worktree / ".git").unlink()


def rejected(scene: Scene) -> None:
    """Work that is not accepted, so that no ref of ours keeps its commits."""
    left = scene.worktree / "left.txt"
    left.write_text("not committed\n")
    scene.site.done(scene.item)
    scene.site.scheduler.reconcile(scene.run)
    assert scene.site.attempts(scene.run, "a")[0].state == "rejected"
    left.unlink()


def taken_back(scene: Scene) -> None:
    scene.commit("first.txt")
    git(scene.worktree, "revert", "--no-edit", "HEAD")
    rejected(scene)


def replaced_and_squashed(scene: Scene) -> None:
    scene.commit("first.txt")
    git(scene.worktree, "rm", "--quiet", "first.txt")
    scene.commit("second.txt")
    rejected(scene)
    scene.merge("--squash")
    git(scene.repository, "commit", "--quiet", "--message", "Squashed")
    commit(scene.repository, "after.txt", "elsewhere\n")


def merged_by_a_program_of_the_users(scene: Scene) -> None:
    """One that keeps their own version of a file, whatever the other side has done."""
    git(scene.repository, "config", "merge.ours.driver", "true")
    (scene.repository / ".git" / "info" / "attributes").write_text("README.md merge=ours\n")
    scene.commit("README.md")
    rejected(scene)
    commit(scene.repository, "README.md", "of the user\n")


def merged_by_taking_both_sides(scene: Scene) -> None:
    """What was deleted adds no line, so that it seems to be there already."""
    (scene.repository / ".git" / "info" / "attributes").write_text("README.md merge=union\n")
    scene.commit("work.txt")
    git(scene.worktree, "rm", "--quiet", "work.txt")
    (scene.worktree / "README.md").write_text("")
    git(scene.worktree, "commit", "--quiet", "--all", "--message", "Emptied")
    rejected(scene)
    commit(scene.repository, "README.md", "of the user\n")


def in_other_letters(scene: Scene) -> None:
    git(scene.repository, "config", "core.ignoreCase", "true")
    scene.delivered()
    scene.write("Work.txt")
    scene.write("readme.md")


def files_elsewhere(scene: Scene) -> None:
    scene.delivered()
    scene.write("README.md")
    elsewhere = scene.site.folder / "elsewhere"
    elsewhere.mkdir()
    git(scene.worktree, f"--work-tree={elsewhere}", "checkout", "-q", "--force", "HEAD", "--", ".")
    git(scene.worktree, "config", "extensions.worktreeConfig", "true")
    git(scene.worktree, "config", "--worktree", "core.worktree", str(elsewhere))


PREDICAMENTS: dict[str, Row] = {
    "clean and merged": Row(clean_and_merged, None, REMOVED, REMOVED),
    "squash-merged by hand": Row(squashed_by_hand, None, REMOVED, REMOVED),
    "cherry-picked by hand": Row(cherry_picked_by_hand, None, REMOVED, REMOVED),
    "taken back, rejected": Row(taken_back, None, REMOVED, REMOVED, True),
    "squashed, rejected": Row(replaced_and_squashed, None, REMOVED, REMOVED, True),
    "merge driver": Row(
        merged_by_a_program_of_the_users, "unmerged_work", KEPT, REMOVED, False, False
    ),
    "merge of both": Row(merged_by_taking_both_sides, "unmerged_work", KEPT, REMOVED, False, False),
    "dirty": Row(dirty, "dirty", KEPT, REMOVED, True),
    "staged, changed again": Row(staged_and_changed_again, "dirty", KEPT, REMOVED, True),
    "in other letters": Row(in_other_letters, "untracked", KEPT, REMOVED, True),
    "files elsewhere": Row(files_elsewhere, "unreadable", KEPT, KEPT),
    "untracked": Row(untracked, "untracked", KEPT, REMOVED, True),
    "ignored and changed": Row(ignored_and_changed, "ignored_changed", KEPT, REMOVED, True),
    "ignored, as handed out": Row(ignored_as_handed_out, None, REMOVED, REMOVED),
    "assume-unchanged": Row(assumed_unchanged, "hidden", KEPT, REMOVED, True),
    "skip-worktree": Row(skipped_and_changed, "hidden", KEPT, REMOVED, True),
    "unpushed": Row(unpushed, "unmerged_work", KEPT, REMOVED, False, False),
    "detached": Row(detached, "unmerged_work", KEPT, REMOVED, True),
    "amended away": Row(amended_away, None, REMOVED, REMOVED, True),
    "other branch": Row(other_branch, "foreign_branch", KEPT, KEPT),
    "mid-merge": Row(mid_merge, "in_progress", KEPT, REMOVED, True),
    "mid-merge, conflict": Row(mid_merge_in_conflict, "in_progress", KEPT, REMOVED, True),
    "mid-rebase": Row(mid_rebase, "in_progress", KEPT, REMOVED, True),
    "mid-cherry-pick": Row(mid_cherry_pick, "in_progress", KEPT, REMOVED, True),
    "mid-revert": Row(mid_revert, "in_progress", KEPT, REMOVED, True),
    "mid-bisect": Row(mid_bisect, "in_progress", KEPT, REMOVED, True),
    "submodule commit": Row(submodule_commit, "submodule_commits", KEPT, KEPT),
    "nested repository": Row(nested_repository, "nested_repository", KEPT, KEPT),
    "clone, all of it pushed": Row(clone_with_nothing_of_its_own, None, REMOVED, REMOVED),
    "clone, ignored file": Row(clone_with_an_ignored_file, "nested_repository", KEPT, KEPT),
    "live lease": Row(live_lease, "live_attempt", KEPT, KEPT),
    "process inside": Row(process_inside, "process_inside", KEPT, KEPT),
    "foreign worktree": Row(foreign_worktree, "foreign_worktree", KEPT, KEPT),
    "foreign lock": Row(foreign_lock, "foreign_lock", KEPT, KEPT),
    "swapped": Row(swapped, "foreign_worktree", KEPT, KEPT),
    "moved away": Row(moved_away, "missing", KEPT, KEPT),
    "no .git file": Row(without_its_pointer, "foreign_worktree", KEPT, KEPT),
}


# -- what is left of it ----------------------------------------------------------------------


def contents(site: Any) -> Iterator[bytes]:
    """The content of every object that a ref, a reflog or an index of the worktrees leads to, and
    of every file on disk; in nested repositories of every object, reachable or not."""
    wanted = ("--all", "--reflog", "--indexed-objects", "--objects", "--no-object-names")
    names = git(site.repository, "rev-list", *wanted).split()
    done = subprocess.run(
        ["git", "cat-file", "--batch"],
        cwd=site.repository,
        input="".join(f"{name}\n" for name in names).encode(),
        capture_output=True,
        check=True,
    )
    yield done.stdout
    for folder, folders, files in os.walk(site.folder):
        own = Path(folder) == site.repository / ".git"
        folders[:] = [
            n
            for n in folders
            if n not in (".trash", "inbox-orch-trash", ".inbox") and not (own and n == "objects")
        ]
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                yield _inflated(path.read_bytes())


def _inflated(content: bytes) -> bytes:
    try:
        return zlib.decompress(content)
    except zlib.error:
        return content


def picture(site: Site, run: Run) -> list[Any]:
    """All that a dry run must not change."""
    with site.scheduler.database.snapshot() as snapshot:
        rows = [tuple(row) for row in snapshot.stream("SELECT * FROM attempt")]
        events = snapshot.one("SELECT count(*) FROM event")[0]
    return [
        rows,
        events,
        git(site.repository, "for-each-ref"),
        git(site.repository, "worktree", "list", "--porcelain"),
        sorted(str(p) for p in site.worktrees.rglob("*") if ".git" not in p.parts),
    ]


def gc(site: Site) -> None:
    """Everything that nothing leads to goes at once."""
    shutil.rmtree(site.worktrees / ".trash", ignore_errors=True)
    shutil.rmtree(site.repository / ".git" / "inbox-orch-trash", ignore_errors=True)
    git(site.repository, "gc", "--quiet", "--prune=now")
