"""Snapshots of a worktree, and going back to one: nothing of anybody's is touched, nothing is lost,
and what comes back is what there was, byte for byte."""

import errno
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.git import manifest, raw_index, raw_trees, snapshots, worktrees
from inbox_orch.orch.git.facts import facts
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.git.snapshots import Unfit
from inbox_orch.orch.git.worktrees import Place
from support.lengths import LONG
from support.runs import commit, git, make_repository
from support.timing import promptly

REF = snapshots.ref_of("01A")


class Bench:
    """A repository with a worktree of an attempt's."""

    def __init__(self, folder: Path, form: str | None = None) -> None:
        self.folder = folder / "project"
        if form is None:
            make_repository(self.folder)
        else:
            told = ["git", "init", "-q", "-b", "main", form, str(self.folder)]
            if subprocess.run(told, capture_output=True).returncode != 0:
                pytest.skip(f"this git knows no {form}")
            commit(self.folder, "README.md", "text\n")
        self.repository = Repository(str(self.folder))
        self.worktree = folder / "work"
        git(self.folder, "worktree", "add", "--quiet", "-b", "work", str(self.worktree))
        self.admin = Path(git(self.worktree, "rev-parse", "--absolute-git-dir"))
        self.known: list[str] = []

    @property
    def place(self) -> Place:
        return Place("work", str(self.worktree), git(self.folder, "rev-parse", "main"), "a reason")

    def tree(self) -> str:
        return raw_trees.tree_now(self.repository, str(self.worktree), self.known)

    def name(self) -> str:
        return raw_trees.tree_name(self.repository, str(self.worktree), self.known)

    def snapshot(self, parent: str | None = None) -> snapshots.Snapshot:
        return snapshots.snapshot(
            self.repository, str(self.worktree), self.known, REF, "A stage ended", parent
        )

    def restore(self, commit: str) -> str:
        with worktrees.alone(self.repository, self.place) as hold:
            return snapshots.restore(self.repository, str(self.worktree), hold, commit, self.known)

    def put_back(self, tree: str) -> tuple[str, ...]:
        return snapshots.put_back(self.repository, str(self.worktree), tree, self.known, REF)

    def write(self, name: str, content: str | bytes = "text\n") -> Path:
        path = self.worktree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def files(self, tree: str) -> dict[str, tuple[str, bytes]]:
        """Of a tree: mode and content of each path."""
        listed = git(self.folder, "ls-tree", "-r", "-z", tree)
        found = {}
        for entry in filter(None, listed.split("\0")):
            facts, path = entry.split("\t", 1)
            mode, _, name = facts.split(" ")
            words = ["git", "-C", str(self.folder), "cat-file", "blob", name]
            found[path] = (mode, subprocess.run(words, stdout=subprocess.PIPE).stdout)
        return found

    def standing(self) -> tuple[object, ...]:
        """All that a snapshot must not touch."""
        admin = self.folder / ".git" / "worktrees" / "work"
        state = [(admin / name).read_bytes() for name in ("index", "HEAD", "logs/HEAD")]
        state += [(self.folder / ".git" / name).read_bytes() for name in ("index", "config")]
        listed = git(self.folder, "for-each-ref").split("\n")
        return (*state, [line for line in listed if REF not in line])

    def on_disk(self) -> dict[str, object]:
        """Every file of the worktree: link or mode, and content."""
        found: dict[str, object] = {}
        for folder, folders, names in os.walk(self.worktree):
            folders[:] = [name for name in folders if name != ".git"]
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in (*names, *links):
                path = os.path.join(folder, name)
                inner = os.path.relpath(path, self.worktree)
                if inner == ".git":
                    continue
                if os.path.islink(path):
                    found[inner] = os.readlink(path)
                else:
                    with open(path, "rb") as file:
                        found[inner] = (bool(os.stat(path).st_mode & 0o100), file.read())
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# -- the tree --------------------------------------------------------------------------------


