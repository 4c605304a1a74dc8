"""Whether the schema of a thread accepts a result.

`schema_judge` judges, in a process of its own with a limit of computing time: a schema comes from
one agent and a result from another, and a regular expression alone can take years. Loaded only for
threads that have a schema.
"""

import functools
import json
import signal
import subprocess
import sys
from typing import Any

from inbox_orch.shared.errors import InboxOrchError, usage

from ..domain import limits
from .desk import Desk, Draft

CPU_SECONDS = 5
_WALL_SECONDS = 60.0
_JUDGE = "inbox_orch.inbox.services.schema_judge"
_OUT_OF_TIME = (-signal.SIGXCPU, -signal.SIGKILL)


@functools.lru_cache(maxsize=64)
def checked(text: str) -> str:
    """A schema that results can be judged by, as it is stored; error `usage`."""
    schema = limits.check_schema(text)
    verdict = _judge(schema, "")
    fault = f"takes more than {CPU_SECONDS} s to be read" if verdict is None else verdict["fault"]
    if fault is not None:
        raise usage(
            f"the schema {fault}",
            hint="nothing was changed; it has to be a JSON Schema that needs no other document",
        )
    return schema


def refuse_inside(desk: Desk) -> None:
    """Error `usage` inside a transaction of the caller's: every other writer would wait for it."""
    if desk.database.in_transaction:
        raise usage("a schema is not judged by inside a transaction", hint="call it by itself")


def accept(thread_id: str, schema: str, draft: Draft) -> None:
    """Nothing, for a result that the schema accepts: the payload, or without one the body as JSON.
    Error `result_refused`."""
    text = draft.body if draft.payload is None else draft.payload
    if not text:
        raise _refused(thread_id, [_problem("a result", "nothing")])
    try:
        value = limits.read_json("body", text, limits.MAX_BODY_BYTES)
        limits.check_depth("body", value, limits.MAX_PAYLOAD_DEPTH)
    except InboxOrchError as error:
        raise _refused(thread_id, [_problem(f"JSON ({error.message})", _begun(text))]) from error
    verdict = _judge(schema, text)
    if verdict is None:
        found = f"one that takes more than {CPU_SECONDS} s to judge"
        raise _refused(thread_id, [_problem("a simpler result", found)])
    if verdict["fault"] is not None:
        found = f"one with which the schema {verdict['fault']}"
        raise _refused(thread_id, [_problem("a result that can be judged", found)])
    if verdict["problems"]:
        raise _refused(thread_id, verdict["problems"], verdict["more"])


def _judge(schema: str, value: str) -> dict[str, Any] | None:
    """What the judge says; None when it has run out of time. Only the schema is looked at where
    there is no value."""
    command = (sys.executable, "-P", "-W", "ignore", "-m", _JUDGE, str(CPU_SECONDS))
    given = f"{schema}\n{value}".encode()
    try:
        ended = subprocess.run(command, input=given, capture_output=True, timeout=_WALL_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        raise InboxOrchError(
            "io_error",
            f"no process could be started to judge by a schema: {error.strerror}",
            hint="nothing was changed; try again when there is room for one more process",
        ) from error
    if ended.returncode in _OUT_OF_TIME:
        return None
    if ended.returncode != 0:
        said = ended.stderr[-2000:].decode(errors="replace")
        raise RuntimeError(f"judging by a schema ended with {ended.returncode}: {said}")
    verdict: dict[str, Any] = json.loads(ended.stdout)
    return verdict


def _problem(expected: str, found: str) -> dict[str, str]:
    """What is wrong with the result as a whole."""
    return {"path": "$", "expected": expected, "found": found}


def _begun(text: str, most: int = 60) -> str:
    return json.dumps(text if len(text) <= most else text[:most] + "…", ensure_ascii=False)


def _refused(thread_id: str, problems: list[dict[str, str]], more: int = 0) -> InboxOrchError:
    """The result is not as the thread's schema has it: exit 2, with each thing that is wrong."""
    said = [f"{p['path']}: expected {p['expected']}, found {p['found']}" for p in problems]
    said += [f"and {more} more"] if more else []
    return InboxOrchError(
        "result_refused",
        f"the schema of thread {thread_id} does not accept the result: {'; '.join(said)}",
        hint="nothing was changed, and the thread is still yours: put the result right and call "
        f"`done` again; `inbox show {thread_id}` has the schema",
        details={"thread": thread_id, "problems": problems, "more": more},
    )
