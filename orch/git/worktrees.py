"""Making a worktree for an attempt, and taking away one that was never handed out.

Adding and removing happen under one lock per repository: without it, eight at once fail in up
to 29 % of tries. Only that step is locked; the files are checked out outside of it.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.folders import make_private_folders
from inbox_orch.shared.store.gate import Gate

from .commands import disk_full, git, is_transient, output_of, pause
from .failures import failure
from .repository import Repository
from .standing import require_here

LOCK_SECONDS = 60.0
_TRIES = 6
_LOCK_NAME = "inbox-orch.lock"
_MOST_WORKERS = 8
# What git-lfs installs, taken out: the pointers stay what they are, also without its program.
_WITHOUT_LFS = (
    *("-c", "filter.lfs.smudge=", "-c", "filter.lfs.process="),
    *("-c", "filter.lfs.required=false"),
)
# No template either: one may bring hooks of the user's into the clone of a submodule.
_SUBMODULE_VARIABLES = {"GIT_TEMPLATE_DIR": "", "GIT_TERMINAL_PROMPT": "0"}


class Place(NamedTuple):
    """Where an attempt works: everything is unique to it and never used again.

    Without a `branch` ("") its HEAD is detached. `reason` is that of git's lock on the worktree; it
    tells ours from those of others.
    """

    branch: str
    path: str
    base_commit: str
    reason: str


class Filling(NamedTuple):
    """What a worktree gets: `lfs` is whether files in LFS come as themselves, not as pointers."""

    lfs: bool = True
    submodules: bool = False


@contextlib.contextmanager
def locked(repository: Repository) -> Iterator[int]:
    """Be the only one that adds or removes worktrees of the repository; gives the lock's
    descriptor.

    Error `busy` after a minute: never goes ahead without the lock.
    """
    gate = Gate(os.path.join(repository.common_directory, _LOCK_NAME))
    _acquire(gate, f"the worktrees of {repository.path}")
    try:
        yield gate.descriptor
    finally:
        gate.release()


class Hold:
    """The lock of one attempt's worktree, while this process has it. `git_may_run`: a git that
    shares it may still be at work when this process has gone on."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.git_may_run = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[int]:
        """Start git with the lock. A signal leaves it behind; any other end waits for it."""
        self.git_may_run = True
        try:
            yield self.descriptor
        except Exception:
            self.git_may_run = False
            raise
        self.git_may_run = False


def make(repository: Repository, place: Place, hold: Hold, filling: Filling) -> None:
    """Make branch and worktree, and check the files out, in the hold of `alone`.

    Whatever an earlier, killed try for the same attempt has left is cleared first: the
    caller has seen, in the hold, that it was not handed out. Errors: `git_failed` (also when
    something that is not ours is in the place), `busy`, `disk_full`, `read_only`, `io_error`.
    """
    with hold.shared() as attempt_lock:
        with locked(repository) as repository_lock:
            _add(repository, place, (attempt_lock, repository_lock))
        common = repository.common_directory
        _fill(place.path, common, place.base_commit, filling, (attempt_lock,))


def _add(repository: Repository, place: Place, locks: tuple[int, ...]) -> None:
    """`git worktree add`, again when it has met another tool's half-done work: those take no
    lock of ours."""
    left = _TRIES
    branch = ("--no-track", "-b", place.branch) if place.branch else ("--detach",)
    while True:
        left -= 1
        _clear(repository, place)
        try:
            if os.path.lexists(place.path):
                raise InboxOrchError(
                    "git_failed",
                    f"{place.path} is there already, and is not ours",
                    hint="move it away",
                    details={"path": place.path},
                )
            make_private_folders(os.path.dirname(place.path))
        except OSError as error:
            raise failure(place.path, error) from error
        try:
            with repository.marked(_refs_of(place)) as mark:
                git(
                    repository.path,
                    *("worktree", "add", "--quiet", "--no-checkout", "--lock"),
                    *("--reason", place.reason, *branch, place.path, place.base_commit),
                    shared_locks=(*locks, *mark.descriptors),
                )
        except InboxOrchError as error:
            if left == 0 or not is_transient(error):
                raise
            pause()
        else:
            return


def _refs_of(place: Place) -> dict[str, str]:
    return {f"refs/heads/{place.branch}": place.base_commit} if place.branch else {}


