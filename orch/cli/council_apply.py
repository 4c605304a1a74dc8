"""`orch council apply`."""

import json
from typing import Any

import click

from inbox_orch.shared.commandline import PATH, Verb
from inbox_orch.shared.errors import usage
from inbox_orch.shared.inputs import decode_body, read_input
from inbox_orch.shared.json_words import once_each, whole_number, words_of

from ..services.council_counting import Settled
from .council_base import council_option
from .council_settle import settle

MOST_BYTES = 4 * 1024 * 1024
_KINDS = {"merge": "merge", "keep": "split"}


@click.command(
    "apply",
    cls=Verb,
    agent=True,
    examples=("orch council apply pairs.json", "orch council apply - < pairs.json"),
)
@council_option
@click.argument("file", type=PATH)
@click.pass_context
def command(context: click.Context, council_name: str | None, file: str) -> None:
    """Settle the pairs of a file that `orch council suggest --json` made: all or nothing.

    `"decision": "merge"` or `"keep"`; a pair without a decision is left as it is. A `reason` may
    stand beside it.
    """
    content = decode_body(read_input(file, MOST_BYTES), MOST_BYTES)
    named, wanted = decided(content)
    settle(context, council_name or named, wanted, named)


def decided(content: str) -> tuple[str | None, list[Settled]]:
    """The council that the file names, and what it decides; error `usage` with a JSON pointer."""
    try:
        value = json.loads(content, object_pairs_hook=once_each, parse_int=whole_number)
    except (ValueError, RecursionError) as error:
        raise usage(f"the file is not JSON: {words_of(error)}") from error
    data = value.get("data", value) if isinstance(value, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("items"), list):
        raise usage(
            "the file has no list `items`",
            hint="`orch council suggest --json` prints what it must look like",
        )
    council = data.get("council")
    named = council.get("id") if isinstance(council, dict) else None
    found = [_pair(number, pair) for number, pair in enumerate(data["items"])]
    wanted = [each for each in found if each is not None]
    if not wanted:
        raise usage(
            "no pair of the file has a decision", hint='fill in `"decision": "merge"` or `"keep"`'
        )
    return named if isinstance(named, str) else None, wanted


def _pair(number: int, pair: Any) -> Settled | None:
    where = f"/items/{number}"
    if not isinstance(pair, dict):
        raise usage(f"{where}: is no object")
    decision = pair.get("decision")
    if decision is None:
        return None
    if not isinstance(decision, str) or decision not in _KINDS:
        raise usage(f"{where}/decision: is {decision!r}, must be `merge`, `keep` or null")
    items = pair.get("items")
    if (
        not isinstance(items, list)
        or len(items) != 2
        or not all(isinstance(item, str) for item in items)
    ):
        raise usage(f"{where}/items: must be the ids of two items")
    reason = pair.get("reason") or "as suggested"
    if not isinstance(reason, str):
        raise usage(f"{where}/reason: must be text")
    return Settled(_KINDS[decision], (items[0], items[1]), reason)
