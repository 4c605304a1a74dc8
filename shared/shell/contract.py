"""What the parts of the contract mean: error codes, variables, the JSON envelope.

The one source of docs/exit-codes.md, docs/environment.md and docs/json.md (by script/reference)
and of `inbox help TOPIC`. Which codes there are, and their exit codes, is in `errors`; tests hold
that none is left out. Text only: nothing is decided here.
"""

ERRORS = {
    "internal": "a bug; `INBOX_DEBUG=1` shows where, please report it",
    "output_failed": "standard output is closed or full; the work was done wholly or not at all",
    "outcome_unknown": "the disk failed at the commit; the change was made wholly or not at all, "
    "and it cannot be known which",
    "usage": "an option, an argument, a body or a file is not as it must be",
    "not_found": "no such thread, artifact, run, task, …; a sealed thread may count as missing",
    "already_claimed": "another agent holds the thread; `details` says who and until when",
    "wrong_mailbox": "the thread is in a mailbox that was not named",
    "invalid_state": "the thread, task, attempt or run is in a state that does not allow it",
    "key_conflict": "the `--key` was used for another request",
    "unknown_recipient": "`send --strict`: that mailbox has never been read",
    "cycle": "the dependency would close a circle",
    "dep_not_in_base": "the base lacks commits of a task that this one depends on",
    "base_conflict": "the accepted work of the dependencies conflicts; `details` has the paths",
    "busy": "others held the database for longer than `INBOX_BUSY_TIMEOUT`, or cleared away what "
    "the call was about to name",
    "no_database": "there is none where the rules lead; `inbox init` makes one",
    "wrong_database": "another database than `--db-id` says, or another program's file",
    "schema_newer": "a newer release has changed the database; use that one",
    "read_only": "a file or folder cannot be read or written by this user",
    "disk_full": "no space left",
    "io_error": "the operating system could not read or write",
    "unsafe_filesystem": "SQLite's write-ahead log is not safe there; `init --force` overrides",
    "no_boot_id": "the system does not tell one boot from another (no /proc)",
    "extra_missing": "an optional part is not installed; the hint has the command that does it",
    "corrupt": "the file is damaged, or is no database",
    "git_missing": "git is not installed, or too old",
    "git_failed": "a git command failed; `details` has its output",
    "worker_failed": "a worker that was to be started does not stay up; the message says why",
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
    "needs_decision": "nothing goes on, since a question is open or work does not merge",
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
- `watch`, `work`, `export` and `orch drive` print JSON Lines instead, each with a `type`.
- New keys may be added. None is renamed or taken away without another `schema`.

`inbox schema COMMAND` and `orch schema COMMAND` print the JSON Schema of what a command prints.
"""

ABOUT_EXITS = """\
After 0 the change is on disk. After 2 to 10 the request had no effect. After 1, 130, 141 and 143
it was done wholly or not at all; the same call again, with the same `--key` or token, is safe."""

ABOUT_VARIABLES = "An empty variable counts as unset. Options win over variables."
