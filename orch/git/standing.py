"""Whether git is where we think it is, asked of git itself before it changes any file.

`core.worktree` and `core.bare` in the config that all worktrees share go for every one of them once
`extensions.worktreeConfig` is on (git-worktree(1), "Configuration file"): git called in a linked
worktree then works on the files of another folder. Reads only.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from .commands import NO_ANSWER, git
from .failures import shown

_FATAL = 128
_WHERE = (
    *("--path-format=absolute", "--absolute-git-dir", "--git-common-dir"),
    *("--git-path", "index", "--show-toplevel"),
)


class Standing(NamedTuple):
    """A working tree, its own git directory, the one that all worktrees share, and the index; as
    real paths."""

    top: str
    own: str
    common: str
    index_file: str


class _Blamed(NamedTuple):
    """A setting that sends git elsewhere, and the file that it stands in."""

    name: str
    file: str


def require_here(folder: str, common: str, environment: Mapping[str, str] | None = None) -> None:
    """Git called in `folder` works on the files and the index of that folder, for the repository
    whose shared git directory is `common`.

    To be called before every git command that changes files, and before what is found in a folder
    decides about it. `environment` is that of the command, where it names the places itself.
    Error `git_failed`, which says what to change; its `status` is that of no answer where not the
    worktree alone is the cause.
    """
    expected = _expected(folder, common, environment or {})
    found = _asked(folder, environment)
    if found is None or found != expected:
        raise _elsewhere(folder, common, expected, found)


def require_here_on(folder: str, common: str) -> str | None:
    """`require_here`; and the ref that HEAD names, None when it is detached. Error `git_failed`."""
    status, text = git(
        folder,
        *("rev-parse", "--symbolic-full-name", "HEAD", *_WHERE),
        reads=True,
        accepted=(0, _FATAL),
    )
    head, _, where = text.partition("\n")
    if status == 0 and (head == "HEAD" or head.startswith("refs/")):
        expected, found = _expected(folder, common, {}), _standing(where)
        if found is None or found != expected:
            raise _elsewhere(folder, common, expected, found)
        return None if head == "HEAD" else head
    require_here(folder, common)  # before the first commit, say
    return branch_of(folder)


def branch_of(folder: str) -> str | None:
    """The ref that HEAD names, None when it is detached. Error `git_failed`."""
    asking = ("symbolic-ref", "--quiet", "HEAD")
    status, ref = git(folder, *asking, reads=True, accepted=(0, 1))
    return ref.removesuffix("\n") if status == 0 else None


def require_apart(common: str) -> None:
    """No setting of the shared config would send git from a linked worktree to other files.
    `common` is the shared git directory. Error `git_failed`, which says what to change."""
    if _setting(os.path.join(common, "config"), "extensions.worktreeConfig", "bool") != "true":
        return
    blamed = _in_file(os.path.join(common, "config"))
    if blamed is not None:
        raise _failure(
            common,
            f"git in a worktree of {shown(common)} would work on files elsewhere",
            common,
            blamed,
        )


def refuse_settings(folder: str, common: str) -> None:
    """Error `git_failed` when git does not work on the files of `folder`, and a setting is why.
    Any other reason is for the caller to find."""
    expected = _expected(folder, common, {})
    if _blamed(expected) is not None:
        raise _elsewhere(folder, common, expected, _asked(folder, None))


def is_bare(common: str) -> bool:
    """Whether the repository with this shared git directory has no main working tree."""
    said = main_setting(common, "core.bare", "bool")
    return os.path.basename(common) != ".git" if said is None else said == "true"


def main_setting(common: str, name: str, kind: str | None = None) -> str | None:
    """What the repository's own files set for its main working tree, or for itself when it is bare;
    None when it is not set. `kind` is a type of git-config(1).

    Read by file: asked in the git directory, git wants that named in `safe.directory`, too.
    """
    shared, files = os.path.join(common, "config"), []
    if _setting(shared, "extensions.worktreeConfig", "bool") == "true":
        files.append(os.path.join(common, "config.worktree"))
    found = (_setting(file, name, kind) for file in (*files, shared))
    return next((value for value in found if value is not None), None)


def _expected(folder: str, common: str, environment: Mapping[str, str]) -> Standing:
    own = environment.get("GIT_DIR") or own_directory(folder) or ""
    index = environment.get("GIT_INDEX_FILE") or os.path.join(own, "index")
    return Standing(*map(os.path.realpath, (folder, own, common, index)))


def own_directory(folder: str) -> str | None:
    """The git directory of a working tree by its `.git`, a folder or a file that points at one;
    None when it has none."""
    pointer = os.path.join(folder, ".git")
    if os.path.isdir(pointer):
        return os.path.realpath(pointer)
    try:
        with open(pointer, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(64 * 1024).rstrip("\n")
    except OSError:
        return None
    if not text.startswith("gitdir: "):
        return None
    return os.path.realpath(os.path.join(folder, text.removeprefix("gitdir: ")))


def _asked(folder: str, environment: Mapping[str, str] | None) -> Standing | None:
    """Where git says that it is; None when it is in no working tree."""
    status, text = git(
        folder,
        *("rev-parse", *_WHERE),
        reads=True,
        accepted=(0, _FATAL),
        environment=dict(environment or {}),
    )
    return _standing(text) if status == 0 else None


def _standing(text: str) -> Standing | None:
    lines = text.removesuffix("\n").split("\n", 3)
    if len(lines) < 4:
        return None
    own, common, index, top = map(os.path.realpath, lines)
    return Standing(top, own, common, index)


def _elsewhere(
    folder: str, common: str, expected: Standing, found: Standing | None
) -> InboxOrchError:
    if found is None:
        words = f"git does not take {shown(folder)} for a working tree"
    elif found.top != expected.top:
        words = f"git looks for the files of {shown(folder)} in {shown(found.top)}"
    else:
        seen, wanted = next((s, w) for s, w in zip(found, expected, strict=True) if s != w)
        words = f"git in {shown(folder)} works with {shown(seen)}, and not with {shown(wanted)}"
    return _failure(folder, words, common, _blamed(expected))


def _blamed(expected: Standing) -> _Blamed | None:
    """The setting that must be why git is elsewhere: one of the worktree's own comes first."""
    own = _in_file(os.path.join(expected.own, "config.worktree"))
    return own or _in_file(os.path.join(expected.common, "config"))


