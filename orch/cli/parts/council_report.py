"""How the report of a council is kept and shown."""

from typing import Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Lines, Page
from inbox_orch.shared.shell.output import Output

from ...council.count import Counted, report_name
from ...leader.scheduler import Scheduler


def shown_report(format_name: str, text: str) -> Block:
    """Only the report is for people, and laid out; the other formats are for files."""
    if format_name == "md":
        return Page(text)
    return Lines(tuple(((line, None),) for line in text.splitlines()))


def kept_report(
    scheduler: Scheduler, counted: Counted, format_name: str, content: bytes
) -> dict[str, Any] | None:
    """Nothing is stored of a round that is open, or where nothing can be written."""
    alone = scheduler.database.alone is not None
    if counted.tally.status == "open" or counted.stale or alone:
        return None
    return scheduler.keep_report(counted, report_name(format_name), content)


def tell_report(
    output: Output, data: dict[str, Any], error: InboxOrchError | None, *blocks: Block
) -> None:
    """Show it, and end with the error if the tally is not complete."""
    if error is None:
        output.result(data, *blocks)
        return
    error.data = data
    output.outcome(error, *blocks)
