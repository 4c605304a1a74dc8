"""Makes docs/exit-codes.md and docs/environment.md: the parts of the contract that are tables.

What a code or a variable means stands here; which codes there are, and their exit codes, comes
from the program. Tests hold that no code and no variable is left out.
"""

from pathlib import Path

from inbox_orch.shared.errors import EXIT_CODES, EXIT_MEANINGS, EXITS_WITH_DATA, InboxOrchError

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by script/reference. Change script/_contract_pages.py, not this page. -->\n"

ERRORS = {
    "internal": "a bug; `INBOX_DEBUG=1` shows where, please report it",
    "output_failed": "standard output is closed or full; the work was done wholly or not at all",
    "usage": "an option, an argument, a body or a file is not as it must be",
    "not_found": "no such thread, artifact, run, task, …; a sealed thread may count as missing",
    "already_claimed": "somebody else holds the thread; `details` says who and until when",
    "wrong_mailbox": "the thread is in a mailbox that was not named",
    "invalid_state": "the thread, task, attempt or run is in a state that does not allow it",
    "key_conflict": "the `--key` was used for another request",
    "unknown_recipient": "`send --strict`: nobody has ever read that mailbox",
    "cycle": "the dependency would close a circle",
    "dep_not_in_base": "the base lacks commits of a task that this one depends on",
    "base_conflict": "the accepted work of the dependencies conflicts; `details` has the paths",
    "busy": "other writers held the database for longer than `INBOX_BUSY_TIMEOUT`",
    "no_database": "there is none where the rules lead; `inbox init` makes one",
    "wrong_database": "another database than `--db-id` says, or another program's file",
    "schema_newer": "a newer release has changed the database; use that one",
    "read_only": "a file or folder cannot be read or written by this user",
    "disk_full": "no space left",
    "io_error": "the operating system could not read or write",
    "unsafe_filesystem": "SQLite's write-ahead log is not safe there; `init --force` overrides",
    "no_boot_id": "the system does not tell one boot from another (no /proc)",
    "corrupt": "the file is damaged, or is no database",
    "git_missing": "git is not installed, or too old",
    "git_failed": "a git command failed; `details` has its output",
    "lease_lost": "the token is not the thread's current one: stop working on it",
    "timeout": "the wait is over and nothing came; call again, nothing is missed in between",
    "nothing_available": "there is nothing to claim now",
    "dirty_repository": "there are uncommitted changes; `details` has the paths",
    "unmerged_work": "there is work that is in no other branch",
    "live_attempt": "an attempt is still running, or a process works in its worktree",
    "unsafe_removal": "what would be removed is not certainly the attempt's own, or could not be "
    "brought back; `details` has the reasons",
    "unsafe_link": "a symbolic link is where only a file or folder of the program's own may be",
    "foreign_owner": "the database was found by searching, and belongs to another user; "
    "`--db` overrides",
    "file_exists": "a file is there already and would be replaced",
    "opposed": "the recommendations speak against each other; `--force` makes one group of them",
    "cancelled": "the thread that you hold was cancelled: stop working on it",
    "run_unsuccessful": "the run has ended, and not every task succeeded",
    "needs_decision": "a question is open, and nothing goes on without its answer",
    "degraded": "some parts are there, some are missing; `data` says which",
    "checks_failed": "a check of what would be integrated failed; nothing was moved",
    "no_quorum": "too few reviewers replied for a tally",
    "work_rejected": "`adopt` has looked at the work, and it cannot be accepted; `data` says why",
    "problems_found": "`doctor` found problems; `data` lists them",
    "interrupted": "SIGINT (Ctrl-C)",
    "terminated": "SIGTERM",
}

VARIABLES = {
    "INBOX_DB": "the database file, where `--db` does not name one",
    "INBOX_DB_ID": "refuse any other database, as `--db-id` does; a `--db` given by hand "
    "overrides it",
    "INBOX_AGENT": "who is acting, where `--agent` does not say",
    "INBOX_THREAD": "the thread of a command that needs a lease; "
    "`claim`, `cancel` and `reply` ignore it",
    "INBOX_TOKEN": "the token of the lease, where `--token` does not give it",
    "INBOX_BUSY_TIMEOUT": "how many seconds a write waits for other writers, 0 to 3600; 10",
    "INBOX_DOORBELL": "`off`: waits poll instead of being woken, where FIFOs do not work",
    "INBOX_DEBUG": "not empty: a bug shows its traceback on stderr",
    "ORCH_RUN": "the run, where `--run` does not name one",
    "ORCH_COUNCIL": "the council, where `--council` does not name one",
    "XDG_STATE_HOME": "where `orch` puts worktrees; `~/.local/state`",
    "NO_COLOR": "not empty: no colour and no other escape sequence",
    "FORCE_COLOR": "not empty and not `0`: the output for a terminal, also into a pipe; "
    "never with `--json`",
    "COLUMNS": "the width of tables, where the terminal does not tell",
    "TERM": "`dumb`: as `NO_COLOR`",
}

