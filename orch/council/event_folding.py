"""What the events of a council say about it, in the form in which its tables are compared."""

from collections.abc import Mapping
from typing import Any

_ROUND = {"round_opened": "open", "round_closed": "closed"}
THINGS = ("round", "reply", "override", "revision", "report")


def fold_council(
    states: dict[str, dict[str, str]],
    kind: str,
    run_id: str,
    attempt_id: str | None,
    data: Mapping[str, Any],
) -> str | None:
    """Go on with the next event; returns how it contradicts those before it, None if it does not.

    `states` maps the kinds of `THINGS` to what is known of each by its id.
    """
    thing, name, value = _said(kind, run_id, attempt_id, data)
    before = states[thing].get(name)
    states[thing][name] = value
    if _follows(kind, before, value):
        return None
    return f"{thing} {name} becomes {value}, but it was {before or 'not there'}"


def _said(
    kind: str, run_id: str, attempt_id: str | None, data: Mapping[str, Any]
) -> tuple[str, str, str]:
    """(thing, its id, what it is from now on)."""
    if kind in ("round_opened", "round_closed"):
        return "round", f"{run_id}/{data['round']}", _ROUND[kind]
    if kind == "reply_recorded":
        return "reply", str(attempt_id), f"{data['state']} {data['sha256']}"
    if kind == "override_recorded":
        return (
            "override",
            f"{run_id}/{data['number']}",
            " ".join((data["override"], *data["items"])),
        )
    if kind == "tally_revised":
        return "revision", run_id, str(data["revision"])
    return "report", f"{run_id}/{data['name']}/{data['sha256']}", str(data["revision"])


def _follows(kind: str, before: str | None, value: str) -> bool:
    if kind == "round_closed":
        return before == "open"
    if kind == "tally_revised":
        return int(value) == int(before or 0) + 1
    return before is None