def test_it_has_what_lies_there_and_touches_nothing(bench: Bench):
    commit(bench.worktree, "run.sh", "#!/bin/sh\n")
    commit(bench.worktree, "gone.txt", "gone\n")
    (bench.worktree / "run.sh").chmod(0o755)
    (bench.worktree / "gone.txt").unlink()
    bench.write("new/file.txt", "new\n")
    (bench.worktree / "link").symlink_to("/outside/of/it")
    bench.write(".gitignore", "*.log\n")
    bench.write("a.log")
    bench.write("README.md", "staged\n")
    git(bench.worktree, "add", "README.md")
    bench.write("README.md", "changed\n")
    before = bench.standing()

    tree = bench.tree()

    assert bench.standing() == before
    assert bench.files(tree) == {
        ".gitignore": ("100644", b"*.log\n"),
        "README.md": ("100644", b"changed\n"),
        "link": ("120000", b"/outside/of/it"),
        "new/file.txt": ("100644", b"new\n"),
        "run.sh": ("100755", b"#!/bin/sh\n"),
    }
    assert bench.tree() == tree


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_mark_in_the_index_hides_nothing(bench: Bench, mark: str):
    before = bench.tree()
    git(bench.worktree, "update-index", mark, "README.md")
    bench.write("README.md", "behind the mark\n")

    assert bench.files(bench.tree())["README.md"] == ("100644", b"behind the mark\n")

    (bench.worktree / "README.md").unlink()
    assert "README.md" not in bench.files(bench.tree())
    assert bench.tree() != before


def test_a_change_of_the_same_size_with_the_old_times_is_seen(bench: Bench):
    path = bench.write("a.txt", "one\n")
    bench.tree()
    found = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert bench.files(bench.tree())["a.txt"][1] == b"two\n"


def test_what_set_up_made_is_left_out_whole(bench: Bench):
    bench.write(".env", "SECRET=1\n")
    bench.write(".gitignore", "cache/\n")
    bench.write("cache/a")
    bench.known = [".env"]
    assert ".env" not in bench.files(bench.tree())

    # From a hundred on the paths that are stored with the attempt are not all of them.
    for number in range(120):
        bench.write(f"made/{number}")
    manifest.write(str(bench.worktree))
    bench.known = [f"made/{number}" for number in range(100)]
    bench.write("own.txt")
    assert set(bench.files(bench.tree())) == {"README.md", "own.txt"}

    (bench.admin / "inbox-orch-manifest.json").unlink()
    with pytest.raises(Unfit, match="cannot be told"):
        bench.tree()


def test_bytes_are_those_on_disk_and_no_filter_runs(bench: Bench, tmp_path: Path):
    ran = tmp_path / "ran"
    git(bench.folder, "config", "filter.spy.clean", f"touch {ran}; tr a-z A-Z")
    git(bench.folder, "config", "filter.spy.smudge", f"touch {ran}; tr A-Z a-z")
    git(bench.folder, "config", "core.autocrlf", "true")
    bench.write("crlf.txt", b"one\r\ntwo\r\n")
    git(bench.worktree, "add", "crlf.txt")
    attributes = "*.spy filter=spy\n*.id ident\n*.utf text working-tree-encoding=utf-16\n"
    bench.write(".gitattributes", attributes)
    bench.write("a.spy", "quiet\n")
    bench.write("a.id", "$Id$\n")
    bench.write("a.utf", "t\n".encode("utf-16"))

    first, second = bench.tree(), bench.tree()

    assert first == second
    found = {path: content for path, (_, content) in bench.files(first).items()}
    assert found["crlf.txt"] == b"one\r\ntwo\r\n"
    assert found["a.spy"] == b"quiet\n"
    assert found["a.id"] == b"$Id$\n"
    assert found["a.utf"] == "t\n".encode("utf-16")
    assert not ran.exists()


NAMES = [
    *("line\nend", 'quo"te', "-dash", "tab\tbed", "Case", "case", ":(top)x", "sp ace", "*"),
    b"not\xffutf".decode("utf-8", "surrogateescape"),
]


def test_names_of_every_kind_come_back(bench: Bench):
    for name in NAMES:
        bench.write(f"{name}/{name}", f"{name!r}\n".encode("utf-8", "backslashreplace"))
    wanted = bench.on_disk()
    kept = bench.snapshot()
    assert len(bench.files(kept.tree)) == len(NAMES) + 1

    subprocess.run(["rm", "-rf", *(f"./{n}" for n in NAMES)], cwd=bench.worktree, check=True)
    bench.restore(kept.commit)

    assert bench.on_disk() == wanted