def unmake(repository: Repository, place: Place) -> None:
    """Take away a worktree that was made for an attempt and never handed out, in the hold of
    `alone`."""
    with locked(repository):
        _clear(repository, place)


@contextlib.contextmanager
def alone(repository: Repository, place: Place, seconds: float | None = None) -> Iterator[Hold]:
    """Be the only one that makes this attempt's worktree, hands it out or takes it away. Error
    `busy` after so many seconds, by default a minute.

    To be held until it is written down what has become of the attempt: the next
    holder of the lock looks there, and must not take the worktree for one not handed out. The git
    processes share the lock: when their parent is killed they go on for a while, and a process that
    finishes its work must wait for their end. The lock lies beside the repository's own, so
    that it can be had when the disk of the worktrees is full.
    """
    name = (place.branch or os.path.basename(place.path)).replace("/", "-")
    path = os.path.join(repository.common_directory, f"inbox-orch-{name}.lock")
    while True:
        gate = Gate(path)
        _acquire(gate, place.path, seconds)
        if gate.in_place:
            break
        gate.release()  # the last holder has removed the file: take the new one
    hold = Hold(gate.descriptor)
    try:
        yield hold
    finally:
        # A git that was left behind holds the lock; without the file, that would not be seen.
        # Where it cannot be removed, `forget_locks` does it later.
        if not hold.git_may_run:
            with contextlib.suppress(OSError):
                os.unlink(path)
        gate.release()


def forget_locks(repository: Repository, run_name: str) -> None:
    """Remove the locks of a run's attempts that are not held: a process that was killed after it
    had written down what became of the attempt has left one, and nothing else removes it."""
    folder = repository.common_directory
    for name in os.listdir(folder):
        if name.startswith(f"inbox-orch-orch-{run_name}-") and name.endswith(".lock"):
            gate = Gate(os.path.join(folder, name))
            with contextlib.suppress(InboxOrchError, OSError):
                gate.acquire(0)
                if gate.in_place:
                    os.unlink(os.path.join(folder, name))
            gate.release()


def _acquire(gate: Gate, what: str, at_most: float | None = None) -> None:
    seconds = LOCK_SECONDS if at_most is None else at_most
    try:
        gate.acquire(seconds)
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        raise InboxOrchError(
            "busy",
            f"another process has been changing {what} for {seconds:g} s",
            hint="try again; `orch reconcile` finishes what a killed process has left",
            details=error.details,
        ) from error


def _clear(repository: Repository, place: Place) -> None:
    """Remove worktree, folder and branch of a try that did not come to its end.

    Git killed in the middle leaves an entry with an all-zero HEAD and the lock "initializing",
    which `worktree prune` skips and which breaks every later fetch. We remove it ourselves, in
    an order in which a death at any point leaves what tells that it is ours till last.
    """
    try:
        entry = _entry_of(repository, place)
        if _is_folder_of_ours(place, entry):
            _remove_folder(place.path, last=(".git",))
        if entry is not None:
            _remove_folder(entry, last=("gitdir", "locked"))
        branch = f"refs/heads/{place.branch}"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(os.path.join(repository.common_directory, f"{branch}.lock"))
    except OSError as error:
        raise failure(place.path, error) from error
    if repository.ref_commit(branch) == place.base_commit:
        repository.drop(branch, place.base_commit)


def half_made(repository: Repository) -> list[str]:
    """Entries of worktrees, ours or not, whose making was cut short: their HEAD is all zeros, or
    they are still marked as being initialised."""
    entries = os.path.join(repository.common_directory, "worktrees")
    names = sorted(os.listdir(entries)) if os.path.isdir(entries) else []
    return [
        os.path.join(entries, name)
        for name in names
        if set(_text(os.path.join(entries, name, "HEAD"))) == {"0"}
        or _text(os.path.join(entries, name, "locked")) == "initializing"
    ]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _entry_of(repository: Repository, place: Place) -> str | None:
    """The folder below `worktrees/` of the git directory that git made for the attempt.

    Found by the reason of its lock, which git writes before anything else, and which is still
    there when the rest is not (gitrepository-layout(5)).
    """
    entries = os.path.join(repository.common_directory, "worktrees")
    for name in os.listdir(entries) if os.path.isdir(entries) else ():
        entry = os.path.join(entries, name)
        if _text(os.path.join(entry, "locked")) == place.reason:
            return entry
        if name.startswith(os.path.basename(place.path)):
            # Git was killed before it could write anything. Only an empty folder goes.
            with contextlib.suppress(OSError):
                os.rmdir(entry)
    return None


