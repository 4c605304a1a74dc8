"""The visits of an attempt that goes by a blueprint, as several commands show them."""

from collections.abc import Iterator, Sequence

from inbox_orch.shared.shell.blocks import Block, Facts

from ...attempts.rows import details_of
from ...attempts.visits import Visit
from ...runs.model import Attempt
from ...views.stages import lines_of


def visit_rows(attempt: Attempt, visits: Sequence[Visit]) -> Iterator[tuple[str, object]]:
    """A line for each visit, why accepted work was not judged as it should have been, and what
    gates saw that is not in it; nothing without a blueprint."""
    for line in lines_of(visits) if visits else ():
        yield "visit", line
    unverified = details_of(attempt).unverified if attempt.staged else None
    if unverified:
        yield "not verified", unverified
    ignored = details_of(attempt).ignored if attempt.staged else None
    if ignored:
        yield "ignored", ignored


def visit_blocks(name: str, attempt: Attempt, visits: Sequence[Visit]) -> list[Block]:
    """The same under the name of the attempt."""
    rows = tuple(visit_rows(attempt, visits))
    return [Facts((("visits of", name), *rows))] if rows else []
