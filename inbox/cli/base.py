"""What the commands of `inbox` have in common: opening the bus, bodies, how things look."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.shell.blocks import Block, Body, Facts, Sentence, Table, When
from inbox_orch.shared.shell.declaring import (
    DOCUMENT,
    PATH,
    TEXT,
    Context,
    Number,
    argument,
    option,
    shell_of,
)
from inbox_orch.shared.shell.inputs import given_text, read_input, warn_of_delimiter
from inbox_orch.shared.shell.shell import Shell

from ..bus import Bus
from ..domain import limits
from ..domain.model import Artifact, Lease, Message, Thread, Written

Command = TypeVar("Command", bound=Callable[..., Any])


def open_bus(
    context: Context,
    *,
    most_busy_seconds: float = 3600,
    looks: bool = False,
    perhaps_alone: bool | None = None,
) -> Bus:
    """The bus that the options lead to; closed when the command ends.

    `most_busy_seconds` is for a caller that must not stand still for long. `looks` is for a
    command that changes nothing: an older schema stays as it is, and a disk without any room
    left does not matter. For what makes room, and for what may wait, `perhaps_alone` says the
    latter by itself.
    """
    shell = shell_of(context)
    bus = Bus.open(
        shell.database,
        agent=shell.agent,
        database_id=shell.expected_id,
        busy_seconds=min(shell.busy_seconds, most_busy_seconds),
        notice=shell.output.notice,
        looks=looks,
        perhaps_alone=looks if perhaps_alone is None else perhaps_alone,
    )
    context.call_on_close(bus.close)
    return bus


# -- options -------------------------------------------------------------------------------


def lease_arguments(command: Command) -> Command:
    """`[THREAD] --token T`, for the commands of a holder."""
    token = option(
        "--token",
        envvar="INBOX_TOKEN",
        metavar="TOKEN",
        help="The lease's token.  [env: INBOX_TOKEN]",
    )
    thread = argument("thread", required=False, envvar="INBOX_THREAD", metavar="[THREAD]")
    return thread(token(command))


def held(thread: str | None, token: str | None) -> tuple[str, str]:
    """The thread and the token; error `usage` when one is missing."""
    if not thread:
        raise usage("no thread is named", hint="give THREAD or set INBOX_THREAD")
    if not token:
        raise usage(
            "no token is given",
            hint="`claim` printed it; give --token or set INBOX_TOKEN",
        )
    return thread, token


def body_options(command: Command) -> Command:
    """`--body-file PATH|-` and `--body TEXT`."""
    file = option(
        "--body-file", type=PATH, metavar="PATH|-", help="Read the body from a file or stdin."
    )
    text = option("--body", type=TEXT, metavar="TEXT", help="The body itself.")
    return file(text(command))


def attach_option(command: Command) -> Command:
    """`--attach F`, repeatable."""
    return option(
        "--attach", type=PATH, multiple=True, metavar="FILE", help="Attach a file; repeatable."
    )(command)


def payload_option(command: Command) -> Command:
    """`--payload-file F`."""
    return option(
        "--payload-file",
        type=PATH,
        metavar="FILE|-",
        help="A JSON object for programs, from a file or stdin.",
    )(command)


def schema_option(command: Command) -> Command:
    """`--schema FILE|JSON`."""
    return option(
        "--schema",
        type=DOCUMENT,
        metavar="FILE|JSON",
        help="A JSON Schema; `done` refuses a result that it does not accept.",
    )(command)


def key_option(command: Command) -> Command:
    """`--key K`."""
    return option(
        "--key", metavar="KEY", help="Makes a repeat of this call return its first result."
    )(command)


def mailbox_option(command: Command) -> Command:
    """`--mailbox M`, repeatable."""
    return option(
        "--mailbox",
        "mailboxes",
        multiple=True,
        metavar="MAILBOX",
        help="Read this mailbox, too; repeatable. Upper and lower case differ.",
    )(command)


LEASE = Number(limits.MIN_LEASE_SECONDS, limits.MAX_LEASE_SECONDS, seconds=True)
DELAY = Number(0, limits.MAX_DELAY_SECONDS, seconds=True)
WAIT = Number(0, limits.MAX_DELAY_SECONDS, seconds=True, forever=True)
LIMIT = Number(1, limits.MAX_LIST_LIMIT, whole=True)

wait_default_option = option(
    "--wait",
    "wait_seconds",
    type=WAIT,
    default=limits.DEFAULT_WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait; 0 looks once, `inf` blocks.",
)
wait_option = option(
    "--wait",
    "wait_seconds",
    type=WAIT,
    metavar="SECONDS",
    help="Wait for one; `inf` blocks. Without it, look once.",
)


def body_text(context: Context, body: str | None, body_file: str | None) -> str | None:
    """The body that the options give, None when they give none; error `usage`."""
    text = given_text(body, body_file, limits.MAX_BODY_BYTES)
    if text is None:
        return None
    warn_of_delimiter(text, shell_of(context).output)
    return limits.check_body(text)


def required_body(context: Context, body: str | None, body_file: str | None) -> str:
    """The body; error `usage` when there is none."""
    text = body_text(context, body, body_file)
    if text is None:
        raise usage("a body is needed", hint="give --body TEXT or --body-file PATH")
    return text


def payload_text(path: str | None) -> str | None:
    """The text of the payload file; error `usage`."""
    if path is None:
        return None
    content = read_input(path, limits.MAX_PAYLOAD_BYTES)
    try:
        return limits.check_payload(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise usage(f"{printable(path)} is not UTF-8: byte {error.start}") from error


# -- how things look -----------------------------------------------------------------------

THREAD_HEADINGS = ("THREAD", "STATE", "MAILBOX", "PRIO", "HOLDER", "SUBJECT", "AGE")


def thread_row(thread: Thread, now_ms: int) -> tuple[object, ...]:
    """A thread in a table."""
    return (
        thread.id,
        thread.state,
        thread.mailbox,
        thread.priority,
        thread.holder,
        thread.subject,
        When(thread.created_at, now_ms),
    )


def thread_table(threads: Sequence[Thread], empty: str, now_ms: int) -> Table:
    """Threads under headings."""
    rows = tuple(thread_row(thread, now_ms) for thread in threads)
    return Table(THREAD_HEADINGS, rows, empty, fixed=(0, 1, 6), sparse=(3, 4))


def thread_facts(thread: Thread, now_ms: int) -> Facts:
    """A thread by itself."""
    rows: list[tuple[str, object]] = [
        ("thread", thread.id),
        ("subject", thread.subject),
        ("state", thread.state),
        ("mailbox", thread.mailbox),
        ("sender", thread.sender),
        ("created", When(thread.created_at, now_ms)),
    ]
    rows += [
        (label, value)
        for label, value in (
            ("reason", thread.reason),
            ("holder", thread.holder),
            ("lease until", _until(thread.lease, now_ms)),
            ("lease expired", "yes" if thread.lease and thread.lease.expired else None),
            ("progress", None if thread.progress is None else f"{thread.progress} %"),
            ("deliveries", f"{thread.deliveries} of {thread.max_deliveries}"),
            ("finished", thread.finished_at and When(thread.finished_at, now_ms)),
            ("late", "yes" if thread.late else None),
            ("sealed", "yes" if thread.sealed else None),
        )
        if value is not None
    ]
    return Facts(tuple(rows))


def schema_rows(schema: str | None) -> tuple[tuple[str, object], ...]:
    """What the result has to satisfy, if anything."""
    return () if schema is None else (("result schema", schema),)


def _until(lease: Lease | None, now_ms: int) -> When | None:
    return None if lease is None else When(lease.expires_at, now_ms)


def message_block(message: Message, now_ms: int, *, full: bool = False) -> Body:
    """A message with its head line; a long body is cut unless `full`."""
    shape = message.as_json(full=full)
    parts: list[object] = [f"#{message.id}", message.kind, "from", message.sender]
    parts.append(When(message.created_at, now_ms))
    if message.progress is not None:
        parts.append(f"{message.progress} %")
    if message.options:
        parts.append("options: " + " | ".join(message.options))
    parts += [f"[{a.name}, {a.bytes} bytes]" for a in message.artifacts]
    body = "(pruned)" if message.body is None else str(shape["body"])
    if shape["body_truncated"]:
        body += f"\n… {message.body_bytes} bytes in all; --full shows them"
    return Body(tuple(parts), body)


def artifact_table(artifacts: Sequence[Artifact]) -> Table:
    """Artifacts under headings."""
    return Table(
        ("ARTIFACT", "BYTES", "SHA256"),
        tuple((a.name, a.bytes, "pruned" if a.pruned else a.sha256) for a in artifacts),
        "no artifacts",
    )


# Words for the end of a sentence, and the values after those that each result has.
More = tuple[str, tuple[object, ...]]
NO_MORE: More = ("", ())


def lease_words(written: Written) -> More:
    """Until when the lease lasts."""
    if written.lease is None:
        return NO_MORE
    until = str(rfc3339(written.lease.expires_at))
    return f"; the lease lasts until {until}", (until,)


def say(context: Context, written: Written, sentence: str, more: More = NO_MORE) -> None:
    """The result of a writing command; the sentence may use {thread}."""
    words, values = more
    thread = written.thread
    text = sentence.format(thread=thread.id, mailbox=thread.mailbox, state=thread.state)
    if written.already:
        text += " (already; nothing changed)"
    if written.late:
        text += " (late: the lease had expired, but no other agent had taken it)"
    message_id = None if written.message is None else written.message.id
    shell_of(context).output.result(
        written.as_json(), Sentence(text + words, (thread.id, thread.state, message_id, *values))
    )


def overview(shell: Shell, context: Context) -> None:
    """`inbox` by itself: what waits for this agent."""
    bus = open_bus(context, looks=True)
    seen = bus.overview()
    now_ms = bus.now_ms
    blocks: list[Block] = [
        Facts((("agent", seen.agent), *((f"unread in {m}", n) for m, n in seen.unread.items()))),
        Table(
            ("WAITING", "THREAD", "MAILBOX", "HOLDER", "SUBJECT", "AGE"),
            tuple(
                (what, thread.id, thread.mailbox, thread.holder, thread.subject, age)
                for what, threads in (("lease", seen.leases), ("question", seen.questions))
                for thread in threads
                for age in (When(thread.created_at, now_ms),)
            ),
            "you hold nothing, and no one is waiting for an answer from you",
            fixed=(0, 1, 5),
            sparse=(3,),
        ),
    ]
    shell.output.result(seen.as_json(), *blocks)


def refuse_read_only(bus: Bus) -> None:
    """Error `read_only` before a command that writes starts to do so."""
    if not bus.database.writable:
        raise InboxOrchError(
            "read_only",
            f"{bus.database.address} cannot be written",
            hint="--peek reads without moving the cursor",
            details={"path": bus.database.address},
        )
