"""`inbox doctor`."""

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Facts, Sentence, Table
from inbox_orch.shared.shell.declaring import Context, option, shell_of, verb

from ..services.examining import Examined, recovery_hint
from .base import open_bus


@verb(
    "doctor",
    examples=(
        "inbox doctor",
        "inbox doctor --verify --json",
        "inbox doctor --fix",
        "inbox doctor --with claude",
    ),
)
@option("--verify", is_flag=True, help="Fold the events and compare everything with them.")
@option("--fix", is_flag=True, help="Repair what needs no guessing; say the rest.")
@option(
    "--with",
    "adapters",
    multiple=True,
    metavar="NAME",
    help="Also look whether this coding agent can be run here; repeatable.",
)
def command(context: Context, verify: bool, fix: bool, adapters: tuple[str, ...]) -> None:
    """Check the database and what lies beside it, as of one commit. Writes only with --fix.

    Exit 0: clean, warnings allowed. Exit 11: problems found, all in the result. Exit 6,
    `corrupt`: the file itself is damaged; the hint says how to read out what can be read.
    """
    output = shell_of(context).output
    with recovery_hint(None):
        found = open_bus(context, looks=not fix).doctor(verify=verify, fix=fix)
    if adapters:
        from inbox_orch.shared.adapters.probing import probe

        found = found._replace(checks=(*found.checks, *probe(adapters)))
    if not found.problems:
        output.result(found.as_json(), *_blocks(found))
        return
    if not output.as_json:
        output.show(*_blocks(found))
    raise InboxOrchError(
        "problems_found",
        f"{found.problems} of {len(found.checks)} checks found a problem in {found.path}",
        hint=_hint(found),
        data=found.as_json(),
    )


def _hint(found: Examined) -> str:
    """What to do about the problems."""
    if any(check.fixable for check in found.checks):
        return "`inbox doctor --fix` repairs what needs no guessing"
    if all(c.name.startswith("agent ") for c in found.checks if c.status == "problem"):
        return "install the agent, or log in; its check says how"
    return "each check in the list says what it found; `inbox backup FILE` before you mend it"


def _blocks(found: Examined) -> list[Block]:
    blocks: list[Block] = [
        Facts((("database", found.path), ("id", found.id), ("event", found.newest_event))),
        Table(
            ("CHECK", "STATUS", "FINDING"),
            tuple((check.name, check.status, check.text) for check in found.checks),
            fixed=(0, 1),
            folded=(2,),
        ),
    ]
    for check in found.checks:
        blocks += [
            Sentence(f"{check.name}: {item}", (check.name, "item", item)) for item in check.items
        ]
    return blocks
