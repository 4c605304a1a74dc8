"""How a board looks: lines for a terminal of any size, made of a look at a run. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.shell.blocks import Block, Lines, Table, When, harmless
from inbox_orch.shared.shell.terminal import lines_of

from ...leader.board import Board
from ...runs.states import TASK_FINAL
from ...views.status import Question, Row
from .standings import row_of

_ORDER = (
    "blocked", "base_conflict", "active", "failed", "unreachable", "backing_off", "ready",
    "waiting", "cancelled", "skipped", "succeeded",
)  # fmt: skip
_HEADINGS = ("TASK", "STATE", "TRY", "WHO", "LEASE", "SINCE", "NOTE")
_TYPING = "enter send   tab offered answers   esc back"


class Typing(NamedTuple):
    """An answer that is being written."""

    question: Question
    text: str = ""


class Place(NamedTuple):
    """Where the reader is: which question is chosen, how far the tasks are scrolled, what is
    being typed, what there is to say."""

    chosen: int = 0
    scrolled: int = 0
    typing: Typing | None = None
    message: str = ""


def lines(board: Board, place: Place, columns: int, rows: int) -> list[str]:
    """At most `rows` lines of at most `columns` columns; the last one says what can be done."""
    top = lines_of(_head(board), columns)
    bottom = lines_of(_foot(board, place, columns), columns)
    room = max(0, rows - len(top) - len(bottom))
    asked = lines_of(_questions(board, place), columns)[: _share(room, 3, board.questions)]
    # The events have a quarter at least, and whatever the tasks leave.
    left = room - len(asked) - _share(room, 4, board.events)
    tasks = _tasks(board, place.scrolled, columns, left)
    told = lines_of(_events(board, room - len(asked) - len(tasks) - 1), columns)
    body = [*asked, *tasks, *told][:room]
    return [*top, *body, *[""] * (room - len(body)), *bottom][-rows:]


def pages(board: Board) -> int:
    """How far the tasks can be scrolled."""
    return max(0, len(board.status.rows) - 1)


def _share(room: int, parts: int, wanted: Sequence[object]) -> int:
    """So many lines of a part, with its heading; none where there is no room for it."""
    return 0 if room < 8 or not wanted else min(room // parts + 1, 2 * len(wanted) + 1)


# -- the parts -------------------------------------------------------------------------------


def _head(board: Board) -> list[Block]:
    status, run = board.status, board.status.run
    over = sum(status.counts.get(state, 0) for state in (*TASK_FINAL, "unreachable"))
    state = status.outcome if run.state == "open" else run.state
    rest = f" · {over} of {len(status.rows)} over"
    counts = [(f" · {n} {s}", s) for s, n in status.counts.items() if s not in TASK_FINAL]
    title = [(run.title, None), (" · ", None), (state, state), (rest, None), *counts]
    rows: list[tuple[tuple[str, str | None], ...]] = [tuple(title)]
    if len(board.runs) > 1:
        names = [f"[{r.name}]" if r.id == run.id else r.name for r in board.runs]
        rows.append(((f"runs: {'  '.join(names)}", "waiting"),))
    if status.obstacle is not None:
        rows.append(((f"submitted work waits: {status.obstacle}", "failed"),))
    if board.verdict is not None and board.verdict.code is not None:
        colour = "blocked" if board.verdict.code == "needs_decision" else "failed"
        rows.append(((board.verdict.message, colour),))
        rows.append(((str(board.verdict.hint), "waiting"),))
    return [Lines(tuple(rows))]


def _foot(board: Board, place: Place, columns: int) -> list[Block]:
    typing = place.typing
    if typing is None:
        return [Lines((((place.message, None),), ((_keys(board), "waiting"),)))]
    prompt = f"answer to {typing.question.task.key}: "
    shown = harmless(typing.text.replace("\n", "⏎"))[-max(8, columns - len(prompt) - 2) :]
    first: tuple[tuple[str, str | None], ...] = ((prompt, "blocked"), (shown + "▏", None))
    return [Lines((first, ((place.message or _TYPING, "waiting"),)))]


def _keys(board: Board) -> str:
    """The keys that do something now."""
    asked, runs = len(board.questions), len(board.runs)
    keys = ["q quit", "↑↓ scroll"]
    keys += ["a answer"] if asked else []
    keys += ["tab next question"] if asked > 1 else []
    keys += ["←→ other runs"] if runs > 1 else []
    return "   ".join(keys)


def _questions(board: Board, place: Place) -> list[Block]:
    if not board.questions:
        return []
    # The chosen one comes first, so that it is seen however little room there is.
    turned = range(len(board.questions))
    first = place.chosen % len(board.questions)
    rows: list[tuple[tuple[str, str | None], ...]] = [_rule(f"questions ({len(turned)})")]
    for number in (*turned[first:], *turned[:first]):
        asked = board.questions[number]
        mark = "›" if number == first else " "
        body = " ".join((asked.message.body or "").split())
        options = f" ({' | '.join(asked.message.options)})" if asked.message.options else ""
        head = f"{mark} {asked.task.key}, {asked.message.sender}: "
        rows.append(((head, "blocked"), (body + options, None)))
    return [Lines(tuple(rows))]


def _events(board: Board, most: int) -> list[Block]:
    if most < 1 or not board.events:
        return []
    keys = board.keys
    rows: list[tuple[tuple[str, str | None], ...]] = [_rule("events")]
    for event in board.events[-most:]:
        what = event.kind.replace("_", " ")
        reason = event.data.get("reason") if isinstance(event.data, dict) else None
        about = keys.get(event.task_id or "", "")
        text = f"{str(rfc3339(event.at))[11:19]}  {what}  {about}" + (
            f": {reason}" if reason else ""
        )
        rows.append(((text, event.kind.split("_", 1)[-1]),))
    return [Lines(tuple(rows))]


def _tasks(board: Board, scrolled: int, columns: int, room: int) -> list[str]:
    """The heading, as many tasks as there is room for, and how many there are more."""
    ordered = sorted(board.status.rows, key=lambda row: _ORDER.index(row.standing.state))
    below = ordered[min(scrolled, pages(board)) :]
    if room < 2:
        return []
    rule = lines_of([Lines((_rule(f"tasks ({len(ordered)})"),))], columns)
    fitting = below if len(below) <= room - 2 else below[: max(0, room - 3)]
    rows = tuple(_task_row(row, board.status.now_ms) for row in fitting)
    table = Table(_HEADINGS, rows, "no tasks", fixed=(0, 1, 2), sparse=(4,))
    more = len(below) - len(fitting)
    tail = [Lines(((((f"… and {more} more"), "waiting"),),))] if more else []
    return [*rule, *lines_of([table], columns), *lines_of(tail, columns)][:room]


def _task_row(row: Row, now_ms: int) -> tuple[object, ...]:
    key, state, attempts, who, since, note = row_of(row, now_ms)
    tries = f"{attempts}/{row.standing.task.max_attempts}" if attempts else ""
    lease = None if row.thread is None else row.thread.lease
    left = None if lease is None else When(lease.expires_at, now_ms)
    if lease is not None and lease.expired:
        return key, state, tries, who, "expired", since, note
    return key, state, tries, who, left, since, note


def _rule(text: str) -> tuple[tuple[str, str | None], ...]:
    return ((f"── {text} " + "─" * 200, "waiting"),)