def test_what_cannot_be_kept_is_refused_and_named(bench: Bench, monkeypatch):
    subprocess.run(["git", "init", "-q", "inner/clone"], cwd=bench.worktree, check=True)
    with pytest.raises(Unfit, match="inner/clone is a repository of its own"):
        bench.tree()
    bench.known = ["inner/clone/"]
    bench.tree()
    subprocess.run(["rm", "-rf", "inner"], cwd=bench.worktree, check=True)

    os.mkfifo(bench.worktree / "pipe")
    with pytest.raises(Unfit, match="pipe: neither a file nor a link"):
        bench.tree()
    (bench.worktree / "pipe").unlink()

    (bench.worktree / "alone").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(bench.worktree / "alone")  # the path of a socket is short
        listening.bind("socket")
        with pytest.raises(Unfit, match="alone/socket: neither"):
            bench.tree()
    bench.write(".gitignore", "socket\n")
    assert ".gitignore" in bench.files(bench.tree())


def test_a_repository_in_a_folder_with_tracked_files_is_refused(bench: Bench):
    commit(bench.worktree, "lib/a.txt", "a\n")
    subprocess.run(["git", "init", "-q", "lib"], cwd=bench.worktree, check=True)

    with pytest.raises(Unfit, match="lib is a repository of its own"):
        bench.tree()


def test_too_much_is_refused_with_the_largest_folders(bench: Bench, monkeypatch):
    monkeypatch.setattr(raw_trees, "MAX_BYTES", 3 << 20)
    bench.write("small/a", b"a" * 100)
    bench.write("big/model/data/x", bytes(3 << 20))

    with pytest.raises(Unfit, match=r"largest: big/model \(3 MiB\), small"):
        bench.tree()

    monkeypatch.setattr(raw_trees, "MAX_BYTES", 4 << 20)
    monkeypatch.setattr(raw_trees, "MOST_FILES", 1)
    with pytest.raises(Unfit, match="2 untracked files"):
        bench.tree()


def test_a_file_that_became_a_folder_and_back(bench: Bench):
    commit(bench.worktree, "a", "a file\n")
    kept = bench.snapshot()
    (bench.worktree / "a").unlink()
    bench.write("a/b/c", "in a folder\n")
    other = bench.snapshot(kept.commit)
    assert set(bench.files(other.tree)) == {"README.md", "a/b/c"}

    bench.restore(kept.commit)
    assert (bench.worktree / "a").read_text() == "a file\n"
    bench.restore(other.commit)
    assert (bench.worktree / "a/b/c").read_text() == "in a folder\n"


def test_a_folder_that_became_a_link_out_of_the_repository(bench: Bench, tmp_path: Path):
    commit(bench.worktree, "lib/a.txt", "a\n")
    kept = bench.snapshot()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("theirs\n")
    subprocess.run(["rm", "-rf", "lib"], cwd=bench.worktree, check=True)
    (bench.worktree / "lib").symlink_to(outside)
    other = bench.snapshot(kept.commit)
    assert set(bench.files(other.tree)) == {"README.md", "lib"}

    bench.restore(kept.commit)

    assert (bench.worktree / "lib/a.txt").read_text() == "a\n"
    assert (outside / "a.txt").read_text() == "theirs\n"
    bench.restore(other.commit)
    assert os.readlink(bench.worktree / "lib") == str(outside)
    assert (outside / "a.txt").read_text() == "theirs\n"


def test_what_a_sparse_checkout_leaves_out_is_not_deleted(bench: Bench):
    commit(bench.worktree, "in/a.txt", "a\n")
    commit(bench.worktree, "out/b.txt", "b\n")
    git(bench.worktree, "sparse-checkout", "set", "in")
    assert not (bench.worktree / "out").exists()
    bench.write("in/a.txt", "changed\n")

    kept = bench.snapshot()
    assert bench.files(kept.tree)["out/b.txt"][1] == b"b\n"
    assert bench.files(kept.tree)["in/a.txt"][1] == b"changed\n"

    bench.write("in/a.txt", "other\n")
    bench.restore(kept.commit)
    assert (bench.worktree / "in/a.txt").read_text() == "changed\n"
    assert not (bench.worktree / "out").exists()


