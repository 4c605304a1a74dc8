"""What a result of a gate stands on, so that it can be used again for the same tree."""

import os
import shlex
from collections.abc import Mapping, Sequence

from inbox_orch.shared.digests import digest_of

from .definitions import Gate

ALONE = "alone:"
"""How the ground of a result begins that was compared with no base."""


def ground_digest(
    gate: Gate, setup_text: str, tool_versions: Sequence[str], base_tree: str | None = None
) -> str:
    """The digest of a gate's definition, of what the worktree was set up with, of the tools
    (`tool_version`), and of the tree that failures were compared with: None for the result of a
    base, where all of them count. The result for a tree holds as long as this stays the same."""
    facts = {"gate": gate.as_json(), "setup": setup_text, "tools": list(tool_versions)}
    digest = digest_of({**facts, "base": base_tree})
    return f"{ALONE}{digest}" if base_tree is None else digest


def tool_version(gate: Gate, environment: Mapping[str, str], folder: str) -> str:
    """Which program a gate starts: the path that its first word is found at, with the size of that
    file and when it was changed; only its name where it cannot be found.

    That is cheap, no program is started for it, and it changes with every installation. What it
    does not see: what a script of that name (`make`, `uv run`) starts in its turn.
    """
    word = _program(gate)
    path = _found(word, environment.get("PATH", ""), folder)
    if path is None:
        return word
    try:
        at = os.stat(path)
    except OSError:
        return word
    return f"{path} {at.st_size} {at.st_mtime_ns}"


def _program(gate: Gate) -> str:
    """The first word of the command that is no assignment."""
    if not isinstance(gate.run, str):
        return gate.run[0] if gate.run else ""
    try:
        words = shlex.split(gate.run, comments=True)
    except ValueError:  # a quotation that does not end: the shell will say so
        words = gate.run.split()
    return next((word for word in words if "=" not in word), "")


def _found(word: str, path: str, folder: str) -> str | None:
    if "/" in word:
        return os.path.join(folder, word)
    for place in path.split(os.pathsep):
        # An empty place, and one that is no absolute path, is seen from where the command runs.
        candidate = os.path.join(folder, place, word)
        if word and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None
