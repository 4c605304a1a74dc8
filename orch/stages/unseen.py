"""Ignored files that workers have made: gates see them, and yet they come into no commit.

Looked for when gates begin; what gates themselves have made, in a visit that failed, is left out
of the next one. Changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from inbox_orch.shared.ids import counted

from ..attempts.visits import Visit
from ..git import manifest
from ..git.failures import shown
from .caches import is_cache

MOST_KEPT = 50
MOST_NAMED = 3


def before(visit: Visit, earlier: Sequence[Visit], worktree: str) -> dict[str, Any]:
    """What the gates of a visit find there that is ignored and was not there when set-up was over,
    as a part of its result; of a visit that another leader has begun, what that has found. Errors:
    those of git."""
    if "ignored" in visit.found:
        return {"ignored": visit.found["ignored"]}
    by_gates = {path for each in earlier for path in each.found.get("made", ())}
    there = [path for path in _new(worktree) if path not in by_gates]
    return {"ignored": there[:MOST_KEPT]} if there else {}


def after(found: Mapping[str, Any], worktree: str) -> dict[str, Any]:
    """What gates have made of that kind themselves, as a part of their result."""
    there = set(found.get("ignored", ()))
    made = [path for path in _new(worktree) if path not in there]
    return {"made": made[:MOST_KEPT]} if made else {}


def _new(worktree: str) -> list[str]:
    """Ignored files and folders outside of caches that were not there, or not like this, when
    set-up was over."""
    found = [path for path in manifest.ignored_paths(worktree) if not is_cache(path)]
    return [shown(path) for path in manifest.changed_paths(worktree, found)]


def in_the_end(visits: Sequence[Visit]) -> str | None:
    """What there is to say of it when work is accepted; None where the last gates saw nothing of
    the kind."""
    last = next((v for v in reversed(visits) if v.kind == "gates" and v.state == "succeeded"), None)
    paths = [] if last is None else [str(path) for path in last.found.get("ignored", ())]
    if not paths:
        return None
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    number = counted(len(paths), "ignored file") if len(paths) < MOST_KEPT else "many ignored files"
    verb = "was" if len(paths) == 1 else "were"
    return (
        f"{number} {verb} there when gates ran, and not in the commit: "
        f"{', '.join(paths[:MOST_NAMED])}{more}"
    )
