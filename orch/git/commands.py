"""Running git: a clean environment, no automatic gc, errors with git's own words.

GitPython starts the processes; it is imported on first use, because the import alone costs as
much as fifty calls of git.
"""

import _thread
import contextlib
import errno
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import postponed
from inbox_orch.shared.store.temporary import temporary_place

from .failures import named_failures, shown
from .masking import masked

_OPTIONS = (
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false"),
    # No hook of the user's runs on our account.
    *("-c", f"core.hooksPath={os.devnull}"),
    # What a commit is stands in the commit: who can write that file could say otherwise.
    *("-c", "core.commitGraph=false"),
)
_READING = {"GIT_OPTIONAL_LOCKS": "0"}
# An object is what its name says: with `git replace` a worker could show one tree, and have another
# one taken.
# The same with grafts, of what a commit builds on (gitrepository-layout(5), `info/grafts`).
_AS_NAMED = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": f"{os.devnull}/none"}
# A repository that git was asked about is no longer one that it happens to meet (git-config(1),
# safe.bareRepository).
_MEANT = ("-c", "safe.bareRepository=all")
# By itself git leaves it to the system when a new object or ref comes on the disk, and a power cut
# would take what we go on to write down as done.
_LASTING = ("-c", "core.fsync=committed")

# Called from a hook, git's own variables would send our commands into the user's index. These
# few say how git is to be run rather than on what, and stay: what counts for the user's git counts
# for ours.
KEPT_VARIABLES = frozenset(
    {
        "GIT_ALLOW_PROTOCOL",
        "GIT_ASKPASS",
        "GIT_ATTR_NOSYSTEM",
        "GIT_CEILING_DIRECTORIES",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_SYSTEM",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXEC_PATH",
        "GIT_LFS_SKIP_SMUDGE",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_NO_VERIFY",
        "GIT_TERMINAL_PROMPT",
    }
)
# The settings that GIT_CONFIG_COUNT counts: their names and values.
_COUNTED_SETTING = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+")

# What git says when it meets the half-done work of another process that takes no lock of ours.
_TRANSIENT = (
    "commondir",
    "config.lock",
    "could not lock config file",
    "Invalid path",
    "did not send all necessary objects",
)
FAILURES = ("disk_full", "git_failed", "read_only")
"""The codes of a git command that was run and has failed; see `git`."""
NO_ANSWER = -1
"""The status in `details` of a git that could not even be started, would not look at the
repository, or was ended from outside."""
# What a terminal, a supervisor and a system without memory end processes by, whole groups of them.
_ENDED_FROM_OUTSIDE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
# What git passes on of the system's words when it is no fault of the repository's.
_NO_SPACE = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "Out of diskspace")
_NO_WRITING = os.strerror(errno.EROFS)
# Whatever was asked, this is no answer (git-config(1), safe.directory).
_FATAL, _NOT_LOOKED_AT = 128, "detected dubious ownership"
# Of every run that this process has worked for: what git says may come from a filter or a helper
# that was given them, and stands in errors that are stored and shown.
_secrets: set[str] = set()
# GitPython; a server answers several calls at once, each in a thread.
_loading = _thread.allocate_lock()
_loaded: Any = None
# All threads share the environment, and a server answers several calls at once: so many of them
# run a git now, and these variables are out of it meanwhile.
_changing = _thread.allocate_lock()
_running = 0
_taken: dict[str, str] = {}
_TRIES = 6
_PAUSE_SECONDS = 0.02


def git(
    folder: str,
    *arguments: str,
    reads: bool = False,
    accepted: Sequence[int] = (0,),
    environment: dict[str, str] | None = None,
    shared_locks: Sequence[int] = (),
    given: bytes | None = None,
    unbroken: bool = False,
    discovers: bool = False,
) -> tuple[int, str]:
    """Run git in `folder`; returns its exit status and standard output, undecodable bytes as
    surrogates.

    `reads` keeps git from taking locks of its own, and lets it try again when it has met the
    half-done work of another process. `shared_locks` are descriptors of our own locks that git
    shares, so that they stay held while it runs, even if we are killed. `given` is its standard
    input. `unbroken` lets it come to its end although a signal comes, which is raised then: Ctrl-C
    in a terminal does not reach it. `discovers` is for a folder of which it is not known yet what
    it is: git may refuse to take it for a bare repository.
    Errors: `git_missing`; `git_failed` for a status that is not in `accepted`, and for a
    repository that git will not look at; or `disk_full` or `read_only` when git says that.
    """
    # `-C`, because GitPython falls back to the present folder when this one is not there.
    meant = () if discovers else _meant(folder)
    command = ["git", "-C", folder, *_OPTIONS, *meant, *(() if reads else _LASTING), *arguments]
    variables = {**(_READING if reads else {}), **(environment or {}), "LC_ALL": "C"}
    with postponed() if unbroken else contextlib.nullcontext():
        call = _Call(folder, command, variables, shared_locks, given)
        status, output, complaint = _execute(call._replace(own_session=unbroken))
    for _ in range(_TRIES if reads else 0):
        if status == 0 or not any(words in complaint for words in _TRANSIENT):
            break
        pause()
        status, output, complaint = _execute(call)
    text = output.decode("utf-8", "surrogateescape")
    if status == _FATAL and _NOT_LOOKED_AT in complaint:
        status = NO_ANSWER
    if status not in accepted:
        raise _failed(folder, arguments, status, complaint.strip() or text.strip(), reads=reads)
    return status, text


