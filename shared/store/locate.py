"""Finding the database of the project that the working directory belongs to.

Files are read; no git is started. The layout of `.git` files, `commondir` and `modules/` is
that of gitrepository-layout(5) and git-worktree(1).
"""

import os
from typing import NamedTuple

from ..errors import InboxOrchError
from ..ids import check_named
from .folders import refuse_links
from .layout import DATABASE_NAME, FOLDER_NAME, database_in

_MAX_POINTER_BYTES = 4096


class Location(NamedTuple):
    """A database path and the rule that led to it.

    `rule` is `option` (--db), `environment` (INBOX_DB), `folder` (walking up from the working
    directory), `worktree` (through a linked worktree), `submodule` or `bare_repository`.
    """

    path: str
    rule: str


def working_folder() -> str:
    """The present folder; error `no_database` when it has been removed under the process."""
    try:
        return os.getcwd()
    except OSError as error:
        raise InboxOrchError(
            "no_database",
            f"the working folder cannot be told: {error.strerror}",
            hint="change to a folder that is there, or name the database by its whole path",
        ) from error


def absolute(path: str) -> str:
    """The path as seen from the present folder, which is asked for only if it matters."""
    return os.path.normpath(path if os.path.isabs(path) else os.path.join(working_folder(), path))


def locate(
    option: str | None, environment: str | None, working_directory: str | None = None
) -> Location:
    """The database to use; error `no_database` when there is none to be found, `foreign_owner`
    when what was found is another user's, `unsafe_link` when it is a link, `usage` for an empty
    option or environment.

    The path of an option or of the environment is not checked for existence. The search starts
    in `working_directory`, by default the present one.
    """
    if option is not None:
        return Location(absolute(check_named(option, "the path of the database")), "option")
    if environment is not None:
        return Location(absolute(check_named(environment, "INBOX_DB")), "environment")
    start = os.path.realpath(working_directory or working_folder())
    for folder, rule in _starting_points(start):
        found = _walk_up(folder)
        if found is not None:
            return Location(found, rule)
    raise InboxOrchError(
        "no_database",
        f"no {FOLDER_NAME}/{DATABASE_NAME} in {start} or any folder above it",
        hint="`inbox init` makes one; --db or INBOX_DB names one elsewhere",
        details={"searched_from": start},
    )


def project_root(working_directory: str) -> str:
    """The folder in which `init` makes a database: the main working tree, the folder beside a
    bare repository, else this folder.

    Error `no_database` in a worktree whose repository is away: one made here would not be that
    of the project's other worktrees.
    """
    start = os.path.realpath(working_directory)
    for folder, rule in _starting_points(start):
        if rule == "bare_repository":
            return folder
        top = _repository_top(folder)
        if top is not None:
            _require_repository(top)
            return top
    return start


def _require_repository(top: str) -> None:
    git_directory = _pointed_at(top)
    if git_directory is not None and not os.path.isdir(git_directory):
        raise InboxOrchError(
            "no_database",
            f"{top} belongs to a repository that is not there: {git_directory}",
            hint="put it back, or mount it; `inbox init DIR` makes a database in DIR all the same",
            details={"folder": top, "git_directory": git_directory},
        )


def _starting_points(start: str) -> list[tuple[str, str]]:
    """Where to walk up from, in order: the main working tree of what we are in comes first."""
    points = []
    seen = {start}
    folder, rule = start, "folder"
    while True:
        top = _repository_top(folder)
        main = None if top is None else _main_folder(top)
        if main is None or main[0] in seen:
            break
        folder, rule = main
        seen.add(folder)
        points.append((folder, rule))
    # The outermost repository first: a submodule of a worktree leads to the main tree.
    return [*reversed(points), (start, "folder")]


def _walk_up(folder: str) -> str | None:
    while True:
        candidate = database_in(folder)
        refuse_links(candidate)
        if os.path.exists(candidate):
            _require_own(candidate)
            return candidate
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _require_own(database: str) -> None:
    """A database that was only come across must be our own: a user who can put one above the
    working folder, in /tmp say, would get our messages, and could say what is run.

    The rule is that of git's `safe.directory`: root may use what belongs to whom sudo was called
    by. One that is named is used whosever it is.
    """
    own = {os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        own.add(int(os.environ["SUDO_UID"]))
    for path in (os.path.dirname(database), database):
        owner = os.stat(path).st_uid
        if owner not in own:
            raise InboxOrchError(
                "foreign_owner",
                f"{path} belongs to another user (uid {owner})",
                hint="--db or INBOX_DB uses it all the same, if you trust the user who made it",
                details={"path": path, "owner": owner},
            )


def _repository_top(folder: str) -> str | None:
    """The nearest folder, upwards, that has a `.git` or is a bare repository."""
    while True:
        if os.path.exists(os.path.join(folder, ".git")) or _is_bare(folder):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _main_folder(top: str) -> tuple[str, str] | None:
    """The folder that a worktree, a submodule or a bare repository belongs to."""
    if _is_bare(top):
        return os.path.dirname(top), "bare_repository"
    git_directory = _pointed_at(top)
    if git_directory is None:
        return None
    common = _common_directory(git_directory)
    if common is not None:
        return _holder_of(common, "worktree")
    marker = f"{os.sep}modules{os.sep}"
    if marker in git_directory:
        # `<superproject's git directory>/modules/<name>`, which may itself be nested.
        return _holder_of(git_directory.rsplit(marker, 1)[0], "submodule")
    return None


def _holder_of(git_directory: str, rule: str) -> tuple[str, str] | None:
    """The working tree (or the folder beside a bare repository) of a git directory."""
    common = _common_directory(git_directory) or git_directory
    marker = f"{os.sep}modules{os.sep}"
    if marker in common and os.path.basename(common) != ".git":
        return _holder_of(common.rsplit(marker, 1)[0], "submodule")
    folder = os.path.dirname(common)
    if os.path.basename(common) != ".git":
        rule = "bare_repository"
    return folder, rule


def _pointed_at(top: str) -> str | None:
    """What the file `.git` in `top` points at; None when it is a folder or unreadable."""
    text = _read_pointer(os.path.join(top, ".git"))
    if text is None or not text.startswith("gitdir:"):
        return None
    target = text.removeprefix("gitdir:").strip()
    return os.path.realpath(os.path.join(top, target))


def _common_directory(git_directory: str) -> str | None:
    """The shared git directory of a linked worktree's own one; None for any other."""
    text = _read_pointer(os.path.join(git_directory, "commondir"))
    return None if text is None else os.path.realpath(os.path.join(git_directory, text.strip()))


def _read_pointer(path: str) -> str | None:
    if not os.path.isfile(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MAX_POINTER_BYTES)
    except OSError:
        return None


def _is_bare(folder: str) -> bool:
    return (
        os.path.basename(folder) != ".git"
        and os.path.isfile(os.path.join(folder, "HEAD"))
        and os.path.isdir(os.path.join(folder, "objects"))
        and os.path.isdir(os.path.join(folder, "refs"))
    )
