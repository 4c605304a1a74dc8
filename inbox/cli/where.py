"""`inbox where`."""

from inbox_orch.migrations import SCHEMA_VERSION
from inbox_orch.shared.blocks import Facts
from inbox_orch.shared.database import Database
from inbox_orch.shared.declaring import Context, shell_of, verb
from inbox_orch.shared.locate import locate


@verb("where", examples=("inbox where", "inbox where --json"))
def command(context: Context) -> None:
    """Print which database is used, the rule that found it, its id and its schema version.

    Rules: `option` (--db), `environment` (INBOX_DB), `folder` (walking up), `worktree`,
    `submodule`, `bare_repository`.
    """
    shell = shell_of(context)
    environment = None if shell.database_named else shell.database
    option = shell.database if shell.database_named else None
    location = locate(option, environment)
    with Database.open(
        location.path, expected_id=shell.expected_id, busy_seconds=shell.busy_seconds
    ) as database:
        data = {
            "path": database.layout.database,
            "rule": location.rule,
            "id": database.id,
            "schema_version": SCHEMA_VERSION,
            "writable": database.writable,
        }
    shell.output.result(data, Facts(tuple(data.items())))
