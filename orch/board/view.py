"""What a board shows of a run: lines, made of a look at it. Pure.

Tasks with their states and titles apart, those first that need somebody; the open questions; what
has happened; the keys that do something now.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.clock import rfc3339

from ..leader.board import MOST_EVENTS, Board
from ..runs.states import TASK_FINAL
from ..views.needs import held_up_by
from ..views.status import Question, Row
from .fitting import Column, Line, Piece, bar, cut, one_line, rule, span, table, wrapped
from .sentences import Sentence, sentences

WIDE = 100
"""From so many columns on the details of the chosen task stand beside the list."""
ROOMY = 66
"""From so many columns on the list says who works on a task, and more about how it stands."""

_ORDER = (
    "blocked", "base_conflict", "failed", "active", "unreachable", "backing_off", "ready",
    "waiting", "cancelled", "skipped", "succeeded",
)  # fmt: skip
_OVER = (*TASK_FINAL, "unreachable")
_HEAD_BAR = 10
_RETRIED = ("failed", "cancelled", "succeeded")


class Place(NamedTuple):
    """Where the reader is: which task is chosen, by its id; what is looked for."""

    chosen: str | None = None
    wanted: str = ""


# -- rows ------------------------------------------------------------------------------------


def rows_of(board: Board, wanted: str = "") -> tuple[Row, ...]:
    """The tasks in which every wanted word occurs, those first that need somebody."""
    words = wanted.casefold().split()
    every = board.status.rows
    rows = [row for row in every if all(word in _searched(board, row) for word in words)]
    return tuple(sorted(rows, key=lambda row: _ORDER.index(row.standing.state)))


def _searched(board: Board, row: Row) -> str:
    task = row.standing.task
    parts = (task.key, task.title, state_of(row), who_of(board, row), task.mailbox)
    return "\n".join(parts).casefold()


def chosen_row(rows: Sequence[Row], place: Place) -> Row | None:
    """The row of the chosen task; the first one where that is not shown."""
    found = [row for row in rows if row.standing.task.id == place.chosen]
    return found[0] if found else next(iter(rows), None)


def state_of(row: Row) -> str:
    """How a task stands, or, while it is in hand, its attempt."""
    in_hand = row.standing.state == "active" and row.attempt is not None
    state = row.attempt.state if in_hand and row.attempt is not None else row.standing.state
    return state.replace("_", " ")


def who_of(board: Board, row: Row) -> str:
    """Who works on it, or did, or asks and has lost its lease meanwhile."""
    asked = question_of(board, row)
    return row.worker or ("" if asked is None else asked.message.sender)


def question_of(board: Board, row: Row | None) -> Question | None:
    """The open question of a task."""
    if row is None:
        return None
    task = row.standing.task.id
    return next((q for q in board.questions if q.task.id == task), None)


def took(row: Row, now_ms: int) -> str:
    """How long the newest attempt took, or has taken until now."""
    attempt = row.attempt
    if attempt is None or row.standing.task.state == "pending":
        return ""
    return span((attempt.ended_at or now_ms) - attempt.created_at)


def times(board: Board) -> tuple[str, ...]:
    """All that a list shows and that changes by itself as time passes."""
    now_ms = board.status.now_ms
    moving = [row for row in board.status.rows if row.attempt is not None and row.attempt.live]
    waiting = [row for row in board.status.rows if row.standing.until is not None]
    return (*(took(row, now_ms) for row in moving), *(note_of(board, row) for row in waiting))


def note_of(board: Board, row: Row) -> str:
    """What there is to say of how a task stands."""
    standing, asked = row.standing, question_of(board, row)
    if asked is not None:
        decides = asked.decision is not None and row.place is not None
        said = row.place.words if row.place and decides else f"asks: {one_line(asked.message.body)}"
        return one_line(said)
    held_up = held_up_by(standing)
    if held_up is not None:
        return held_up
    if standing.until is not None:
        left = max(1, -(-(standing.until - board.status.now_ms) // 1000))
        return f"again in {left} s: {standing.task.reason}"
    if row.attempt is not None and row.attempt.live:
        return _live_note(board, row)
    if row.unverified is not None:
        return f"not verified: {row.unverified}"
    if standing.state == "failed" and row.attempt is not None and row.attempt.reason:
        return row.attempt.reason
    return "" if standing.state == "succeeded" else standing.task.reason or ""


def _live_note(board: Board, row: Row) -> str:
    """How far it is; where it goes by a blueprint, its stage before that."""
    stage = "" if row.place is None else one_line(row.place.words)
    return " · ".join(part for part in (stage, _how_far(board, row)) if part)


def _how_far(board: Board, row: Row) -> str:
    attempt, thread = row.attempt, row.thread
    if attempt is None or thread is None:
        return ""
    if attempt.state == "ending":
        return attempt.reason or ""
    if attempt.state == "offered":
        return "waits for a worker"
    if attempt.staged and thread.finished_at is not None:
        return ""  # what was said there was for a stage that is over
    if thread.lease is not None and thread.lease.expired:
        return f"the lease of {thread.lease.holder} ran out"
    said = one_line(board.progress.get(thread.id))
    if thread.progress is None:
        return said
    return f"{bar(thread.progress)} {thread.progress} % {said}".rstrip()


# -- the table -------------------------------------------------------------------------------


def task_lines(board: Board, rows: Sequence[Row], width: int) -> list[Line]:
    """The heading of the list, and a line for each row."""
    if not rows:
        return [
            cut((("no task is so" if board.status.rows else "no tasks yet", "waiting"),), width)
        ]
    roomy = width >= ROOMY
    now_ms = board.status.now_ms
    tasks = [(row.standing.task.key, "key") for row in rows]
    states = [(_state_shown(row), _look(row)) for row in rows]
    titles = [(one_line(row.standing.task.title), None) for row in rows]
    times = tuple((took(row, now_ms), "waiting") for row in rows)
    columns = [
        Column("TASK", tuple(tasks), 24 if width >= WIDE else 18, weight=0 if roomy else 2),
        Column("STATE", tuple(states), 20),
    ]
    who = _who_shown(board, rows) if roomy else ()
    notes = tuple(_note_shown(board, row, roomy=roomy) for row in rows)
    columns += [
        *_said("WHO", who, 12),
        *_said("TIME", times, 8),
        Column("TITLE", tuple(titles), 60, weight=2),
        *_said("NOTE", notes, 300 if roomy else 9, weight=1 if roomy else 0),
    ]
    return table(columns, width)


def _said(heading: str, texts: Sequence[Piece], most: int, *, weight: int = 0) -> list[Column]:
    """A column, if it says something."""
    return [Column(heading, tuple(texts), most, weight)] if any(t for t, _ in texts) else []


def _who_shown(board: Board, rows: Sequence[Row]) -> tuple[Piece, ...]:
    """Who works on each, or did; where tasks are for several mailboxes, that of the others."""
    several = len({row.standing.task.mailbox for row in rows}) > 1
    found: list[Piece] = []
    for row in rows:
        who = who_of(board, row)
        other = row.standing.task.mailbox if several else ""
        found.append((who, None) if who else (other, "waiting"))
    return tuple(found)


def _state_shown(row: Row) -> str:
    tries = row.standing.task.attempts
    again = f" {tries}/{max(tries, row.standing.task.max_attempts)}" if tries > 1 else ""
    return state_of(row) + again


def _look(row: Row) -> str:
    return state_of(row).replace(" ", "_")


def _note_shown(board: Board, row: Row, *, roomy: bool) -> Piece:
    look = "blocked" if question_of(board, row) is not None else _note_look(row)
    if roomy:
        return note_of(board, row), look
    live = row.attempt is not None and row.attempt.live and row.thread is not None
    percent = row.thread.progress if live and row.thread is not None else None
    return ("" if percent is None else f"{bar(percent, 4)}{percent:>3} %"), look


def _note_look(row: Row) -> str | None:
    expired = row.thread is not None and row.thread.lease is not None and row.thread.lease.expired
    if row.standing.state in ("failed", "unreachable") or expired:
        return "failed"
    return "base_conflict" if row.standing.conflict_paths else None


# -- above the table -------------------------------------------------------------------------


def head_lines(board: Board, place: Place, width: int, height: int) -> list[Line]:
    """The run, how far it is, what stands in its way, and the open questions."""
    status, run = board.status, board.status.run
    state = status.outcome if run.state == "open" else run.state
    lines: list[Line] = [_title(board, state, width), _counts(board)]
    if len(board.runs) > 1:
        lines.append(_runs(board, width))
    notices = [f"submitted work waits: {status.obstacle}"] if status.obstacle else []
    notices += ["the database cannot be written here: this may be stale"] if status.stale else []
    if board.verdict is not None and board.verdict.code is not None:
        look = "blocked" if board.verdict.code == "needs_decision" else "failed"
        lines += [((text, look),) for text in wrapped(board.verdict.message, width, most=3)]
        lines += [((text, "waiting"),) for text in wrapped(str(board.verdict.hint), width, most=3)]
    lines += [((text, "failed"),) for each in notices for text in wrapped(each, width, most=2)]
    lines += question_lines(board, place, 1 if height < 20 else 2 if height < 30 else 4)
    if place.wanted:
        found = len(rows_of(board, place.wanted))
        text = f"looking for “{place.wanted}”: {found} of {len(status.rows)} tasks"
        lines.append(((text, "key"), ("   esc shows all", "waiting")))
    return [cut(line, width) for line in lines]


def _title(board: Board, state: str, width: int) -> Line:
    """The run's title and how it stands, and how far it is as a bar, which is never cut off."""
    counts, number = board.status.counts, len(board.status.rows)
    percent = 100 * _over(counts) // number if number else 0
    drawn = f"  {bar(percent, _HEAD_BAR)} {percent} % ({_over(counts)} of {number})"
    room = max(8, width - len(drawn) - len(state) - 3)
    named = cut(((board.status.run.title, "title"),), room)
    look = "succeeded" if percent == 100 else "running"
    return (*named, (f" · {state}", state), (drawn, look))


