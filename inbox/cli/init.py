"""`inbox init`."""

from inbox_orch.shared import creating, database
from inbox_orch.shared.blocks import Sentence
from inbox_orch.shared.declaring import PATH, Context, argument, option, shell_of, verb
from inbox_orch.shared.errors import usage
from inbox_orch.shared.folders import refuse_links
from inbox_orch.shared.layout import database_in
from inbox_orch.shared.locate import absolute, project_root, working_folder


@verb("init", examples=("inbox init", "inbox init ~/project"))
@argument("folder", type=PATH, required=False, metavar="[DIR]")
@option("--force", is_flag=True, help="Also on a file system where WAL is not safe.")
def command(context: Context, folder: str | None, force: bool) -> None:
    """Make the database of a project, in DIR/.inbox or at --db. Doing it again changes nothing.

    Without DIR: at the top of the repository that this folder belongs to (its main working
    tree), else in this folder.
    """
    shell = shell_of(context)
    if folder is not None and shell.database_named:
        raise usage("give either DIR or --db, not both")
    if folder is not None:
        path = database_in(absolute(folder))
    elif shell.database is not None:
        path = absolute(shell.database)
    else:
        path = database_in(project_root(working_folder()))
    if shell.database is None:
        refuse_links(path)  # one that is named may be a link: that is its user's own word
    created = creating.create(path, forced=force)
    with database.Database.open(
        path, expected_id=shell.expected_id, busy_seconds=shell.busy_seconds
    ) as opened:
        where = opened.layout.database
        data = {"path": where, "id": opened.id, "created": created}
    verb = "Made" if created else "There already:"
    shell.output.result(data, Sentence(f"{verb} {where}", (where, data["id"])))