def git_bytes(
    folder: str,
    *arguments: str,
    given: bytes | None = None,
    output: BinaryIO | None = None,
    environment: dict[str, str] | None = None,
) -> bytes:
    """The output of a reading git command as it is; with `output` it is written there instead.

    Errors: `git_missing`, `git_failed`.
    """
    command = ["git", "-C", folder, *_OPTIONS, *_meant(folder), *arguments]
    variables = {**_READING, **(environment or {}), "LC_ALL": "C"}
    status, content, complaint = _execute(_Call(folder, command, variables, given=given), output)
    if status != 0:
        raise _failed(folder, arguments, status, complaint.strip(), reads=True)
    return content


def git_told(
    folder: str,
    *arguments: str,
    environment: dict[str, str] | None = None,
    given: bytes | None = None,
) -> str:
    """Run a git that changes something, and return what it says of it beside its output.

    Errors as of `git`.
    """
    command = ["git", "-C", folder, *_OPTIONS, *_meant(folder), *_LASTING, *arguments]
    variables = {**(environment or {}), "LC_ALL": "C"}
    status, _, complaint = _execute(_Call(folder, command, variables, given=given))
    if status != 0:
        raise _failed(folder, arguments, status, complaint.strip(), reads=False)
    return complaint


def exact_names(working_tree: str) -> tuple[str, ...]:
    """Options without which git may take a new file for a tracked one whose name differs in the
    case of letters alone: a setting that came with a copy from a disk where that is so. Where
    it is so here, there are none (git itself looks for that in this way)."""
    try:
        same = os.path.samefile(*(os.path.join(working_tree, name) for name in (".git", ".GIT")))
    except OSError:
        same = False
    return () if same else ("-c", "core.ignoreCase=false")


def keep_secret(values: Iterable[str]) -> None:
    """From now on these values are masked in whatever git says."""
    _secrets.update(values)


def is_transient(error: InboxOrchError) -> bool:
    """Whether git failed only because another process was in the middle of something."""
    return error.code == "git_failed" and any(words in error.message for words in _TRANSIENT)


def pause() -> None:
    """Let the other process go on for a moment; by chance, so that two do not meet again."""
    import random

    time.sleep(_PAUSE_SECONDS * random.uniform(0.5, 3))


def disk_full(folder: str, failure: InboxOrchError) -> InboxOrchError:
    """What git failed for, by its name."""
    return InboxOrchError(
        "disk_full",
        f"no space left in {shown(folder)}: {failure.message}",
        hint="free some space and repeat the command",
        details=failure.details,
    )


def _meant(folder: str) -> tuple[str, ...]:
    """Options for a folder that is a git directory itself."""
    at = os.path.join
    if not os.path.isfile(at(folder, "HEAD")) or os.path.lexists(at(folder, ".git")):
        return ()
    is_whole = os.path.isdir(at(folder, "objects")) or os.path.isfile(at(folder, "commondir"))
    return _MEANT if is_whole else ()


def _failed(
    folder: str, arguments: Sequence[str], status: int, words: str, *, reads: bool
) -> InboxOrchError:
    verb = next(word for word in arguments if word != "-c" and "=" not in word)
    failure = InboxOrchError(
        "git_failed",
        f"git {verb} failed in {shown(folder)}: {masked(shown(words), _secrets)[:2000]}",
        hint="git's own words say why; `orch doctor` looks at the repository",
        details={
            "command": [masked(shown(word), _secrets) for word in arguments[:40]],
            "status": status,
            "folder": shown(folder),
        },
    )
    if any(reason in words for reason in _NO_SPACE):
        return disk_full(folder, failure)
    # Of a folder that it cannot make, or a ref that it cannot write, git does not say why.
    without_room, unwritable = (False, False) if reads else _state_of_disk(folder)
    if unwritable or _NO_WRITING in words:
        return _read_only(folder, failure)
    return disk_full(folder, failure) if without_room else failure


def _state_of_disk(folder: str) -> tuple[bool, bool]:
    """(it has no room left, it cannot be written), as far as that can be told."""
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        # Some file systems count no blocks at all.
        return disk.f_blocks > 0 and disk.f_bavail == 0, bool(disk.f_flag & os.ST_RDONLY)
    return False, False


def _read_only(folder: str, failure: InboxOrchError) -> InboxOrchError:
    return InboxOrchError(
        "read_only",
        f"the disk of {shown(folder)} cannot be written: {failure.message}",
        hint="make it writable and repeat the command",
        details=failure.details,
    )


def output_of(folder: str, *arguments: str) -> str:
    """The output of a reading git command without its last line end."""
    return git(folder, *arguments, reads=True)[1].rstrip("\n")


