"""Attributes for merges in memory: those of the side that is merged into (gitattributes(5)).

`git merge-tree` reads them from the files of the main checkout, whatever is checked out there, and
in a bare repository from nowhere. Where that is not the same, git is run in a folder of our own
that holds nothing but the `.gitattributes` files of the commit.
"""

import contextlib
import os
from collections.abc import Iterator

from .commands import git, git_bytes
from .failures import named_failures, temporary_folder

_NAME = ".gitattributes"
_FILES = f":(top,glob)**/{_NAME}"


@contextlib.contextmanager
def with_attributes_of(
    path: str, common_directory: str, commit: str
) -> Iterator[tuple[str, dict[str, str]]]:
    """The folder, and the variables, with which a merge into `commit` has its attributes.

    `path` is that of the repository, `common_directory` its git directory. Error `git_failed`.
    """
    bare = path == common_directory
    # Named to git, so that no setting sends it to the files of another folder.
    here = {"GIT_DIR": common_directory, "GIT_WORK_TREE": path}
    if not bare and _checked_out(path, commit, here):
        yield path, here
        return
    names = _files_of(path, commit)
    if bare and not names:
        yield path, {}
        return
    with temporary_folder() as folder:
        _write(path, commit, names, folder)
        yield folder, {"GIT_DIR": common_directory, "GIT_WORK_TREE": folder}


def _checked_out(path: str, commit: str, here: dict[str, str]) -> bool:
    """Whether the main checkout has the very same files of attributes as a commit. `here` names
    it to git."""
    comparing = ("diff-index", "--quiet", commit, "--", _FILES)
    status, _ = git(path, *comparing, reads=True, accepted=(0, 1), environment=here)
    if status == 0 and os.path.lexists(os.path.join(path, _NAME)):
        # One that is not tracked is not compared.
        status, _ = git(
            path, "cat-file", "-e", f"{commit}:{_NAME}", reads=True, accepted=(0, 1, 128)
        )
    return status == 0


def _files_of(path: str, commit: str) -> list[str]:
    """The paths of a commit's files of attributes; an empty one says nothing and is left out."""
    _, text = git(
        path,
        *("grep", "-z", "--text", "--files-with-matches", "--full-name", "--no-color"),
        *("--no-recurse-submodules", "-e", "", commit, "--", _FILES),
        reads=True,
        accepted=(0, 1),
    )
    return [name.removeprefix(f"{commit}:") for name in text.split("\0") if name]


def _write(path: str, commit: str, names: list[str], folder: str) -> None:
    for name in names:
        content = git_bytes(path, "cat-file", "blob", f"{commit}:{name}")
        written = os.path.join(folder, name)
        with named_failures(written):
            os.makedirs(os.path.dirname(written), exist_ok=True)
            with open(written, "wb") as file:
                file.write(content)
