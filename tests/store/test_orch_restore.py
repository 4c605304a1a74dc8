"""What clean-up has salvaged comes back byte for byte, whatever git would make of it."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from inbox_orch.orch.git import salvage
from support.buses import refused
from support.commands import command_path
from support.predicaments import Scene
from support.processes import until, until_idle
from support.runs import Site, commit, git
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def scene(site: Site) -> Scene:
    return Scene(site)


def tree_of(folder: Path) -> dict[bytes, tuple[object, ...]]:
    """Every file below a folder: kind, executable, content or target."""
    found: dict[bytes, tuple[object, ...]] = {}
    top = os.fsencode(folder)
    for inner, folders, files in os.walk(top):
        if b".git" in folders:
            folders.remove(b".git")
        for name in (*files, *(f for f in folders if os.path.islink(os.path.join(inner, f)))):
            path = os.path.join(inner, name)
            if name == b".git":
                continue
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[os.path.relpath(path, top)] = ("link", os.readlink(path))
            else:
                with open(path, "rb") as file:
                    content = file.read()
                found[os.path.relpath(path, top)] = ("file", bool(mode & 0o100), content)
    return found


def restored(scene: Scene, **options) -> Path:
    """The worktree after a forced clean-up and a restore."""
    scheduler = scene.site.scheduler
    (item,) = scheduler.cleanup(scene.run, force=True).items
    assert item.action == "removed", item
    assert item.salvage is not None
    run, listed = scheduler.attempt_named(item.attempt.id, None)
    return Path(scheduler.attempt_restore(run, listed, **options).folder)


def ended(scene: Scene) -> None:
    scene.site.fail(scene.item, fatal=True)
    scene.site.scheduler.reconcile(scene.run)


def write(path: Path | bytes, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def test_files_links_and_executable_bits_come_back(scene: Scene):
    tree = scene.worktree
    commit(tree, "tool.sh", "#!/bin/sh\n")
    commit(tree, "gone.txt", "gone\n")
    (tree / "tool.sh").chmod(0o755)
    (tree / "gone.txt").unlink()
    (tree / "link").symlink_to("nowhere")
    (tree / "absolute").symlink_to("/etc/hostname")
    (tree / "folder-link").symlink_to(".")
    write(tree / "bytes.bin", bytes(range(256)) * 10)
    write(tree / "empty", b"")
    write(tree / "a.env", b"ignored\r\n")
    (tree / "new.sh").write_text("#!/bin/sh\n")
    (tree / "new.sh").chmod(0o755)
    ended(scene)
    before = tree_of(tree)

    assert tree_of(restored(scene)) == before


@pytest.mark.parametrize(
    "name",
    [
        b"new\nline",
        b"not-\xff-utf8",
        b'"quoted\\"',
        b"tab\tin it",
        b"-option",
        b" space ",
        b"\xc3\xbc",
    ],
)
def test_odd_names_come_back(scene: Scene, name: bytes):
    write(os.fsencode(scene.worktree) + b"/" + name, b"content of it\n")
    os.symlink(name, os.fsencode(scene.worktree) + b"/link-to-" + name)
    ended(scene)
    before = tree_of(scene.worktree)

    assert tree_of(restored(scene)) == before


def test_no_filter_alters_what_was_changed(scene: Scene):
    """Line ends, a clean filter as of LFS, and an encoding."""
    repository, tree = scene.repository, scene.worktree
    git(repository, "config", "filter.pointer.clean", "echo pointer")
    git(repository, "config", "filter.pointer.smudge", "echo smudged")
    (tree / ".gitattributes").write_text(
        "*.txt text eol=lf\n*.big filter=pointer\n*.utf16 text working-tree-encoding=UTF-16\n"
    )
    git(tree, "add", ".gitattributes")
    git(tree, "commit", "--quiet", "--message", "Attributes")
    write(tree / "mixed.txt", b"one\r\ntwo\nthree\r\n")
    write(tree / "huge.big", b"the real content\n")
    write(tree / "text.utf16", "ä".encode("utf-16"))
    ended(scene)
    before = tree_of(tree)

    assert tree_of(restored(scene)) == before


def test_what_was_not_changed_comes_back_as_it_was_checked_out(site: Site):
    write(site.repository / ".gitattributes", b"*.txt text eol=crlf\n")
    commit(site.repository, "lines.txt", "one\ntwo\n")
    scene = Scene(site)
    assert (scene.worktree / "lines.txt").read_bytes() == b"one\r\ntwo\r\n"
    scene.write("new.md")
    ended(scene)
    before = tree_of(scene.worktree)

    assert tree_of(restored(scene)) == before


def ended_with_a_filter(scene: Scene) -> None:
    """An attempt with a file that came through `filter.tool`, and one that would go through it."""
    git(scene.repository, "config", "filter.tool.clean", "cat")
    git(scene.repository, "config", "filter.tool.smudge", "cat")
    (scene.worktree / ".gitattributes").write_text("*.dat filter=tool\n")
    commit(scene.worktree, "old.dat", "old\n")
    scene.write("new.dat")
    ended(scene)


def test_a_filter_that_works_no_more_does_not_keep_the_rest_back(scene: Scene):
    ended_with_a_filter(scene)
    before = tree_of(scene.worktree)
    git(scene.repository, "config", "filter.tool.smudge", "false")
    git(scene.repository, "config", "filter.tool.required", "true")
    scheduler = scene.site.scheduler
    scheduler.cleanup(scene.run, force=True)

    back = scheduler.attempt_restore(*scheduler.attempt_named("a/1", None))

    assert back.restored.unfiltered is not None
    assert tree_of(Path(back.folder)) == before


def test_a_signal_waits_for_the_git_that_checks_out_and_nothing_is_left(
    scene: Scene, tmp_path: Path
):
    """Left behind, it would go on writing into the folder that is taken away."""
    ended_with_a_filter(scene)
    scene.site.scheduler.cleanup(scene.run, force=True)
    fifo, begun, into = tmp_path / "fifo", tmp_path / "begun", tmp_path / "back" / "files"
    os.mkfifo(fifo)
    go = os.open(fifo, os.O_RDWR)
    held = f"touch '{begun}'; read -r go <'{fifo}'; cat"
    git(scene.repository, "config", "filter.tool.smudge", held)
    restoring = subprocess.Popen(
        [command_path("orch"), "attempt", "restore", "a/1", "--into", str(into)],
        cwd=scene.repository,
        stderr=subprocess.PIPE,
    )
    until(begun.exists)
    restoring.send_signal(signal.SIGTERM)
    until_idle(restoring.pid)
    os.write(go, b"go\n")
    _, said = restoring.communicate(timeout=PATIENCE_SECONDS)
    os.close(go)

    assert (restoring.returncode, b"stopped by a signal" in said) == (143, True)
    assert list(into.parent.iterdir()) == []


def test_the_index_and_each_stage_of_a_conflict_are_kept(scene: Scene):
    tree = scene.worktree
    commit(tree, "both.txt", "base\n")
    base = git(tree, "rev-parse", "HEAD")
    theirs = commit(tree, "both.txt", "theirs\n")
    git(tree, "reset", "--quiet", "--hard", base)
    commit(tree, "both.txt", "ours\n")
    git(tree, "merge", "--quiet", theirs, status=1)
    write(tree / "staged.txt", b"staged\n")
    git(tree, "add", "staged.txt")
    write(tree / "staged.txt", b"and changed again\n")
    ended(scene)

    restored(scene)

    scheduler = scene.site.scheduler
    shown = scheduler.attempt_show(*scheduler.attempt_named("a/1", None))
    parts = shown.parts.named
    assert sorted(parts) == ["Changed", "Index", "Stage-1", "Stage-2", "Stage-3"]
    contents = [git(scene.repository, "show", f"{parts[f'Stage-{n}']}:both.txt") for n in (1, 2, 3)]
    assert contents == ["base", "ours", "theirs"]
    assert git(scene.repository, "show", f"{parts['Index']}:staged.txt") == "staged"
    assert theirs in shown.parts.kept
    ref = shown.salvage_ref
    assert git(scene.repository, "show", f"{ref}:staged.txt") == "and changed again"
    assert "<<<<<<<" in git(scene.repository, "show", f"{ref}:both.txt")


def test_a_folder_in_the_place_of_a_file_comes_back(scene: Scene):
    (scene.worktree / "README.md").unlink()
    scene.write("README.md/now-a-folder.txt")
    ended(scene)
    before = tree_of(scene.worktree)

    assert tree_of(restored(scene)) == before


def test_a_file_that_was_only_announced_to_the_index_comes_back(scene: Scene):
    scene.write("announced.txt")
    git(scene.worktree, "add", "--intent-to-add", "announced.txt")
    ended(scene)
    before = tree_of(scene.worktree)

    assert tree_of(restored(scene)) == before


def test_a_bare_repository_whose_refs_are_packed_comes_back_as_one(scene: Scene):
    ended(scene)
    bare = scene.worktree / "mirror.git"
    git(scene.worktree, "clone", "--quiet", "--mirror", str(scene.repository), str(bare))
    assert not any(path.is_file() for path in (bare / "refs").rglob("*"))

    folder = restored(scene)

    assert git(folder / "mirror.git", "log", "--format=%s", "main")


def test_many_files_come_back(scene: Scene):
    for number in range(300):
        scene.write(f"many/{number % 7}/{number}.txt")
    ended(scene)
    before = tree_of(scene.worktree)

    assert tree_of(restored(scene)) == before


def test_an_empty_folder_will_do_and_a_full_one_is_left_alone(scene: Scene, tmp_path: Path):
    scene.write("left.txt")
    ended(scene)
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    full.mkdir()
    (full / "mine.txt").write_text("mine")

    assert (restored(scene, into=str(empty)) / "left.txt").exists()

    scheduler = scene.site.scheduler
    run, listed = scheduler.attempt_named("a", None)
    for taken in (full, empty, full / "mine.txt"):
        with refused("file_exists"):
            scheduler.attempt_restore(run, listed, into=str(taken))
    assert os.listdir(full) == ["mine.txt"]
    assert sorted(os.listdir(tmp_path)) == sorted({"empty", "full", "project", "worktrees"}), (
        "nothing half done is left"
    )


@pytest.mark.parametrize("inside", [".git/refs/heads", ".inbox/artifacts"])
def test_nothing_is_brought_back_into_the_folders_of_git_or_the_database(scene: Scene, inside: str):
    scene.write("left.txt")
    ended(scene)
    into = Path(scene.repository, inside, "restored")

    with refused("usage"):
        restored(scene, into=str(into))

    assert not into.exists()


def test_a_restore_says_where_a_worktree_is_that_was_not_salvaged(scene: Scene):
    scene.delivered()
    scheduler = scene.site.scheduler
    with refused("not_found") as failure:
        scheduler.attempt_restore(*scheduler.attempt_named("a/1", None))
    assert str(scene.worktree) in failure.value.hint

    scheduler.cleanup(scene.run)

    with refused("not_found") as failure:
        scheduler.attempt_restore(*scheduler.attempt_named("a/1", None))
    assert ".trash" in failure.value.hint


def test_both_folders_can_be_moved_back_from_the_trash(scene: Scene):
    scene.write("left.txt")
    ended(scene)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items
    admin = scene.repository / ".git" / "inbox-orch-trash" / item.attempt.id
    (scene.repository / ".git" / "worktrees").mkdir(exist_ok=True)

    for ref, commit_id, _ in item.deleted_refs:
        git(scene.repository, "update-ref", ref, commit_id)
    os.rename(item.trash, scene.worktree)
    os.rename(admin, scene.repository / ".git" / "worktrees" / "a-1")

    assert git(scene.worktree, "status", "--porcelain") == "?? left.txt"


def test_the_thread_is_told_where_the_salvage_is(scene: Scene):
    scene.write("left.txt")
    ended(scene)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    told = scene.site.worker.messages(scene.item["thread"])[-1]

    assert told.sender == scene.run.leader
    assert salvage.ref_of(item.attempt.id) in str(told.body)
    assert f"orch attempt restore {item.attempt.id}" in str(told.body)
    unread = scene.site.worker.fetch(mailboxes=["w1", "workers"])
    assert told.id in [message.id for message, _ in unread.items]