def _over(counts: Mapping[str, int]) -> int:
    return sum(counts.get(state, 0) for state in _OVER)


def _counts(board: Board) -> Line:
    counts = board.status.counts
    shown = sorted(counts.items(), key=lambda item: _ORDER.index(item[0]))
    pieces: list[Piece] = []
    for state, number in shown:
        pieces += [(" · ", "waiting")] if pieces else []
        pieces.append((f"{number} {state.replace('_', ' ')}", state))
    return tuple(pieces) or (("no tasks yet", "waiting"),)


def _runs(board: Board, width: int) -> Line:
    """The open runs, from the one that is shown on if there is no room for all."""
    names = [run.name for run in board.runs]
    shown = board.status.run.name
    first = names.index(shown) if shown in names else 0
    if len("  ".join(names)) + 8 <= width:
        first = 0
    pieces: list[Piece] = [("runs: " if first == 0 else "runs: … ", "waiting")]
    pieces += [
        (f"[{name}]  ", "key") if name == shown else (f"{name}  ", "waiting")
        for name in names[first:]
    ]
    return tuple(pieces)


def question_lines(board: Board, place: Place, most: int) -> list[Line]:
    """The open questions, that of the chosen task first; the rest is counted."""
    chosen = [q for q in board.questions if q.task.id == place.chosen]
    ordered = [*chosen, *(q for q in board.questions if q not in chosen)]
    lines: list[Line] = []
    for asked in ordered[:most]:
        options = f" ({' | '.join(asked.options)})" if asked.options else ""
        mark = "› " if asked in chosen else "? "
        head, said = f"{asked.message.sender} asks: ", asked.message.body
        if asked.decision is not None:
            head, said = "a decision: ", asked.decision.sentence
        head = f"{mark}{asked.task.key}, {head}"
        lines.append(((head, "blocked"), (one_line(said) + options, None)))
    more = len(ordered) - most
    if more > 0 and lines:
        lines[-1] = ((f"+{more} more  ", "waiting"), *lines[-1])
    return lines


