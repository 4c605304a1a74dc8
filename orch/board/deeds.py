"""What the keys of a board do: each calls what a command calls, and says what came of it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage

from ..attempts.steer import Steered
from ..integration.integrate import Integrated
from ..integration.shortfall import failure_of
from ..leader.scheduler import Scheduler
from ..runs.model import Run
from ..stages.decide import Answered
from ..views.status import Question

_MOST_NAMED = 8
CHANGE_ROLE, _MAILBOX, SPLIT = "change_role", "MAILBOX", "split"


class Outcome(NamedTuple):
    """What came of a deed, in words; `well`: it did what it was to do."""

    text: str
    well: bool = True


class Deed(NamedTuple):
    """Something to be done, in a thread of its own. `name` is what it is called meanwhile."""

    name: str
    do: Callable[[Scheduler], Outcome]


def done(deed: Deed, scheduler: Scheduler) -> Outcome:
    """What came of it, also when it was refused."""
    try:
        return deed.do(scheduler)
    except InboxOrchError as error:
        return _told(error)


def _told(error: InboxOrchError) -> Outcome:
    return Outcome(error.message + (f" – {error.hint}" if error.hint else ""), well=False)


def answer(run: Run, question: Question, text: str) -> Deed:
    """Answer the very question that was shown, if it is still open."""
    key = question.task.key

    def do(scheduler: Scheduler) -> Outcome:
        if not text.strip():
            raise usage("an answer is empty")
        still = [q.message.id for q in scheduler.questions(run) if q.task.id == question.task.id]
        if still != [question.message.id]:
            raise usage(f"the question of {key} is not open any more")
        if question.decision is not None:
            given = decided_by(text)
            scheduler.answer(run, key, body=given.hint, decided=given)
            return Outcome(f"decided {key}: {given.answer}")
        scheduler.answer(run, key, body=text.strip())
        return Outcome(f"answered {key}")

    return Deed(f"answering {key}", do)


def decided_by(text: str) -> Answered:
    """What is decided: the first word is the answer, the rest a hint; after `change_role` the next
    word is the mailbox."""
    answer, _, hint = text.strip().partition(" ")
    mailbox = None
    if answer == CHANGE_ROLE:
        mailbox, _, hint = hint.strip().partition(" ")
        mailbox = mailbox if mailbox != _MAILBOX else None  # nobody has said which
    return Answered(answer.rstrip(":,"), hint.strip(), mailbox or None)


def next_decision(answers: Sequence[str], text: str) -> str:
    """A text with the next of the answers as its first word; the hint behind it stays. One that
    needs a file is given to the command."""
    answers = [each for each in answers if each != SPLIT]
    here, _, hint = text.strip().partition(" ")
    if here not in answers:
        here, hint = "", text.strip()
    if here == CHANGE_ROLE:
        hint = hint.removeprefix(_MAILBOX).strip()
    answer = answers[(answers.index(here) + 1 if here else 0) % len(answers)]
    words = (answer, _MAILBOX if answer == CHANGE_ROLE else "", hint)
    return " ".join(word for word in words if word)


def retry(run: Run, key: str, *, force: bool) -> Deed:
    """Have a task tried again; `force`: also if it has succeeded."""

    def do(scheduler: Scheduler) -> Outcome:
        return _steered(f"{key} is tried again", scheduler.retry(run, [key], force=force))

    return Deed(f"retrying {key}", do)


def cancel(run: Run, key: str) -> Deed:
    """Cancel a task."""

    def do(scheduler: Scheduler) -> Outcome:
        return _steered(f"{key} is cancelled", scheduler.cancel(run, [key]))

    return Deed(f"cancelling {key}", do)


def _steered(text: str, steered: Steered) -> Outcome:
    if steered.already:
        text += ", as it was before"
    if steered.ending:
        text += "; its worker has still to learn of it"
    if steered.left_behind:
        text += f"; not committed there, and so not taken along: {', '.join(steered.left_behind)}"
    return Outcome(text)


def look_ahead(run: Run, within: str) -> Deed:
    """What an integration would do."""

    def do(scheduler: Scheduler) -> Outcome:
        found = scheduler.integrate(run, dry_run=True, within=within)
        failure = failure_of(found)
        said = [_brought(found, "comes in", "there is nothing new to bring in")]
        said += [] if failure is None else [failure.message]
        return Outcome(". ".join(said), well=failure is None)

    return Deed("looking ahead", do)


def integrate(run: Run, onto: str | None, within: str) -> Deed:
    """Merge the accepted work; then, with `onto`, let that branch come forward to it."""

    def do(scheduler: Scheduler) -> Outcome:
        found = scheduler.integrate(run, onto=onto, within=within)
        failure = failure_of(found)
        if failure is not None:
            return _told(failure)
        text = _brought(found, f"is in {found.plan.branch}", f"{found.plan.branch} has it all")
        if found.onto is not None:
            text += f"; {found.onto['branch']}: {str(found.onto['state']).replace('_', ' ')}"
        return Outcome(text)

    return Deed("integrating", do)


def _brought(found: Integrated, verb: str, nothing: str) -> str:
    merged = [result.piece.task.key for result in found.results if result.state == "merged"]
    if not merged:
        return nothing
    more = len(merged) - _MOST_NAMED
    named = ", ".join(merged[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{named} {verb}"
