"""What the events of patches say about the ledger, in the form in which its tables are compared.
Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from .model import Entry
from .states import ENTRIES, state_of

THINGS = ("patch", "patch entry")


def fold_patch(states: dict[str, dict[str, str]], kind: str, data: Mapping[str, Any]) -> str | None:
    """Go on with the next event; returns how it contradicts those before it, None if it does not.

    `states` maps the kinds of `THINGS` to what is known of each by its id.
    """
    patch, target = str(data["patch"]), str(data["to"])
    before = states["patch"].get(patch)
    states["patch"][patch] = target
    if kind == "patch_created":
        return None if before is None else f"patch {patch} is created, but it was {before}"
    number, (word, _, outcome) = int(data["entry"]), str(data["said"]).partition(" ")
    value = _entry(word, outcome, data["by"], data.get("policy"))
    states["patch entry"][f"{patch}/{number}"] = value
    if before != data["from"]:
        return f"patch {patch} leaves {data['from']}, but it was {before or 'not there'}"
    if number > 1 and f"{patch}/{number - 1}" not in states["patch entry"]:
        return f"entry {number} of patch {patch} comes before the one ahead of it"
    said = ENTRIES.get((word, outcome))
    if said is None or before not in said.sources or target != (said.target or before):
        return f"patch {patch} goes from {before} to {target} by {data['said']}"
    return None


def stored(ids: Iterable[str], entries: Iterable[tuple[str, list[Entry]]]) -> dict[str, Any]:
    """What the tables say of the `THINGS`: the ids of all patches, and what was said of each."""
    found: dict[str, dict[str, str]] = {"patch": dict.fromkeys(ids, "created"), "patch entry": {}}
    for patch, said in entries:
        found["patch"][patch] = state_of(said)
        for each in said:
            value = _entry(each.kind, each.outcome, each.by, each.policy)
            found["patch entry"][f"{patch}/{each.number}"] = value
    return found


def _entry(kind: str, outcome: str, by: str, policy: str | None) -> str:
    return f"{kind} {outcome} by {by}" + (f" under {policy}" if policy else "")