def test_a_submodule_stays_as_it_is_and_a_changed_one_is_refused(bench: Bench, tmp_path: Path):
    make_repository(tmp_path / "inner")
    allow = ("-c", "protocol.file.allow=always")
    git(bench.worktree, *allow, "submodule", "--quiet", "add", str(tmp_path / "inner"), "sub")
    git(bench.worktree, "commit", "--quiet", "-m", "sub")
    kept = bench.snapshot()
    assert "160000 commit" in git(bench.folder, "ls-tree", kept.tree, "sub")

    bench.write("sub/README.md", "changed\n")
    with pytest.raises(Unfit, match="sub is a submodule: it has changes"):
        bench.tree()
    git(bench.worktree / "sub", "checkout", "--quiet", ".")
    bench.write("README.md", "changed\n")
    bench.restore(kept.commit)
    assert git(bench.worktree, "status", "--porcelain") == ""
    git(bench.worktree / "sub", "commit", "--quiet", "--allow-empty", "-m", "on")
    with pytest.raises(Unfit, match="sub is a submodule: it is at another commit"):
        bench.tree()


def test_an_index_that_is_lost_damaged_or_without_its_objects_is_made_again(bench: Bench):
    bench.write("a.txt", "a\n")
    tree = bench.tree()
    cache = bench.admin / "inbox-orch-raw-index"
    assert cache.exists()
    git(bench.folder, "gc", "--quiet", "--prune=now")
    git(bench.folder, "cat-file", "-e", tree, status=1)

    assert bench.tree() == tree
    assert bench.files(tree)["a.txt"][1] == b"a\n"
    cache.write_bytes(b"DIRC, and nothing more")
    assert bench.tree() == tree
    cache.unlink()
    assert bench.tree() == tree
    git(bench.folder, "fsck", "--strict")


def test_an_index_in_two_files_is_read_whole(bench: Bench):
    git(bench.worktree, "update-index", "--split-index")
    bench.write("a.txt", "a\n")
    assert set(bench.files(bench.tree())) == {"README.md", "a.txt"}


def test_an_empty_worktree(bench: Bench):
    git(bench.worktree, "rm", "--quiet", "README.md")
    kept = bench.snapshot()
    assert bench.files(kept.tree) == {}
    bench.write("new.txt")
    bench.restore(kept.commit)
    assert bench.on_disk() == {}


# -- whether it is the same as it was ----------------------------------------------------------


def touched_with_the_old_times(bench: Bench) -> None:
    path = bench.worktree / "a.txt"
    found = path.stat()
    path.write_text("b\n")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def converted(bench: Bench) -> None:
    """Git takes the file for the same."""
    git(bench.folder, "config", "core.autocrlf", "true")
    bench.write("a.txt", b"a\r\n")


def given_attributes(bench: Bench) -> None:
    bench.write(".gitattributes", "* text=auto eol=crlf ident\n")
    bench.write("a.txt", b"a\r\n")


def given_a_lax_setting(bench: Bench) -> None:
    git(bench.folder, "config", "core.fileMode", "false")
    (bench.worktree / "a.txt").chmod(0o755)


def hidden_in_the_index(bench: Bench) -> None:
    git(bench.worktree, "update-index", "--assume-unchanged", "README.md")
    bench.write("README.md", "behind the mark\n")


def put_into_the_index_although_ignored(bench: Bench) -> None:
    git(bench.worktree, "add", "--force", "x.log")


