"""What the parts of the contract mean: variables, the JSON envelope, what exits have in common.

With the error codes, which each part of the program names itself (see `errors`), the source of
docs/exit-codes.md, docs/environment.md and docs/json.md (by script/reference) and of
`inbox help TOPIC`. Text only: nothing is decided here.
"""

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
    "OTEL_EXPORTER_OTLP_ENDPOINT": "where `orch drive`, `orch do` and `orch trace` export "
    "the trace of a run, if the optional part `otel` is installed",
    "XDG_STATE_HOME": "where `orch` puts worktrees, and `inbox setup` its records; "
    "`~/.local/state`",
    "NO_COLOR": "not empty: no colour and no other escape sequence; `orch board` has no colours",
    "FORCE_COLOR": "not empty and not `0`: the output for a terminal, also into a pipe; "
    "never with `--json`",
    "COLUMNS": "the width of tables, where the terminal does not tell",
    "TERM": "`dumb`: no colour and no other escape sequence; no `orch board`",
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
    "INBOX_SESSION": "only where there is one: the session to go on with, the `session_id` in the "
    "result of the visit whose work this one continues",
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

JSON = """\
With `--json`, on success and on failure, standard output holds exactly one JSON value:

    {"schema":"inbox/1","ok":true,"data":{...}}
    {"schema":"inbox/1","ok":false,"error":{"code":"lease_lost","message":"...",
      "hint":"...","retryable":false,"details":{}}}

`--json` may stand anywhere before `--`. `orch` says `orch/1`.

- On exits 8 and 11, `data` stands beside `error`: the cursor to go on from, or the whole result.
- A single thing has its name: `data.thread`, `data.message`, `data.lease`, `data.run`, `data.task`.
  Lists are `data.items`, with `data.truncated` and `data.next_cursor`.
- A thing has the same shape wherever it appears, and its id under `id`. Ids are strings, counts
  integers, times RFC 3339 in UTC with milliseconds; a duration names its unit (`lease_seconds`).
- A long body is cut, with `body_bytes` and `body_truncated`; `--full` shows all of it.
- Where no run or council is named and none is open, a command of `orch` that changes nothing takes
  the one that was closed last: `data.last_run` is then its name, and otherwise not there.
- `watch`, `work`, `export` and `orch drive` print JSON Lines instead, each with a `type`.
- New keys may be added. None is renamed or taken away without another `schema`.

`inbox schema COMMAND` and `orch schema COMMAND` print the JSON Schema of what a command prints.
"""

ABOUT_EXITS = """\
After 0 the change is on disk. After 2 to 10 the request had no effect. After 1, 130, 141 and 143
it was done wholly or not at all; the same call again, with the same `--key` or token, is safe."""

ABOUT_VARIABLES = """\
Options win over variables. An empty variable counts as unset, but for those that name something
(INBOX_DB, INBOX_DB_ID, INBOX_AGENT, INBOX_THREAD, INBOX_TOKEN, ORCH_RUN, ORCH_COUNCIL): a command
that would use one of these refuses it while it is empty (exit 2), as it refuses an empty option."""
