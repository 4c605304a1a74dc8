"""Makes docs/exit-codes.md, docs/environment.md and docs/json.md: the contract as pages.

What a variable means stands in shared/shell/contract.py, what a code means in the vocabulary of
the part that names it; `inbox help` takes it from there, too.
Tests hold that no code and no variable is left out.
"""

from pathlib import Path

from inbox_orch.shared.errors import EXIT_CODES, EXIT_MEANINGS, EXITS_WITH_DATA, error_codes
from inbox_orch.shared.shell.contract import (
    ABOUT_EXITS,
    ABOUT_VARIABLES,
    FOR_CHECKS,
    FOR_COMMANDS,
    JSON,
    VARIABLES,
)

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by script/reference. Change shared/shell/contract.py, not this page. -->\n"

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

{about}
What takes several steps (`work`, `prune`, `dispatch`, `wait`, `drive`, `cleanup`, `purge`) keeps
those that it had done by then, however it ends.

A stream (`watch`, `work`, `export`) that has begun says on stderr what ended it.

A signal that arrives in the first milliseconds, while Python itself is starting, ends the process
in Python's own way; nothing has been done then.

## Errors

`retryable` is true where the same call may succeed later with nothing else changed.

{errors}"""

ENVIRONMENT_PAGE = """\
{made}
# Environment

{about}

{variables}
`claim --export` prints the first five as lines for a shell:

```text
lease=$(inbox claim --agent w1 --mailbox workers --export)
eval "$lease"
inbox update --progress 50
inbox done --body 'it works'
unset INBOX_THREAD INBOX_TOKEN
```

## What `inbox work` gives to its command

{for_commands}
## What `orch` gives to a check

Beside the leader's own environment, without git's variables and those of a lease, and beside what
the run's config gives. Standard input is empty. A set-up gets all but
`ORCH_HEAD_COMMIT`. A check of `integrate` has no task and no attempt; its branch and its commits
are those of the integration.

{for_checks}"""


def pages() -> dict[Path, str]:
    """The pages, by their path."""
    return {
        ROOT / "docs" / "exit-codes.md": exit_codes_page(),
        ROOT / "docs" / "environment.md": environment_page(),
        ROOT / "docs" / "json.md": f"{MADE}\n# JSON\n\n{JSON}",
    }


def exit_codes_page() -> str:
    """The exit codes, and which errors lead to each."""
    exits = [(str(code), text, _codes_of(code)) for code, text in EXIT_MEANINGS.items()]
    listed = [
        (f"`{code}`", str(each.exit_code), _yes(each.retryable), each.meaning)
        for code, each in error_codes().items()
    ]
    return EXIT_CODES_PAGE.format(
        made=MADE,
        about=ABOUT_EXITS,
        with_data=" and ".join(map(str, sorted(EXITS_WITH_DATA))),
        exits=_table(("exit", "meaning", "`error.code`"), exits),
        errors=_table(("`error.code`", "exit", "retryable", "meaning"), listed),
    )


def environment_page() -> str:
    """What the commands read from the environment, and what they give to others."""
    return ENVIRONMENT_PAGE.format(
        made=MADE,
        about=ABOUT_VARIABLES,
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