# -- below the table -------------------------------------------------------------------------


def happened(board: Board) -> list[Sentence]:
    """What has happened, in words, oldest first."""
    rows = board.status.rows
    threads = {row.thread.id: row.standing.task.key for row in rows if row.thread is not None}
    cut = len(board.events) >= MOST_EVENTS
    return sentences(board.events, board.keys, threads, board.texts, cut=cut)


def happened_lines(board: Board, width: int, most: int) -> list[Line]:
    """A rule, and the newest of what has happened, the newest last."""
    told = happened(board)[-max(0, most - 1) :] if most > 1 else []
    lines: list[Line] = [rule("what happened", width)]
    lines += [
        ((str(rfc3339(each.at))[11:19] + "  ", "waiting"), (each.text, each.look)) for each in told
    ]
    return [cut(line, width) for line in lines[:most]]


class Key(NamedTuple):
    """A key, and what it does."""

    name: str
    does: str


def keys(board: Board, row: Row | None) -> list[Key]:
    """The keys that do something now, the most useful first."""
    found = [Key("q", "quit"), Key("↑↓", "choose"), Key("enter", "details"), Key("/", "find")]
    if board.questions:
        found.insert(0, Key("a", "answer"))
    if len(board.questions) > 1:
        found.append(Key("tab", "next question"))
    if row is not None and may_retry(row):
        found.append(Key("r", "retry"))
    if row is not None and may_cancel(row):
        found.append(Key("c", "cancel"))
    if may_integrate(board):
        found.append(Key("i", "integrate"))
    if len(board.runs) > 1:
        found.append(Key("←→", "other runs"))
    return found


def may_retry(row: Row) -> bool:
    """Whether the task can be tried again."""
    return row.standing.task.state in _RETRIED


def may_cancel(row: Row) -> bool:
    """Whether the task can still be cancelled."""
    return row.standing.task.state in ("pending", "active", "blocked")


def may_integrate(board: Board) -> bool:
    """Whether there can be accepted work to bring together."""
    accepted = any(row.standing.task.accepted_head for row in board.status.rows)
    return board.status.run.repository is not None and accepted


def keys_line(found: Sequence[Key], width: int) -> Line:
    """As many keys as there is room for."""
    pieces: list[Piece] = []
    used = 0
    for key in found:
        text = f"{key.name} {key.does}"
        used += len(text) + (2 if pieces else 0)
        if used > width:
            break
        pieces += [*([("  ", None)] if pieces else []), (key.name, "key"), (f" {key.does}", None)]
    return tuple(pieces)
