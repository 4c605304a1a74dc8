"""Contents that a partial clone has not fetched (git-clone(1), `--filter`): brought, all at once,
before they are looked at in a folder where nothing is fetched.

They come from where the clone's own settings say, as when git itself needs them. In any other
repository nothing is done, and no git is run.
"""

import os
from collections.abc import Collection, Iterable, Iterator

from inbox_orch.shared.errors import InboxOrchError

from .commands import git
from .failures import shown
from .repository import Repository
from .sealed import Sealed, sealed_folder

_MODULE, _LINK, _NOTHING = "160000", "120000", "0"
# Nobody is there to be asked for a password.
_ASKING_NOBODY = {"GIT_TERMINAL_PROMPT": "0"}
_FETCH = (
    *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--stdin"),
    *("--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none"),
)


def bring_changed(repository: Repository, before: str, after: str) -> None:
    """What two trees (or commits) do not have in common, and where there are links among that, all
    links of the later one. Error `git_failed`, which says what cannot be had."""
    common = _partial(repository)
    if common is None:
        return
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after)
    _, text = git(repository.path, *words, reads=True, environment=_ASKING_NOBODY)
    parts, names, modes = text.split("\0"), set[str](), set[str]()
    for entry in parts[:-1:2]:
        old, new, *both, _ = entry.removeprefix(":").split(" ")
        modes |= {old, new}
        names |= {n for mode, n in zip((old, new), both, strict=True) if mode != _MODULE}
    entries = list(_entries(repository, after)) if modes & {_LINK, _MODULE} else ()
    names |= {n for mode, n, path in entries if mode == _LINK or path == ".gitmodules"}
    _bring(repository, common, names)


def bring_files(repository: Repository, tree: str, paths: Iterable[str]) -> None:
    """The files of a tree with these paths, as far as it has them. Error `git_failed`."""
    common = _partial(repository)
    if common is None:
        return
    wanted = set(paths)
    found = _entries(repository, tree)
    _bring(repository, common, {n for mode, n, path in found if path in wanted and mode != _MODULE})


def _partial(repository: Repository) -> str | None:
    """The git directory of the partial clone that a repository is, or borrows from; None where it
    is none."""
    common = repository.common_directory
    lender = ""
    try:
        with open(os.path.join(common, "objects", "info", "alternates"), "rb") as file:
            lender = os.path.dirname(os.fsdecode(file.readline().rstrip(b"\n")))
    except OSError:
        pass  # it borrows from none
    for each in (common, os.path.join(common, "objects", lender) if lender else ""):
        if each and _may_be_partial(each):
            return os.path.realpath(each)
    return None


def _may_be_partial(common: str) -> bool:
    try:
        with open(os.path.join(common, "config"), "rb") as file:
            content = file.read().lower()
    except OSError:
        return False
    return b"promisor" in content or b"partialclone" in content


def _entries(repository: Repository, tree: str) -> Iterator[tuple[str, str, str]]:
    words = ("ls-tree", "-r", "-z", "--full-tree", tree)
    _, text = git(repository.path, *words, reads=True, environment=_ASKING_NOBODY)
    for entry in text.split("\0")[:-1]:
        facts, _, path = entry.partition("\t")
        mode, _, name = facts.split(" ")
        yield mode, name, path


def _bring(repository: Repository, common: str, names: Collection[str]) -> None:
    with sealed_folder(repository) as sealed:
        missing = _missing(sealed, names)
        if not missing:
            return
        _fetch(common, missing)
        left = _missing(sealed, missing)
    if left:
        raise _not_there(common, left, "what answers does not have them")


def _missing(sealed: Sealed, names: Collection[str]) -> list[str]:
    given = "".join(f"{name}\n" for name in sorted(names) if name.strip(_NOTHING)).encode()
    words = ("cat-file", "--batch-check")
    _, text = git(sealed.folder, *words, reads=True, given=given, environment=sealed.reading)
    return [line.split(" ")[0] for line in text.splitlines() if line.endswith(" missing")]


def _fetch(common: str, missing: list[str]) -> None:
    """From the first of the places that it came from which has them."""
    asking = ("config", "-z", "--type=bool", "--get-regexp", r"^remote\..*\.promisor$")
    _, text = git(common, *asking, reads=True, accepted=(0, 1))
    pairs = (entry.split("\n") for entry in text.split("\0")[:-1])
    remotes = [name[len("remote.") : -len(".promisor")] for name, value in pairs if value == "true"]
    given, failure = "".join(f"{name}\n" for name in missing).encode(), "it names no remote"
    for remote in remotes:
        try:
            git(common, *_FETCH, remote, given=given, environment=_ASKING_NOBODY)
            return
        except InboxOrchError as error:
            if error.code != "git_failed":
                raise
            failure = error.message
    raise _not_there(common, missing, failure)


def _not_there(common: str, missing: list[str], why: str) -> InboxOrchError:
    more = f" and {len(missing) - 1} more" if missing[1:] else ""
    return InboxOrchError(
        "git_failed",
        f"{shown(common)} is a partial clone that has never fetched {missing[0]}{more}, and they"
        f" cannot be had now: {why}",
        hint="make the remote reachable that the clone came from, and try again",
        details={"folder": shown(common), "objects": missing[:100]},
    )
