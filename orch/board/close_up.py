"""How one task looks from near: lines of a given width, made of what is known of it. Pure."""

from collections.abc import Iterator, Sequence

from inbox_orch.shared.clock import rfc3339

from ..attempts.rows import details_of
from ..leader.board import Board
from ..patches.hiding import hidden
from ..runs.costs import Cost
from ..runs.model import Attempt
from ..views import stages
from ..views.detail import Detail
from ..views.logs import Log
from ..views.show import Edge
from ..views.status import Question, Row
from ..views.work import Work
from .fitting import Line, bar, cut, one_line, rule, span, wrapped
from .view import note_of, state_of, took, who_of

_MOST_FILES, _MOST_LOG_LINES, _MOST_BODY_LINES = 20, 20, 40
_MOST_EDGES = 8
_MOST_TEXT = 20_000
"""Letters of a text that is laid out at every look."""
_MOST_LAST_WORDS = 200
_HEADS = {"setup": "set-up", "message": "said", "output": "output", "check": "check"}


def detail_lines(board: Board, row: Row, detail: Detail | None, width: int) -> list[Line]:
    """The chosen task; without `detail` what the list knows of it, until that has been read."""
    parts = [_top(board, row, width)]
    if detail is not None:
        now_ms = board.status.now_ms
        shown = detail.shown
        parts += [
            _question(shown.question, now_ms, width),
            _progress(detail, width),
            _edges(shown.depends_on, shown.dependents, width),
            _attempts(detail, now_ms, width),
            _changes(detail, width),
            *(_log(log, width) for log in detail.logs if not _is_shown(log, shown.question)),
            _task(detail, width),
        ]
    lines: list[Line] = []
    for part in parts:
        lines += [((" ", None),), *part] if lines and part else part
    return [cut(line, width) for line in lines]


def _plain(texts: Sequence[str], look: str | None = None) -> list[Line]:
    return [((text, look),) for text in texts]


def _top(board: Board, row: Row, width: int) -> list[Line]:
    task = row.standing.task
    state = state_of(row)
    time = took(row, board.status.now_ms)
    facts = [fact for fact in (who_of(board, row), time) if fact]
    first: Line = (
        (task.key, "title"),
        ("  ", None),
        (state, state.replace(" ", "_")),
        ("".join(f" · {fact}" for fact in facts), None),
    )
    note = note_of(board, row)
    lines = [first, *_plain(wrapped(task.title, width, most=4), "title")]
    # A question is shown whole below, and so is what was said of the progress.
    below = row.standing.state == "blocked" or state == "running"
    return lines + ([] if below else _plain(wrapped(note, width, most=6)))


def _question(question: Question | None, now_ms: int, width: int) -> list[Line]:
    if question is None:
        return []
    return [rule("question", width), *question_lines(question, now_ms, width)]


def question_lines(
    question: Question, now_ms: int, width: int, most: int = _MOST_TEXT
) -> list[Line]:
    """A question with the answers that are offered; of one that is very long, so many letters."""
    message, decision = question.message, question.decision
    head = f"{message.sender} asks, {span(now_ms - message.created_at)} ago"
    if decision is not None:
        head = f"a decision is asked for, {span(now_ms - message.created_at)} ago"
    if message.deadline is not None:
        head += f"; answer within {span(message.deadline - now_ms)}"
    body = message.body or ""
    body = body if decision is None else stages.without_answers(body)
    lines = [*_plain(wrapped(head, width), "blocked"), *_plain(wrapped(hidden(body)[:most], width))]
    if len(body) > most:
        whole = "orch blocked" if decision is None else f"orch task show {question.task.key}"
        lines.append(((f"… and {len(body) - most} letters more: `{whole}`", "waiting"),))
    options = message.options
    if decision is not None:
        options = tuple(f"{name}: {does}" for name, does in stages.meanings_of(decision).items())
    for option in options:
        first, *rest = wrapped(option, width - 4)
        lines += [(("  › ", "key"), (first, None))]
        lines += [(("    ", None), (text, None)) for text in rest]
    return lines


def _progress(detail: Detail, width: int) -> list[Line]:
    attempt, thread = detail.attempt, detail.thread
    if attempt is None or thread is None or not attempt.live:
        return []
    said = "" if detail.progress is None else detail.progress.body or ""
    if thread.progress is None and not said:
        return []
    lines: list[Line] = [rule("progress", width)]
    if thread.progress is not None:
        text = f"{bar(thread.progress, 20)} {thread.progress} %"
        lines.append(((text, "running"),))
    return lines + (_plain(wrapped(hidden(said)[:_MOST_TEXT], width, most=10)) if said else [])


def _edges(depends_on: Sequence[Edge], dependents: Sequence[Edge], width: int) -> list[Line]:
    lines: list[Line] = []
    for words, edges in (("waits for", depends_on), ("awaited by", dependents)):
        if edges:
            named = ", ".join(f"{e.other.task.key} ({e.other.state})" for e in edges[:_MOST_EDGES])
            named += f" and {len(edges) - _MOST_EDGES} more" if len(edges) > _MOST_EDGES else ""
            lines += _plain(wrapped(f"{words} {named}", width, most=4))
    return lines


def _attempts(detail: Detail, now_ms: int, width: int) -> list[Line]:
    if not detail.shown.attempts:
        return []
    lines: list[Line] = [rule("attempts", width)]
    for attempt in detail.shown.attempts:
        lines += _attempt(detail, attempt, now_ms, width)
    total = cost_words(detail.cost)
    return lines + (_plain([f"cost of all: {total}"]) if total and len(detail.costs) > 1 else [])