CHANGES = {
    "content": lambda bench: bench.write("a.txt", "b\n"),
    "the old times": touched_with_the_old_times,
    "a new file": lambda bench: bench.write("deep/new.txt"),
    "a file less": lambda bench: (bench.worktree / "a.txt").unlink(),
    "a mode": lambda bench: (bench.worktree / "a.txt").chmod(0o755),
    "a mode under a lax setting": given_a_lax_setting,
    "a conversion": converted,
    "attributes": given_attributes,
    "a mark": hidden_in_the_index,
    "an ignored file": put_into_the_index_although_ignored,
    "a file of set-up's": lambda bench: bench.known.append("a.txt"),
    "a folder for a file": lambda bench: (
        (bench.worktree / "a.txt").unlink(),
        bench.write("a.txt/b"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_its_name_is_told_anew_after_every_change(bench: Bench, change: str):
    bench.write("a.txt", "a\n")
    bench.write(".gitignore", "*.log\n")
    bench.write("x.log", "log\n")
    before = bench.tree()
    assert bench.name() == before

    CHANGES[change](bench)

    assert bench.name() == bench.tree() != before


def test_as_long_as_nothing_changes_one_call_of_git_tells_its_name(bench: Bench, monkeypatch):
    bench.write("a.txt", "a\n")
    bench.write("x.txt", "set-up\n")
    bench.known = ["x.txt"]
    tree, before = bench.tree(), bench.standing()
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(raw_index, "git", counting(raw_index.git, calls))
    monkeypatch.setattr(raw_trees, "git", counting(raw_trees.git, calls))

    assert bench.name() == tree
    assert len(calls) == 1
    assert bench.standing() == before


def counting(git_of: Callable[..., Any], calls: list[tuple[str, ...]]) -> Callable[..., Any]:
    def counted(folder: str, *words: str, **options: Any) -> Any:
        calls.append(words)
        return git_of(folder, *words, **options)

    return counted


def test_what_cannot_be_kept_is_refused_as_long_as_nothing_else_changes_too(bench: Bench):
    bench.tree()
    os.mkfifo(bench.worktree / "pipe")
    with pytest.raises(Unfit, match="pipe"):
        bench.name()
    (bench.worktree / "pipe").unlink()
    git(bench.worktree, "init", "--quiet", "inner")
    with pytest.raises(Unfit, match="inner"):
        bench.name()


def test_an_index_that_could_not_be_kept_is_not_taken_for_the_last_one(bench: Bench, monkeypatch):
    bench.write("a.txt", "a\n")
    first = bench.tree()
    bench.write("a.txt", "changed\n")
    with monkeypatch.context() as full:
        full.setattr(raw_index.os, "replace", failing)
        second = bench.tree()
    assert first != second
    bench.write("a.txt", "a\n")

    assert bench.name() == first


def failing(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_is_only_meant_to_be_added_is_not_in_the_index(bench: Bench):
    bench.write("empty.txt", "")
    git(bench.worktree, "add", "empty.txt")
    git(bench.worktree, "commit", "--quiet", "-m", "Empty")
    git(bench.worktree, "rm", "--quiet", "--cached", "empty.txt")
    git(bench.worktree, "add", "--intent-to-add", "empty.txt")

    kept = bench.snapshot()

    assert list(bench.files(kept.index_tree)) == ["README.md"]
    assert set(bench.files(kept.tree)) == {"README.md", "empty.txt"}


# -- snapshots -------------------------------------------------------------------------------


def test_a_snapshot_keeps_tree_head_and_index_in_a_chain(bench: Bench):
    first = bench.snapshot()
    head = git(bench.worktree, "rev-parse", "HEAD")
    assert (first.head, first.tree) == (head, git(bench.folder, "rev-parse", "HEAD^{tree}"))
    assert first.index_tree == first.tree
    assert git(bench.folder, "rev-parse", REF) == first.commit
    assert bench.snapshot(first.commit) == first
    # As one that was killed before it could write down the first.
    assert bench.snapshot(None) == first

    bench.write("README.md", "staged\n")
    git(bench.worktree, "add", "README.md")
    bench.write("README.md", "on disk\n")
    before = bench.standing()
    second = bench.snapshot(first.commit)

    assert bench.standing() == before
    assert git(bench.folder, "show", f"{second.index_tree}:README.md") == "staged"
    assert git(bench.folder, "show", f"{second.tree}:README.md") == "on disk"
    parents = git(bench.folder, "rev-list", "--parents", "-1", second.commit).split()[1:]
    assert parents[:2] == [first.commit, head]
    git(bench.folder, "gc", "--quiet", "--prune=now")
    git(bench.folder, "cat-file", "-e", second.index_tree)


def test_a_ref_that_something_else_has_moved_is_not_moved(bench: Bench):
    first = bench.snapshot()
    main = git(bench.folder, "rev-parse", "main")
    git(bench.folder, "update-ref", REF, main)
    bench.write("a.txt")

    with pytest.raises(Exception, match="does not come after"):
        bench.snapshot(first.commit)
    assert git(bench.folder, "rev-parse", REF) == main


# -- going back ------------------------------------------------------------------------------


def dirty(bench: Bench) -> snapshots.Snapshot:
    """A snapshot of a worktree in every way different from its last commit."""
    commit(bench.worktree, "one.txt", "one\n")
    commit(bench.worktree, "two.txt", "two\n")
    bench.write(".gitignore", "*.log\n")
    bench.write("one.txt", "staged\n")
    git(bench.worktree, "add", "one.txt")
    bench.write("one.txt", "on disk\n")
    (bench.worktree / "two.txt").unlink()
    bench.write("new/file.txt", "new\n").chmod(0o755)
    (bench.worktree / "link").symlink_to("one.txt")
    return bench.snapshot()


def spoil(bench: Bench) -> None:
    """What a stage may do after it."""
    git(bench.worktree, "add", "--all")
    git(bench.worktree, "commit", "--quiet", "-m", "all")
    bench.write("one.txt", "spoiled\n")
    bench.write("more/x.txt")
    (bench.worktree / "link").unlink()
    bench.write("link", "a file now\n")
    (bench.worktree / "new/file.txt").chmod(0o644)
    git(bench.worktree, "rm", "--quiet", "--cached", "README.md")


def test_going_back_brings_files_index_and_head(bench: Bench):
    kept = dirty(bench)
    wanted, said = bench.on_disk(), git(bench.worktree, "status", "--porcelain", "-uall")
    spoil(bench)
    bench.write("kept.log", "ignored\n")
    bench.write(".env", "set-up\n")
    bench.known = [".env"]
    spoiled = bench.on_disk()
    standing = git(bench.folder, "stash", "list"), (bench.folder / ".git/config").read_bytes()

    before = bench.restore(kept.commit)

    also = {"kept.log": (False, b"ignored\n"), ".env": (False, b"set-up\n")}
    assert bench.on_disk() == {**wanted, **also}
    status = git(bench.worktree, "status", "--porcelain", "-uall")
    assert status.replace("?? .env\n", "") == said
    assert git(bench.worktree, "rev-parse", "HEAD") == kept.head
    assert git(bench.worktree, "symbolic-ref", "HEAD") == "refs/heads/work"
    assert bench.snapshot(before)._replace(commit="") == kept._replace(commit="")
    assert standing == (
        git(bench.folder, "stash", "list"),
        (bench.folder / ".git/config").read_bytes(),
    )

    bench.restore(before)
    assert bench.on_disk() == spoiled
    git(bench.folder, "fsck", "--strict")


@pytest.mark.parametrize("form", ["--object-format=sha256", "--ref-format=reftable"])
def test_going_back_in_another_format_of_repository(tmp_path: Path, form: str):
    bench = Bench(tmp_path, form)
    kept = dirty(bench)
    wanted, said = bench.on_disk(), git(bench.worktree, "status", "--porcelain", "-uall")
    spoil(bench)
    git(bench.worktree, "checkout", "--quiet", "--detach")

    before = bench.restore(kept.commit)

    assert bench.on_disk() == wanted
    assert git(bench.worktree, "status", "--porcelain", "-uall") == said
    assert git(bench.worktree, "symbolic-ref", "HEAD") == "refs/heads/work"
    assert facts(bench.repository, kept.tree, before).files != ()
    conflict(bench)
    kept = bench.snapshot()
    for verb in ("cherry-pick", "merge"):
        git(bench.worktree, "stash", "--quiet", "--include-untracked")
        git(bench.worktree, verb, "theirs", status=1)
        bench.restore(kept.commit)
        assert "progress" not in git(bench.worktree, "status")


def test_a_detached_head_and_another_branch_come_back_to_the_attempts_own(bench: Bench):
    kept = bench.snapshot()
    git(bench.worktree, "switch", "--quiet", "-c", "elsewhere")
    mine = commit(bench.worktree, "x.txt", "x\n")
    bench.restore(kept.commit)
    assert git(bench.worktree, "symbolic-ref", "HEAD") == "refs/heads/work"
    assert git(bench.folder, "rev-parse", "elsewhere") == mine

    git(bench.worktree, "checkout", "--quiet", "--detach")
    detached = bench.snapshot()
    lost = commit(bench.worktree, "y.txt", "y\n")
    before = bench.restore(detached.commit)
    assert git(bench.worktree, "symbolic-ref", "-q", "HEAD", status=1) == ""
    assert git(bench.worktree, "status", "--porcelain") == ""
    git(bench.folder, "merge-base", "--is-ancestor", lost, before)


def test_a_branch_that_went_away_or_back_comes_back_and_its_commits_stay(bench: Bench):
    commit(bench.worktree, "x.txt", "x\n")
    kept = bench.snapshot()
    git(bench.worktree, "checkout", "--quiet", "--detach", "main")
    git(bench.folder, "branch", "--quiet", "-D", "work")
    bench.restore(kept.commit)
    assert git(bench.folder, "rev-parse", "work") == kept.head

    git(bench.worktree, "checkout", "--quiet", "-b", "other", "main")
    tip = git(bench.folder, "commit-tree", "-p", "work", "-m", "lone", "work^{tree}")
    git(bench.folder, "update-ref", "refs/heads/work", tip)
    before = bench.restore(kept.commit)
    git(bench.folder, "merge-base", "--is-ancestor", tip, before)


def test_a_branch_that_is_checked_out_elsewhere_is_refused(bench: Bench, tmp_path: Path):
    kept = bench.snapshot()
    git(bench.worktree, "checkout", "--quiet", "--detach")
    git(bench.folder, "worktree", "add", "--quiet", str(tmp_path / "other"), "work")
    bench.write("README.md", "changed\n")

    with pytest.raises(Unfit, match=r"work is checked out in .*other, too"):
        bench.restore(kept.commit)
    assert (bench.worktree / "README.md").read_text() == "changed\n"


def conflict(bench: Bench) -> None:
    commit(bench.worktree, "README.md", "ours\n")
    git(bench.worktree, "branch", "theirs", "HEAD~1")
    blob = subprocess.run(
        ["git", "-C", str(bench.folder), "hash-object", "-w", "--stdin"],
        input=b"theirs\n",
        stdout=subprocess.PIPE,
    ).stdout.decode()
    tree = subprocess.run(
        ["git", "-C", str(bench.folder), "mktree"],
        input=f"100644 blob {blob.strip()}\tREADME.md\n".encode(),
        stdout=subprocess.PIPE,
    ).stdout.decode()
    other = git(bench.folder, "commit-tree", "-p", "theirs", "-m", "theirs", tree.strip())
    git(bench.folder, "update-ref", "refs/heads/theirs", other)


@pytest.mark.parametrize("verb", ["merge", "rebase", "cherry-pick"])
def test_what_was_begun_is_at_its_end_and_its_commits_are_kept(bench: Bench, verb: str):
    conflict(bench)
    kept = bench.snapshot()
    theirs = git(bench.folder, "rev-parse", "theirs")
    git(bench.worktree, verb, "theirs", status=1)
    marked = bench.on_disk()

    before = bench.restore(kept.commit)

    assert git(bench.worktree, "status", "--porcelain") == ""
    assert "progress" not in git(bench.worktree, "status")
    assert git(bench.worktree, "symbolic-ref", "HEAD") == "refs/heads/work"
    assert bench.on_disk()["README.md"] == (False, b"ours\n")
    git(bench.folder, "update-ref", "-d", "refs/heads/theirs")
    git(bench.folder, "gc", "--quiet", "--prune=now")
    git(bench.folder, "cat-file", "-e", theirs)
    assert bench.files(before)["README.md"][1] == marked["README.md"][1]
    with pytest.raises(Unfit, match=f"in the middle of a {verb}"):
        bench.restore(before)


def test_a_commit_that_is_no_snapshot_is_refused(bench: Bench):
    with pytest.raises(Exception, match="is no snapshot of a worktree"):
        bench.restore(git(bench.folder, "rev-parse", "main"))


def test_files_that_are_ignored_since_are_kept_before_they_are_written_over(bench: Bench):
    bench.write("a.txt", "one\n")
    kept = bench.snapshot()
    bench.write("a.txt", "two\n")
    bench.write(".gitignore", "*\n")

    before = bench.restore(kept.commit)

    assert bench.on_disk()["a.txt"] == (False, b"one\n")
    assert bench.on_disk()[".gitignore"] == (False, b"*\n")
    assert bench.files(before)["a.txt"][1] == b"two\n"


def test_ignored_files_in_the_place_of_a_file_are_never_lost(bench: Bench):
    bench.write("a", "one\n")
    kept = bench.snapshot()
    (bench.worktree / "a").unlink()
    bench.write(".gitignore", "*.log\n")
    bench.write("a/b.log", "precious\n")

    with pytest.raises(Unfit, match=r"a/b\.log is in the way of a"):
        bench.restore(kept.commit)
    assert (bench.worktree / "a/b.log").read_text() == "precious\n"


def test_an_index_that_another_program_has_is_told(bench: Bench, monkeypatch):
    monkeypatch.setattr("inbox_orch.orch.git.harvest._PATIENCE_PAUSES", 2)
    kept = bench.snapshot()
    git(bench.worktree, "rm", "--quiet", "--cached", "README.md")
    bench.write("new.txt")
    (bench.admin / "index.lock").touch()
    before = bench.on_disk(), bench.standing()

    with pytest.raises(Unfit, match=r"index\.lock is there"):
        bench.restore(kept.commit)
    assert (bench.on_disk(), bench.standing()) == before

    (bench.admin / "index.lock").unlink()
    bench.restore(kept.commit)
    assert git(bench.worktree, "status", "--porcelain") == ""


# -- putting back ----------------------------------------------------------------------------


def test_what_a_gate_wrote_is_undone_and_kept(bench: Bench):
    git(bench.folder, "config", "core.autocrlf", "true")
    bench.write("crlf.txt", b"one\r\n")
    git(bench.worktree, "add", "crlf.txt")
    git(bench.worktree, "commit", "--quiet", "-m", "crlf")
    kept = dirty(bench)
    wanted, said = bench.on_disk(), git(bench.worktree, "status", "--porcelain", "-uall")
    index = git(bench.worktree, "ls-files", "--stage")
    bench.write("crlf.txt", b"two\r\n")
    bench.write("one.txt", "formatted\n")
    bench.write("report/x.xml", "<x/>\n")
    bench.write("ignored.log", "stays\n")
    (bench.worktree / "new/file.txt").unlink()
    bench.write(".env", "set-up\n")
    bench.known = [".env"]

    changed = bench.put_back(kept.tree)

    assert sorted(changed) == ["crlf.txt", "new/file.txt", "one.txt", "report/x.xml"]
    (bench.worktree / ".env").unlink()
    (bench.worktree / "ignored.log").unlink()
    assert bench.on_disk() == wanted
    assert git(bench.worktree, "status", "--porcelain", "-uall") == said
    assert git(bench.worktree, "ls-files", "--stage") == index
    assert bench.files(REF)["report/x.xml"][1] == b"<x/>\n"
    assert bench.put_back(kept.tree) == ()


def test_what_was_there_at_set_up_is_never_taken_away(bench: Bench):
    bench.write(".env", "set-up\n")
    bench.known = [".env"]
    kept = bench.snapshot()
    git(bench.worktree, "add", "--force", ".env")

    assert bench.put_back(kept.tree) == ()
    bench.restore(kept.commit)
    assert (bench.worktree / ".env").read_text() == "set-up\n"
    assert git(bench.worktree, "status", "--porcelain") == "?? .env"


# -- many files ------------------------------------------------------------------------------

MANY = 20_000 if LONG else 2_000
GOAL_SECONDS = 0.6
STATUS_SECONDS = 0.1 * MANY / 20_000
"""So long git itself looks where nothing else is at work."""


def test_many_files_are_kept_in_little_time(bench: Bench):
    content = bytes(600)
    for number in range(MANY):
        path = bench.worktree / f"{number % 10}" / f"{number // 100}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\n" % number + content)
    git(bench.worktree, "add", "--all")
    git(bench.worktree, "commit", "--quiet", "-m", "many")
    before = bench.snapshot()
    changes = iter(range(1000))

    def trial() -> float:
        begun = time.monotonic()
        git(bench.worktree, "status", "--porcelain")
        slow = max(1.0, (time.monotonic() - begun) / STATUS_SECONDS)
        number = next(changes)
        bench.write("0/0/0", f"changed {number}\n")
        bench.write(f"new/{number}")
        begun = time.monotonic()
        kept = bench.snapshot()
        taken = time.monotonic() - begun
        found = facts(bench.repository, before.tree, kept.tree)
        assert {"0/0/0", f"new/{number}"} <= {change.path for change in found.files}
        assert len(found.files) == number + 2
        return taken / slow

    promptly(trial, GOAL_SECONDS)
