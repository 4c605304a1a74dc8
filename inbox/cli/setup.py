"""`inbox setup`: a coding agent made ready for `inbox`, in one step."""

from importlib.util import find_spec

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.declaring import Choice, Context, argument, option, shell_of, verb

from ..setup import run
from ..setup.facts import PROJECT, USER, agents
from ..setup.run import Result

_WORDS = {
    "in_place": "in place",
    "missing": "missing",
    "older": "older",
    "changed": "changed by hand",
}


@verb(
    "setup",
    examples=(
        "inbox setup claude",
        "inbox setup codex --user",
        "inbox setup claude --check",
        "inbox setup claude --undo",
    ),
)
@option("--project", is_flag=True, help="In this repository, for all who work in it (default).")
@option("--user", is_flag=True, help="In your home folder, for all your projects.")
@option("--undo", is_flag=True, help="Take back what was set up; what others wrote stays.")
@option("--check", "checking", is_flag=True, help="Say how it stands, and change nothing.")
@argument("agent", type=Choice(tuple(agents())), metavar="AGENT")
def command(
    context: Context, agent: str, project: bool, user: bool, undo: bool, checking: bool
) -> None:
    """Give a coding agent the skill, the hooks, the lines in its instructions and the tool server
    of `inbox`, in the files that its documentation names.

    Files of others only get text added, which --undo takes out again, to the byte. A file that the
    agent could not read, a link to nowhere, or a piece that somebody has changed: nothing is
    written anywhere. Exit 11: --check has found something that is not in place. Needs no database.

    AGENT: claude, codex, cursor, opencode, gemini, agy, copilot, qwen.
    """
    if project and user:
        raise usage("give either --project or --user")
    if undo and checking:
        raise usage("give either --undo or --check")
    act = run.undo if undo else run.check if checking else run.install
    result = act(agents()[agent], run.place_of(USER if user else PROJECT))
    output = shell_of(context).output
    if not checking or result.complete:
        output.result(result.as_json(), *_blocks(result, undone=undo))
        return
    if not output.as_json:
        output.show(*_blocks(result, undone=False))
    command = f"`inbox setup {agent}{' --user' if user else ''}`"
    changed = any(item.state == "changed" for item in result.items)
    missing = sum(item.state != "in_place" for item in result.items)
    raise InboxOrchError(
        "degraded",
        f"{missing} of {len(result.items)} parts of the set-up of {result.agent.title} "
        "are not in place",
        hint=f"take what was changed out of its file by hand, then {command}"
        if changed
        else f"{command} puts them there",
        data=result.as_json(),
    )


def _blocks(result: Result, *, undone: bool) -> list[Block]:
    rows = tuple((item.path, item.part, _WORDS[item.state]) for item in result.items)
    blocks: list[Block] = [Table(("FILE", "PART", "STATE"), rows, fixed=(1, 2), named=(0,))]
    notes = list(result.notes)
    if not undone and find_spec("mcp") is None and any(item.part == "mcp" for item in result.items):
        from inbox_orch.shared.shell.extras import install_line

        notes.append(f"`inbox mcp` is not installed yet: {install_line('mcp')}")
    blocks += [Sentence(f"note: {each}", ("note", each)) for each in notes]
    left_out = () if undone else result.agent.left_out
    return blocks + [Sentence(f"left out: {each}", ("left out", each)) for each in left_out]