def _attempt(detail: Detail, attempt: Attempt, now_ms: int, width: int) -> Iterator[Line]:
    work = detail.shown.works.get(attempt.id)
    facts = [span((attempt.ended_at or now_ms) - attempt.created_at)]
    facts += [work.words] if work is not None and work.words else []
    state = attempt.state.replace("_", " ")
    yield (
        (f"{attempt.number:>2}  ", "key"),
        (state, attempt.state),
        ("".join(f" · {fact}" for fact in facts), None),
    )
    said = [*_lease(detail, attempt, now_ms), *_work(work)]
    said += [attempt.reason] if attempt.reason else []
    said += stages.lines_of(detail.shown.visits.get(attempt.id, ()))
    said += [f"patch {each.line}" for each in detail.shown.patches.get(attempt.id, ())]
    unverified = details_of(attempt).unverified if attempt.staged else None
    said += [f"not verified: {unverified}"] if unverified else []
    said += [f"cost: {cost_words(detail.costs[attempt.id])}"] if attempt.id in detail.costs else []
    for each in said:
        for text in wrapped(each, width - 4, most=6):
            yield (("    ", None), (text, None))


def _lease(detail: Detail, attempt: Attempt, now_ms: int) -> Iterator[str]:
    lease = None if detail.thread is None else detail.thread.lease
    if lease is None or attempt is not detail.attempt:
        return
    if lease.expired:
        yield f"the lease of {lease.holder} ran out"
    else:
        yield f"lease for {span(lease.expires_at - now_ms)} more"


def _work(work: Work | None) -> Iterator[str]:
    if work is None:
        return
    if work.lost_leases:
        yield f"{work.lost_leases} of {work.deliveries} leases ran out"
    if work.last_words:
        yield f"said: {work.last_words}"


def cost_words(cost: Cost) -> str:
    """What something cost, as far as that is known."""
    words = [] if cost.usd is None else [f"${cost.usd:.2f}"]
    for number, name in ((cost.input_tokens, "in"), (cost.output_tokens, "out")):
        words += [] if number is None else [f"{_rounded(number)} tokens {name}"]
    return ", ".join(words)


def _rounded(number: int) -> str:
    for unit, size in (("M", 1_000_000), ("k", 1000)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def _changes(detail: Detail, width: int) -> list[Line]:
    if detail.files is None:
        said = one_line(detail.unchanged)
        return [rule("changes", width), *_plain(wrapped(said, width), "waiting")] if said else []
    added = sum(file.added or 0 for file in detail.files)
    removed = sum(file.removed or 0 for file in detail.files)
    number = "1 file" if len(detail.files) == 1 else f"{len(detail.files)} files"
    lines: list[Line] = [rule(f"changes of {detail.changed}", width)]
    if not detail.files:
        return [*lines, (("nothing that git knows of", "waiting"),)]
    shown = detail.files[:_MOST_FILES]
    lines += [_file(file.path, file.added, file.removed, width) for file in shown]
    if len(detail.files) > _MOST_FILES:
        lines.append(((f"… and {len(detail.files) - _MOST_FILES} more", "waiting"),))
    return [*lines, ((f"{number}, ", None), (f"+{added}", "succeeded"), (f" −{removed}", "failed"))]


def _file(path: str, added: int | None, removed: int | None, width: int) -> Line:
    """A path by its end, which tells more than its beginning."""
    numbers = ("binary", "") if added is None else (f"+{added}", f" −{removed}")
    room = max(8, width - sum(map(len, numbers)) - 2)
    shown = path if len(path) <= room else "…" + path[1 - room :]
    return ((f"{shown}  ", None), (numbers[0], "succeeded"), (numbers[1], "failed"))


def _is_shown(log: Log, question: Question | None) -> bool:
    """Whether it stands above: the question that is open, what was said of the progress or last."""
    if log.source.what != "message":
        return False
    short = log.source.name in ("result", "failure") and len(log.text) < _MOST_LAST_WORDS
    asked = log.source.name == "question" and question is not None
    return short or asked or log.source.name == "progress"


def _log(log: Log, width: int) -> list[Line]:
    source = log.source
    head = f"{_HEADS[source.what]}: {source.name}" + (f", {source.by}" if source.by else "")
    lines = [rule(one_line(head, 120), width)]
    if log.missing:
        return [*lines, (("pruned", "waiting"),)]
    text = log.text[-_MOST_TEXT:].rstrip("\n")
    shown = wrapped(text, width)
    if len(shown) > _MOST_LOG_LINES:
        lines += [((f"… {len(shown) - _MOST_LOG_LINES} lines above", "waiting"),)]
    return lines + _plain(shown[-_MOST_LOG_LINES:])


def _task(detail: Detail, width: int) -> list[Line]:
    task = detail.shown.standing.task
    lines: list[Line] = [rule("task", width)]
    if task.body:
        lines += _plain(wrapped(task.body[:_MOST_TEXT], width, most=_MOST_BODY_LINES))
    for check in task.checks:
        lines += _plain(wrapped(f"check: {check}", width, most=3))
    made = str(rfc3339(task.created_at))[:16].replace("T", " ")
    tries = f"{task.attempts} of {task.max_attempts} attempts"
    said = f"mailbox {task.mailbox} · {tries} · added {made}"
    return [*lines, *_plain(wrapped(said, width), "waiting")]
