"""`inbox where`."""

from inbox_orch.shared.shell.blocks import Facts
from inbox_orch.shared.shell.declaring import Context, shell_of, verb
from inbox_orch.shared.store.locate import locate
from inbox_orch.shared.store.sqlite.database import Database


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
        location.path,
        expected_id=shell.expected_id,
        busy_seconds=shell.busy_seconds,
        looks=True,
        perhaps_alone=True,
    ) as database:
        data = {
            "path": database.address,
            "rule": location.rule,
            "id": database.id,
            "schema_version": database.schema_version,
            "writable": database.writable,
        }
    shell.output.result(data, Facts(tuple(data.items())))
