"""A git folder of our own on the objects of a repository, in which nothing that is configured has
a say: no settings and no attributes of the repository, of the user or of the system.

Changes nothing of the repository but its objects, and those only where that was asked for.
"""

import contextlib
import os
from collections.abc import Iterator

from .failures import named_failures, temporary_folder
from .repository import Repository
from .standing import main_setting

# The values of one `-c` are kept: those are ours.
_NOTHING_SET = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # Nothing that a partial clone lacks is fetched from here.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
# Of the attributes that a working tree brings along, these would change bytes. What stands in this
# file counts before all others (gitattributes(5)).
_AS_THEY_ARE = "* -text !eol -ident -filter !working-tree-encoding\n"
_CONFIG = """[core]
\trepositoryformatversion = {version}
\tfilemode = true
\tsymlinks = true
\tbare = true
\tattributesFile = {nothing}
\texcludesFile = {nothing}
\tbigFileThreshold = {big}
[extensions]
"""
BIG_FILE_BYTES = 16 * 1024 * 1024
"""Of larger files git compares no lines here."""


class Sealed:
    """Such a folder, and the variables with which git is to be run: `reading` alone, or `on` the
    files of a working tree with an index of ours."""

    def __init__(self, folder: str, objects: str) -> None:
        self.folder = folder
        self.index = os.path.join(folder, "index")
        self.reading = {**_NOTHING_SET, "GIT_DIR": folder}
        self._objects = objects

    def on(self, worktree: str) -> dict[str, str]:
        """New objects go to those of the repository."""
        return {
            **self.reading,
            "GIT_WORK_TREE": worktree,
            "GIT_INDEX_FILE": self.index,
            "GIT_OBJECT_DIRECTORY": self._objects,
        }


@contextlib.contextmanager
def scratch(repository: Repository) -> Iterator[Repository]:
    """A repository that has all that another one has, and whose new objects are gone after the
    block. Errors as of `sealed_folder`."""
    with sealed_folder(repository) as sealed:
        yield Repository(sealed.folder)


@contextlib.contextmanager
def sealed_folder(repository: Repository) -> Iterator[Sealed]:
    """A folder that is gone after the block. Errors: `disk_full`, `read_only`, `io_error`."""
    common = repository.common_directory
    objects = os.path.join(os.path.realpath(common), "objects")
    form = main_setting(common, "extensions.objectFormat")
    config = _CONFIG.format(
        version=0 if form is None else 1, nothing=os.devnull, big=BIG_FILE_BYTES
    ) + (f"\tobjectFormat = {form}\n" if form is not None else "")
    files = {
        "HEAD": b"ref: refs/heads/none\n",
        "config": config.encode(),
        "info/attributes": _AS_THEY_ARE.encode(),
        "objects/info/alternates": os.fsencode(objects) + b"\n",
    }
    with temporary_folder() as folder:
        with named_failures(folder):
            os.mkdir(os.path.join(folder, "refs"))
            for name, content in files.items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(content)
        yield Sealed(folder, objects)
