"""The files of a tree in a folder made for them, beside every worktree."""

import contextlib
import os
from collections.abc import Iterator

from inbox_orch.shared.processes.signals import postponed

from .commands import git
from .failures import temporary_folder
from .repository import Repository
from .standing import require_here


@contextlib.contextmanager
def checkout(repository: Repository, tree: str) -> Iterator[str]:
    """The path of a folder with the files of the tree, as a checkout writes them; it is gone after
    the block. It is no working tree of the repository: git finds none there.

    Errors: `git_failed`, `disk_full`, `read_only`, `io_error`.
    """
    with temporary_folder() as temporary:
        folder = os.path.join(temporary, "files")
        os.mkdir(folder)
        within = {
            "GIT_INDEX_FILE": os.path.join(temporary, "index"),
            "GIT_DIR": repository.common_directory,
            "GIT_WORK_TREE": folder,
        }
        # A git that was left behind would go on writing while the folder is taken away.
        with postponed():
            require_here(folder, repository.common_directory, within)
            git(folder, "read-tree", "--end-of-options", tree, environment=within)
            git(folder, "checkout-index", "--all", "--quiet", environment=within)
        yield folder