FOR_COMMANDS = {
    "INBOX_DB": "the database, as an absolute path",
    "INBOX_DB_ID": "its id",
    "INBOX_AGENT": "the worker's name",
    "INBOX_THREAD": "the thread that is being worked on",
    "INBOX_TOKEN": "the token of its lease",
    "INBOX_WORKTREE": "the folder in which the command runs",
    "INBOX_TASK_FILE": "a file with the task's text, which is also on stdin",
    "INBOX_RESULT": "a file for the result: a JSON object becomes the payload, "
    "any other text the body",
}


FOR_CHECKS = {
    "INBOX_DB": "the database, as an absolute path",
    "INBOX_DB_ID": "its id",
    "ORCH_RUN": "the run's name",
    "ORCH_TASK": "the task's key",
    "ORCH_ATTEMPT": "which try at the task it is: 1, 2, …",
    "ORCH_ATTEMPT_ID": "the attempt's id",
    "ORCH_WORKTREE": "the folder in which the command runs",
    "ORCH_BRANCH": "the attempt's branch",
    "ORCH_BASE_COMMIT": "the commit that the attempt started from",
    "ORCH_HEAD_COMMIT": "the commit that is to be accepted",
}

EXIT_CODES_PAGE = """\
{made}
# Exit codes

One table for `inbox` and `orch`. With `--json`, standard output holds one value:

```json
{{"schema": "inbox/1", "ok": false, "error": {{"code": "lease_lost", "message": "…",
  "hint": "…", "retryable": false, "details": {{}}}}}}
```

{exits}
On {with_data}, `data` stands beside `error`: the cursor to go on from, or the whole result. A
script may decide by the exit code alone; `error.code` says it more exactly.

After 0 the change is on disk. After 2 to 10 the request had no effect. After 1, 130, 141 and 143
it was done wholly or not at all; the same call again, with the same `--key` or token, is safe. A
stream (`watch`, `work`, `export`) that has begun says on stderr what ended it.

A signal that arrives in the first milliseconds, while Python itself is starting, ends the process
in Python's own way; nothing has been done then.

## Errors

`retryable` is true where the same call may succeed later with nothing else changed.

{errors}"""

ENVIRONMENT_PAGE = """\
{made}
# Environment

An empty variable counts as unset. Options win over variables.

{variables}
`claim --export` prints the first five as lines for a shell:

```text
eval "$(inbox claim --agent w1 --mailbox workers --export)"
inbox update --progress 50
inbox done --body 'it works'
```

## What `inbox work` gives to its command

{for_commands}
## What `orch` gives to a check

Beside the leader's own environment, without git's variables and those of a lease, and beside what
the run's config gives. Standard input is empty.

{for_checks}"""


def pages() -> dict[Path, str]:
    """Both pages, by their path."""
    return {
        ROOT / "docs" / "exit-codes.md": exit_codes_page(),
        ROOT / "docs" / "environment.md": environment_page(),
    }


def exit_codes_page() -> str:
    """The exit codes, and which errors lead to each."""
    exits = [(str(code), text, _codes_of(code)) for code, text in EXIT_MEANINGS.items()]
    errors = [
        (f"`{code}`", str(number), _yes(InboxOrchError(code, "").retryable), ERRORS[code])
        for code, number in EXIT_CODES.items()
    ]
    return EXIT_CODES_PAGE.format(
        made=MADE,
        with_data=" and ".join(map(str, sorted(EXITS_WITH_DATA))),
        exits=_table(("exit", "meaning", "`error.code`"), exits),
        errors=_table(("`error.code`", "exit", "retryable", "meaning"), errors),
    )


def environment_page() -> str:
    """What the commands read from the environment, and what they give to others."""
    return ENVIRONMENT_PAGE.format(
        made=MADE,
        variables=_table(("variable", "meaning"), _named(VARIABLES)),
        for_commands=_table(("variable", "meaning"), _named(FOR_COMMANDS)),
        for_checks=_table(("variable", "meaning"), _named(FOR_CHECKS)),
    )


def _named(meanings: dict[str, str]) -> list[tuple[str, ...]]:
    return [(f"`{name}`", text) for name, text in meanings.items()]


def _yes(answer: bool) -> str:
    return "yes" if answer else ""


def _codes_of(exit_code: int) -> str:
    return ", ".join(f"`{code}`" for code, number in EXIT_CODES.items() if number == exit_code)


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
