"""What earlier attempts at a task came to, told to the next worker."""

from typing import TYPE_CHECKING

from inbox_orch.inbox.domain.model import Message
from inbox_orch.shared.errors import InboxOrchError

from ..gates.checks import Checked
from ..git import salvage
from ..patches.hiding import hidden
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import rows as attempts
from . import texts
from .kinds import FirstMessage
from .verify import checks_of

if TYPE_CHECKING:
    from ..patches.policy import HasPolicy

_TOLD = ("question", "reply", "failure", "result")


def text_of(run: Run, task: Task, stage: "HasPolicy | None" = None) -> str:
    """The text of a task, with what policies ask of its change, or of that of a stage, where
    somebody has given one."""
    config = config_of(run)
    if config.policy is None and task.policy is None and (stage is None or stage.policy is None):
        return task.text
    # Only here: most tasks have none.
    from ..patches.brief import with_policy
    from ..patches.policy import of_task

    staged = task.blueprint is not None
    return with_policy(task.text, of_task(config, task, staged=staged, stage=stage))


def first_message(desk: Desk, run: Run, task: Task) -> FirstMessage:
    """The task, and what its earlier attempts came to: reasons, the ends of the outputs of
    checks that failed, questions and answers, what was changed. What is too long for a text
    is in an attached file."""
    with desk.database.snapshot() as snapshot:
        ended = [a for a in attempts.of_task(snapshot, task.id) if not a.live]
    earlier = [hidden(_account(desk, run, attempt, whole=False)) for attempt in ended]
    if texts.fits(earlier) and not any(_is_cut(c) for a in ended for c in checks_of(a)):
        return FirstMessage(texts.with_earlier(text_of(run, task), earlier))
    whole = "\n\n".join(hidden(_account(desk, run, each, whole=True)) for each in ended)
    stored = desk.bus.artifacts.add_bytes(
        texts.EARLIER_NAME, whole.encode("utf-8", "surrogateescape")
    )
    body = texts.with_earlier(text_of(run, task), earlier, attached=True)
    return FirstMessage(body, (stored,))


def _account(desk: Desk, run: Run, attempt: Attempt, *, whole: bool) -> str:
    lines = [f"Attempt {attempt.number}: {attempt.state}. {attempt.reason or ''}".rstrip()]
    conflict = attempt.found_conflict
    if conflict is not None:
        head = str(attempt.head_commit)
        lines.append(texts.conflict_account(conflict.onto, conflict.paths, head, attempt.branch))
    lines += [_account_of_check(desk, c, whole=whole) for c in checks_of(attempt)]
    lines += [f"{m.kind} by {m.sender}: {m.body}" for m in _told(desk, attempt)]
    summary = _summary(desk, run, attempt)
    if summary:
        lines.append(f"Its branch {attempt.branch} has:\n{summary}")
    if attempt.salvage_commit is not None:
        source = salvage.ref_of(attempt.id)
        lines.append(
            "What it had not committed is kept, in no branch:"
            f" git restore --source {source} -- PATH"
        )
    return "\n".join(line for line in lines if line)


def _account_of_check(desk: Desk, check: Checked, *, whole: bool) -> str:
    if check.passed:
        return ""
    output = _output(desk, check) if whole else check.output_tail
    return f"Output of `{check.command}`:\n{output.rstrip()}"


def _output(desk: Desk, check: Checked) -> str:
    try:
        with desk.bus.artifacts.open(check.artifact_sha256) as file:
            return file.read().decode("utf-8", "replace")
    except InboxOrchError:
        return check.output_tail  # it has been pruned


def _told(desk: Desk, attempt: Attempt) -> list[Message]:
    """What was said on its thread, but for the verdict, which is told already."""
    if attempt.thread_id is None:
        return []
    verdict = attempts.details_of(attempt).verdict_message
    messages = desk.bus.messages(attempt.thread_id)[1:]
    return [m for m in messages if m.kind in _TOLD and m.body and str(m.id) != verdict]


def _summary(desk: Desk, run: Run, attempt: Attempt) -> str:
    stored = attempts.details_of(attempt).change_summary
    if stored is not None or attempt.branch is None or attempt.base_commit is None:
        return stored or ""
    head = attempt.head_commit or f"refs/heads/{attempt.branch}"
    return desk.repository(run).change_summary(head, attempt.base_commit)


def _is_cut(check: Checked) -> bool:
    return not check.passed and check.output_bytes > len(check.output_tail.encode())
