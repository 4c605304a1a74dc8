"""Where blueprints are: those that come with the package, those of a repository, any file."""

import os
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import printable, quoted
from inbox_orch.shared.shell.nearest import did_you_mean
from inbox_orch.shared.shell.texts import package_folder

from ..stages.model import Blueprint
from .blueprint import read_blueprint, top_of

NATIVE = ("standard_task", "quick_fix", "study_task")
"""The ids of the blueprints that come with the package."""
FOLDER = os.path.join(".orch", "blueprints")
MOST_LISTED = 1000


class Entry(NamedTuple):
    """A blueprint that can be named: its `id`, the file that it stands in, `native` or
    `repository`, and the blueprint, or why it cannot be gone by."""

    id: str
    path: str
    source: str
    blueprint: Blueprint | None
    error: InboxOrchError | None = None


def find(name: str, folder: str) -> Blueprint:
    """The blueprint that a name or a path means, seen from a folder.

    What has a slash or ends in `.yaml` or `.yml` is a path; any other name is that of a native
    blueprint, or of `.orch/blueprints/NAME.yaml` at the top of the folder's working tree. Errors:
    `not_found`; `usage` with every problem by line, or for an id that is a native one's.
    """
    if is_path(name):
        here = os.path.realpath(folder) == os.path.realpath(os.curdir)
        return read_blueprint(name if here else os.path.join(folder, name), taken=NATIVE)
    if name in NATIVE:
        return read_blueprint(_native_file(name))
    own = own_files(folder)
    if name in own:
        return _own(name, own[name])
    raise _unknown(name, folder, own)


def is_path(name: str) -> bool:
    """Whether a text means a file rather than the id of a blueprint."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def entries(folder: str) -> list[Entry]:
    """The native blueprints, and those of the working tree that a folder lies in, with what is
    wrong with them; error `usage` where they cannot be listed."""
    found = [
        Entry(name, _native_file(name), "native", read_blueprint(_native_file(name)))
        for name in NATIVE
    ]
    for name, path in own_files(folder).items():
        try:
            found.append(Entry(name, path, "repository", _own(name, path)))
        except InboxOrchError as error:
            found.append(Entry(name, path, "repository", None, error))
    return found


def own_files(folder: str) -> dict[str, str]:
    """The files of `.orch/blueprints` by the ids that they stand for, in the order of their names;
    error `usage` for more of them than can be listed, or where they cannot be."""
    place = os.path.join(top_of(folder), FOLDER)
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith(".yaml"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise usage(f"cannot list {printable(place, 4096)}: {error.strerror}") from error
    if len(names) > MOST_LISTED:
        raise usage(f"{printable(place, 4096)} has more than {MOST_LISTED} blueprints")
    files = ((name.removesuffix(".yaml"), os.path.join(place, name)) for name in names)
    return {name: path for name, path in files if os.path.isfile(path)}


def _own(name: str, path: str) -> Blueprint:
    """One of the repository, which is called as its file is."""
    blueprint = read_blueprint(path, taken=NATIVE)
    if blueprint.id != name:
        raise usage(
            f"{printable(path, 4096)} has the id {quoted(blueprint.id)}",
            hint=f"call the file {blueprint.id}.yaml, or write `id: {printable(name)}` into it",
        )
    return blueprint


def _native_file(name: str) -> str:
    return os.path.join(package_folder("inbox_orch.orch"), "texts", "blueprints", f"{name}.yaml")


def _unknown(name: str, folder: str, own: dict[str, str]) -> InboxOrchError:
    other = os.path.join(top_of(folder), FOLDER, f"{name}.yml")
    if name and "\0" not in name and os.path.isfile(other):
        hint = f"call {printable(other, 4096)} {printable(name)}.yaml"
    else:
        known = "`orch blueprint list` shows those that there are; a file is named by its path"
        hint = did_you_mean(name, [*NATIVE, *own], known)
    return not_found("blueprint", printable(name), hint=hint)
