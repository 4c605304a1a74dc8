"""What an attempt has left to read: its set-up, what was said on its thread, the worker's output,
its checks. Only looks; of each text no more than its end is held in memory."""

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.model import Artifact, Message
from inbox_orch.inbox.services.reading import Shown
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.endings import Ending, ending_text

from ..attempts import visit_rows
from ..attempts.rows import details_of, failed_setup
from ..attempts.visits import Visit
from ..patches.hiding import hidden
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from ..runs.secrets import secrets_of
from .stage_words import entry

MOST_BYTES = 1024 * 1024
"""Of each text, so many bytes of its end are shown."""
OUTPUTS = ("stdout", "stderr")


class Source(NamedTuple):
    """Something to read. `what` is `setup`, `message`, `output` or `check`; `name` tells it from
    others of its kind; the text is `text`, or the artifact with this digest. `at` is in wall-clock
    milliseconds, `size` in bytes. `stage` is the visit that it comes from, as in `fix (2)`, where
    the attempt goes by a blueprint."""

    what: str
    name: str
    by: str | None
    at: int
    text: str
    size: int
    sha256: str | None = None
    stage: str | None = None


class Log(NamedTuple):
    """A text that was read. `truncated`: its beginning is left out; `missing`: it was pruned."""

    source: Source
    text: str
    truncated: bool
    missing: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.source.what,
            "name": self.source.name,
            "by": self.source.by,
            "at": rfc3339(self.source.at),
            "text": self.text,
            "bytes": self.source.size,
            "truncated": self.truncated,
            "missing": self.missing,
            **({} if self.source.stage is None else {"stage": self.source.stage}),
        }


def sources(desk: Desk, run: Run, attempt: Attempt) -> list[Source]:
    """All that there is now, in the order in which it came: of an attempt that goes by a blueprint
    visit by visit. Error `not_found` for the thread of a council's reviewer that the caller may not
    see."""
    found = [*_setup(attempt)]
    if attempt.staged:
        with desk.database.snapshot() as snapshot:
            visits = visit_rows.of_attempt(snapshot, attempt.id)
        for visit in visits:
            found += _of_visit(desk, run, attempt, visit)
    elif attempt.thread_id is not None:
        found += _of_thread(desk, run, attempt, attempt.thread_id)
    return [*found, *_checks(attempt)]


def _of_thread(desk: Desk, run: Run, attempt: Attempt, thread: str) -> list[Source]:
    """What was said there, and what the worker's command has put out."""
    shown = desk.bus.show(thread, full=True, agent=desk.actor(run))
    verdict = details_of(attempt).verdict_message
    said = [m for m in shown.messages[1:] if m.body and str(m.id) != verdict]
    said = [m for m in said if all(a.sha256 != m.body_sha256 for a in m.artifacts)]
    return sorted([*map(_said, said), *_outputs(shown)], key=lambda each: each.at)


def _of_visit(desk: Desk, run: Run, attempt: Attempt, visit: Visit) -> Iterator[Source]:
    """What was said on its thread, or what its gates came to."""
    stage = entry(visit.stage, visit.nth)
    if visit.thread_id is not None:
        for source in _of_thread(desk, run, attempt, visit.thread_id):
            yield source._replace(stage=stage)
    at = visit.ended_at or visit.created_at
    for gate in visit.found.get("gates", ()):
        said = f"{gate['gate']} {gate['state']}" + (f": {gate['reason']}" if gate["reason"] else "")
        _, digest, size = gate["artifact"] or (None, None, len(gate["output"].encode()))
        yield Source("check", said, None, at, gate["output"], size, digest, stage)


def read(desk: Desk, run: Run, source: Source) -> Log:
    """The end of a text, without keys and the secrets of the run's config. Errors: `io_error`, and
    others of the file; one that is gone is no error."""
    secrets = secrets_of(config_of(run))
    if source.sha256 is None:
        return Log(source, hidden(source.text, secrets), _is_cut(source), False)
    try:
        content = _end_of(desk, source.sha256)
    except InboxOrchError as error:
        if error.code != "not_found":
            raise
        return Log(source, hidden(source.text, secrets), _is_cut(source), True)
    text = hidden(content.decode("utf-8", "replace"), secrets)
    return Log(source, text, len(content) < source.size, False)


def _is_cut(source: Source) -> bool:
    return len(source.text.encode("utf-8", "replace")) < source.size


def _end_of(desk: Desk, sha256: str) -> bytes:
    with desk.bus.artifacts.open(sha256) as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - MOST_BYTES))
        return file.read(MOST_BYTES)


def _setup(attempt: Attempt) -> Iterator[Source]:
    failed = failed_setup(attempt)
    if failed is None:
        return
    keys = ("exit_status", "signal", "timed_out_seconds")
    ended = ending_text(Ending(*(failed[key] for key in keys)), "it").rstrip(".")
    tail = str(failed["output_tail"])
    at = attempt.ended_at or attempt.updated_at
    yield Source("setup", ended, None, at, tail, int(failed["output_bytes"]))


def _said(message: Message) -> Source:
    text = message.body or ""
    return Source(
        "message", message.kind, message.sender, message.created_at, text, message.body_bytes
    )


def _outputs(shown: Shown) -> Iterator[Source]:
    senders = {message.id: message.sender for message in shown.messages}
    for each in shown.artifacts:
        if each.name in OUTPUTS and each.bytes:
            yield _output(each, senders.get(each.message_id or 0))


def _output(artifact: Artifact, by: str | None) -> Source:
    at, size = artifact.created_at, artifact.bytes
    return Source("output", artifact.name, by, at, "", size, artifact.sha256)


def _checks(attempt: Attempt) -> Iterator[Source]:
    at = attempt.ended_at or attempt.updated_at
    for check in details_of(attempt).checks or ():
        digest = check.artifact_sha256 or None
        size = check.artifact_bytes if digest else check.output_bytes
        yield Source("check", check.sentence, None, at, check.output_tail, size, digest)


def identity(source: Source) -> str:
    """What tells a source from every other one of its attempt, also when it is looked at later."""
    told: Sequence[object] = (source.what, source.name, source.size, source.sha256)
    told = told if source.stage is None else (*told, source.stage)
    at = source.at if source.what in ("message", "output") else None
    return json.dumps([*told, source.by, at, source.text[:200]])