def _failure(folder: str, words: str, common: str, blamed: _Blamed | None) -> InboxOrchError:
    remedy, hint = _remedy(common, blamed)
    # A worktree's own settings are its worker's doing; anything else cannot be worked around there.
    entries = os.path.realpath(os.path.join(common, "worktrees"))
    linked = blamed is not None and os.path.dirname(os.path.dirname(blamed.file)) == entries
    return InboxOrchError(
        "git_failed",
        f"{words}: {remedy}",
        hint=hint,
        details={
            "folder": shown(folder),
            "status": _FATAL if linked else NO_ANSWER,
            "setting": None if blamed is None else blamed.name,
            "file": None if blamed is None else shown(blamed.file),
        },
    )


def _remedy(common: str, blamed: _Blamed | None) -> tuple[str, str]:
    """What is wrong, and what the user can do about it."""
    if blamed is None:
        return "nothing was changed", "`git status` there says what git makes of it"
    name, file = blamed.name, shown(blamed.file)
    if os.path.basename(blamed.file) == "config.worktree":
        return f"{name} is set for it", f"`git config --file {file} --unset {name}`"
    shared = os.path.join(common, "config")
    if _setting(shared, "extensions.worktreeConfig", "bool") == "true":
        found = f"move {name} from {file} to {file}.worktree, it goes for every worktree"
        moving = f"`git config --file {file} --unset {name}`, and set it with `--file"
        return found, f'{moving} {file}.worktree`; see git-worktree(1), "Configuration file"'
    if name == "core.bare":
        return "core.bare is true", f"if it is no bare one: `git config --file {file} {name} false`"
    return "core.worktree is set", f"`git config --file {file} --unset {name}`, or set it right"


def _in_file(path: str) -> _Blamed | None:
    """The setting of a config file that tells git where the files are. Git itself reads these two
    without includes."""
    if not os.path.isfile(path):
        return None
    if _setting(path, "core.worktree") is not None:
        return _Blamed("core.worktree", path)
    return _Blamed("core.bare", path) if _setting(path, "core.bare", "bool") == "true" else None


def _setting(file: str, name: str, kind: str | None = None) -> str | None:
    if not _may_stand_in(file, name):
        return None
    typed = () if kind is None else (f"--type={kind}",)
    status, text = git(
        os.path.dirname(file),
        *("config", "--file", file, *typed, "--get", name),
        reads=True,
        accepted=(0, 1, _FATAL),
    )
    return text.removesuffix("\n") if status == 0 else None


def _may_stand_in(file: str, name: str) -> bool:
    """Whether git has to be asked for a setting of a config file. Where its last word is not in the
    file, in whichever case, it is not set there: git knows no other way to write it."""
    word = name.rpartition(".")[2].lower().encode()
    try:
        with open(file, "rb") as content:
            return word in content.read().lower()
    except OSError:
        return True