def _is_folder_of_ours(place: Place, entry: str | None) -> bool:
    """Whether what is at the attempt's path was made by git for it: it points back at its entry,
    or it is empty still."""
    if os.path.islink(place.path) or not os.path.isdir(place.path):
        return False
    if not os.listdir(place.path):
        return True
    pointer = _text(os.path.join(place.path, ".git")).removeprefix("gitdir: ")
    target = os.path.realpath(os.path.join(place.path, pointer))
    return entry is not None and target == os.path.realpath(entry)


def _remove_folder(path: str, last: tuple[str, ...]) -> None:
    """Remove a folder with all that is in it, and the files named `last` at the end."""
    for name in os.listdir(path):
        inner = os.path.join(path, name)
        if name in last:
            continue
        if os.path.isdir(inner) and not os.path.islink(inner):
            _remove_tree(inner)
        else:
            os.unlink(inner)
    for name in last:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(path, name))
    os.rmdir(path)


def _remove_tree(path: str) -> None:
    """A folder with all that is in it, also where a set-up has made folders read-only."""
    import shutil

    try:
        shutil.rmtree(path)
    except PermissionError:
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for name in names:
                inner = os.path.join(folder, name)
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)
        shutil.rmtree(path)


def make_read_only(path: str) -> None:
    """Take the right to write from every file of a worktree, so that nothing is changed there by
    mistake. Folders keep it: the worktree can still be taken away. Git sees no change in it."""
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            inner = os.path.join(folder, name)
            mode = os.lstat(inner).st_mode
            if stat.S_ISREG(mode) and name != ".git":
                os.chmod(inner, stat.S_IMODE(mode) & ~0o222)


# -- the files, outside of the repository's lock: they take nearly all of the time ----------


def _fill(
    worktree: str, common: str, commit: str, filling: Filling, locks: tuple[int, ...]
) -> None:
    """Check out the files of `commit`. `common` is the git directory that all worktrees share.
    `locks` stay held while git runs, even if we are killed.

    Errors: `git_failed` (also when git would work on files elsewhere), `disk_full`.
    """
    require_here(worktree, common)
    options = () if filling.lfs else _WITHOUT_LFS
    reset = ("reset", "--quiet", "--hard", "--no-recurse-submodules", commit)
    try:
        git(worktree, *_workers(worktree), *options, *reset, shared_locks=locks)
    except InboxOrchError as error:
        if error.code == "git_failed" and _lacks_space(worktree, commit):
            raise disk_full(worktree, error) from error
        raise
    if filling.submodules and os.path.lexists(os.path.join(worktree, ".gitmodules")):
        _add_submodules(worktree, common, options, locks)


def _lacks_space(worktree: str, commit: str) -> bool:
    """Whether the rest of the files is larger than what is free: of a file that it could not
    write, git does not say why."""
    listed = output_of(worktree, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    missing = 0
    for entry in filter(None, listed.split("\0")):
        facts, _, path = entry.partition("\t")
        size = facts.split()[-1]
        if size != "-" and not os.path.lexists(os.path.join(worktree, path)):
            missing += int(size)
    free = os.statvfs(worktree)
    return missing > free.f_bavail * free.f_frsize


def _workers(worktree: str) -> tuple[str, ...]:
    """Let git write files on all processors, unless the user has said on how many."""
    status, _ = git(worktree, "config", "--get", "checkout.workers", reads=True, accepted=(0, 1))
    workers = min(os.cpu_count() or 1, _MOST_WORKERS)
    return ("-c", f"checkout.workers={workers}") if status == 1 and workers > 1 else ()


def _add_submodules(
    worktree: str, common: str, options: tuple[str, ...], locks: tuple[int, ...]
) -> None:
    """Each submodule, and theirs. `submodule init` would write to the config that all worktrees
    share: the setting that makes every one active is given to the one command instead."""
    require_here(worktree, common)
    for where in (
        ("-c", "submodule.active=.", *options, "submodule", "--quiet", "update", "--checkout"),
        (*options, "submodule", "--quiet", "foreach", "--quiet", _INNER),
    ):
        git(worktree, *where, shared_locks=locks, environment=_SUBMODULE_VARIABLES)


_INNER = "git -c core.hooksPath=/dev/null submodule --quiet update --init --recursive --checkout"