class _Call(NamedTuple):
    """A git that is to be run: its words, and the variables beside those of this process. `given`
    is its standard input; `own_session` keeps a terminal's signals from it."""

    folder: str
    words: list[str]
    variables: dict[str, str]
    shared_locks: Sequence[int] = ()
    given: bytes | None = None
    own_session: bool = False


def _execute(call: _Call, into: BinaryIO | None = None) -> tuple[int, bytes, str]:
    path = absolute_path()
    environment = {**_AS_NAMED, **call.variables, "PATH": path}
    with without_git_variables(), _readable(call.given) as istream:
        program = _program(path)
        module = _gitpython(program, call.folder)
        try:
            status, output, complaint = module.cmd.Git().execute(
                [program, *call.words[1:]],
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env=environment,
                pass_fds=tuple(call.shared_locks),
                start_new_session=call.own_session,
                istream=istream,
                output_stream=into,
            )
        except module.exc.GitCommandNotFound as error:
            raise _git_missing() from error
        except OSError as error:
            # Not executable, no memory, no process left.
            verb = call.words[len(_OPTIONS) + 3 :]
            raise _failed(call.folder, verb, NO_ANSWER, str(error), reads=True) from error
    if isinstance(output, str):
        output = output.encode("utf-8", "surrogateescape")
    if isinstance(complaint, bytes):
        complaint = complaint.decode("utf-8", "surrogateescape")
    ended = _ended(status)
    if ended is not None:
        return NO_ANSWER, output, f"{complaint.strip()}\n{ended}".strip()
    return status, output, complaint


def _ended(status: int) -> str | None:
    """By what a git was ended from outside; None when it was not."""
    if -status not in _ENDED_FROM_OUTSIDE:
        return None
    return f"it was ended by {signal.Signals(-status).name}"


@contextlib.contextmanager
def _readable(content: bytes | None) -> Iterator[BinaryIO | None]:
    """What git reads: a file and no pipe, so that neither waits for the other."""
    import tempfile

    if content is None:
        yield None
        return
    place = temporary_place()
    with named_failures(place):
        file = tempfile.TemporaryFile(dir=place)  # noqa: SIM115 - closed below, whatever comes
    with file:
        with named_failures(place):
            file.write(content)
            file.seek(0)
        yield file


def _program(path: str) -> str:
    import shutil

    found = shutil.which("git", path=path)
    if found is None:
        raise _git_missing()
    return found


def _git_missing() -> InboxOrchError:
    return InboxOrchError(
        "git_missing",
        "git could not be started",
        hint="install git and put it on PATH, in a folder that is given by its whole path",
    )


def _gitpython(program: str, folder: str) -> Any:
    """GitPython, loaded once, without git's variables in the environment. Error `git_failed` for a
    git that is there and cannot even tell its version: nothing is wrong with `folder` then."""
    global _loaded
    with _loading:
        if _loaded is None:
            _loaded = _imported(program, folder)
        return _loaded


def _imported(program: str, folder: str) -> Any:
    # It runs git when it is imported, and would raise an ImportError without it.
    loading = {"GIT_PYTHON_REFRESH": "quiet", "GIT_PYTHON_GIT_EXECUTABLE": program}
    os.environ.update(loading)
    try:
        import git as gitpython
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        cause = error.__cause__
        status = getattr(cause, "status", None)
        if not isinstance(status, int):
            raise
        said = str(getattr(cause, "stderr", "")).strip().removeprefix("stderr: ").strip("'")
        words = _ended(status) or said or f"it exited with {status}"
        raise _failed(folder, ("version",), NO_ANSWER, words, reads=True) from error
    finally:
        for name in loading:
            del os.environ[name]
    return gitpython


# -- the environment -----------------------------------------------------------------------


def with_settings(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Variables that put settings, by their names, before those of files and after those that the
    caller's environment has in this way (git-config(1), GIT_CONFIG_COUNT): the last one counts.
    Unlike with `-c`, a name may have any character in it."""
    pairs, counted = list(settings), os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(counted) if counted.isascii() and counted.isdigit() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(pairs))}
    for number, (name, value) in enumerate(pairs, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def is_kept(name: str) -> bool:
    """Whether a variable of git's says how git is to be run, and not on what."""
    return name in KEPT_VARIABLES or _COUNTED_SETTING.fullmatch(name) is not None


@contextlib.contextmanager
def without_git_variables() -> Iterator[None]:
    """Take git's variables out of the environment for a while; they are the caller's own. Threads
    share it: the first that runs a git takes them out, and the last puts them back."""
    global _running
    with _changing:
        if not _running:
            for name in [n for n in os.environ if n.startswith("GIT_") and not is_kept(n)]:
                _taken[name] = os.environ.pop(name)
        _running += 1
    try:
        yield
    finally:
        with _changing:
            _running -= 1
            if not _running:
                os.environ.update(_taken)
                _taken.clear()


def absolute_path() -> str:
    """PATH without its relative parts: by an empty one or a dot, the repository in which git is
    run could bring a git, or a filter, of its own."""
    return os.pathsep.join(folder for folder in os.get_exec_path() if os.path.isabs(folder))
