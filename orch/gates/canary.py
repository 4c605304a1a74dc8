"""The canary: from where the code that a gate tests is imported. What is tested has to lie in the
worktree; an editable install in the active environment leads to another checkout, and then every
change passes.

Makes the command that finds out, and reads what that has said; the one runner runs it.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ..git.masking import MASK
from . import probe
from .definitions import Gate
from .interpreters import Launch, is_of_node, launch_of
from .proving import UNKNOWN, Sighting
from .spec import GateSpec

MOST_SECONDS = 300.0
_MOST_NAMES = 40
_INSTALLED = ("site-packages", "dist-packages", "node_modules")
_BUILT = ("build", "dist")
# `require.resolve.paths` are the folders that are searched, with those of NODE_PATH.
_NODE_PROBE = """
const fs = require("fs"), path = require("path"), told = {};
const asked = require("module").createRequire(path.join(process.cwd(), "x.js"));
for (const source of JSON.parse(process.argv[1])) {
  let name;
  try { name = JSON.parse(fs.readFileSync(path.join(source, "package.json"), "utf8")).name; }
  catch { continue; }
  if (typeof name !== "string") continue;
  const at = (asked.resolve.paths(name) || []).map((each) => path.join(each, name))
    .find((each) => fs.existsSync(each));
  told[name] = {source, found: at ? [fs.realpathSync(at)] : [], imported: false, beside: []};
}
process.stdout.write("\\nMARK" + JSON.stringify(told) + "\\n");
""".replace("MARK", probe.MARK)


def canary_spec(gate: Gate, spec: GateSpec, packages: Sequence[str]) -> GateSpec | None:
    """What is to be run to see from where a gate imports `packages` (see `Found`); None where there
    is nothing to see: a linter, no package, a command whose interpreter cannot be told. `spec` is
    what the gate itself is run by: its folder, variables and secrets."""
    command: str | None = None
    if gate.lints:
        return None
    if is_of_node(gate.run):
        command = _of_node([each for each in packages if each.endswith("/package.json")])
    else:
        sources = _sources(each for each in packages if not each.endswith("/package.json"))
        launch = launch_of(gate.run, spec.environment, spec.folder) if sources else None
        command = None if launch is None else _of_python(launch, sources)
    if command is None:
        return None
    limit = min(spec.limit_seconds, MOST_SECONDS)
    line = spec._replace(command=command, words=None, listens=None)
    return line._replace(limit_seconds=limit, artifact=None)


def canary_read(output: str, worktree: str) -> Sighting:
    """What the canary has seen, from its output, whole or the last of it."""
    told = _told(output)
    sightings = [
        (_sighting(name, facts, worktree), facts) for name, facts in told.items() if facts["found"]
    ]
    # What the tests have imported counts, and not what only happens to lie there.
    imported = [seen for seen, facts in sightings if facts["imported"]]
    seen = imported or [each for each, _ in sightings]
    for state in ("elsewhere", "copy", "here"):
        for each in seen:
            if each.state == state:
                return each
    return UNKNOWN


def _sources(packages: Any) -> dict[str, str]:
    """The names under which packages are imported, with where they lie in the repository."""
    named = {os.path.basename(each).removesuffix(".py"): each for each in packages}
    return dict(list(named.items())[:_MOST_NAMES])


def _of_python(launch: Launch, sources: Mapping[str, str]) -> str:
    asked = {"sources": sources, "paths": launch.paths, "pytest": launch.pytest}
    words = (*launch.words, os.path.abspath(probe.__file__), json.dumps(asked))
    assigned = [
        f"{name}={shlex.quote(value)}"
        for name, _, value in (each.partition("=") for each in launch.assigned)
    ]
    return " ".join([*assigned, shlex.join(words)])


def _of_node(packages: Sequence[str]) -> str | None:
    folders = [os.path.dirname(each) for each in packages[:_MOST_NAMES]]
    return shlex.join(("node", "-e", _NODE_PROBE, json.dumps(folders))) if folders else None


def _told(output: str) -> dict[str, dict[str, Any]]:
    """What the last line of the canary says; nothing where it is not whole."""
    for line in reversed(output.splitlines()):
        if line.startswith(probe.MARK):
            try:
                told = json.loads(line.removeprefix(probe.MARK))
                return {str(name): _facts(told[name]) for name in told}
            except (ValueError, KeyError, TypeError):
                return {}
    return {}


def _facts(told: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a mask has made unreadable."""
    places = {key: [p for p in told[key] if MASK not in p] for key in ("found", "beside")}
    return {"source": str(told["source"]), "imported": told["imported"] is True, **places}


def _sighting(name: str, facts: Mapping[str, Any], worktree: str) -> Sighting:
    expected = os.path.join(worktree, facts["source"])
    state, place = _state_of(facts["found"], expected, worktree)
    if state == "here":
        other, beside = _state_of(facts["beside"], expected, worktree)
        away = facts["beside"] and other != "here"
        return Sighting(state, name, place, beside=beside if away else None)
    checkout = _checkout_of(place)
    main = checkout is not None and _is_main(checkout, worktree)
    return Sighting(state, name, place, checkout, main)


def _state_of(found: Sequence[str], expected: str, worktree: str) -> tuple[str, str]:
    """Where a package is, by the places it is found at: those of a namespace are several."""
    places = [_folder_of(each) for each in found]
    # Some editable installs are a folder with a link to every file.
    linked = (os.path.join(expected, os.path.basename(each)) for each in found)
    if any(_same(place, expected) for place in places) or any(map(_same, found, linked)):
        return "here", expected
    place = places[0] if places else ""
    top = os.path.realpath(worktree)
    inside = os.path.relpath(os.path.realpath(place), top).split(os.sep) if place else [".."]
    if set(place.split(os.sep)) & set(_INSTALLED):
        return "copy", place
    if inside[0] == os.pardir:
        return "elsewhere", place
    return ("copy" if inside[0] in _BUILT else "here"), place


def _folder_of(place: str) -> str:
    """The folder of a package whose first file this is; a module, or a folder, as it is."""
    is_first = os.path.basename(place).startswith("__init__.")
    return os.path.dirname(place) if is_first else place


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _checkout_of(place: str) -> str | None:
    """The top of the working tree of git that a file lies in."""
    folder = os.path.realpath(place)
    while folder != (above := os.path.dirname(folder)):
        folder = above
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return None


def _is_main(checkout: str, worktree: str) -> bool:
    """Whether the worktree is one of this checkout's repository."""
    try:
        with open(os.path.join(worktree, ".git"), encoding="utf-8", errors="replace") as file:
            pointer = file.read(4096).strip().removeprefix("gitdir: ")
    except OSError:
        return False
    own = os.path.realpath(os.path.join(worktree, pointer))
    shared = os.path.realpath(os.path.join(checkout, ".git"))
    return os.path.dirname(os.path.dirname(own)) == shared
