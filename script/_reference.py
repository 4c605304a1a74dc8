"""Makes the pages of docs/reference from the commands and the state tables, and with them the
pages of the contract, of the JSON, of blueprints, of policies and of what is handed in (see
_contract_pages.py, _json_pages.py, _blueprint_pages.py, _policy_pages.py and _patch_pages.py).

Run through `script/reference`; a test holds the pages against what this makes.
"""

import runpy
from pathlib import Path

import click

from inbox_orch.inbox.cli import program as inbox_program
from inbox_orch.inbox.domain.states import TRANSITIONS
from inbox_orch.orch.cli import program as orch_program
from inbox_orch.orch.patches.states import ENTRIES
from inbox_orch.orch.runs.states import TABLES
from inbox_orch.shared.shell.commandline import Shell
from inbox_orch.shared.shell.output import Output

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by script/reference. Change the commands or the tables, not this page. -->\n"


def pages() -> dict[Path, str]:
    """Every page, by its path."""
    folder = ROOT / "docs" / "reference"
    return {
        folder / "inbox.md": _commands_page("inbox", inbox_program),
        folder / "orch.md": _commands_page("orch", orch_program),
        folder / "states.md": _states_page(),
        **runpy.run_path(str(ROOT / "script" / "_contract_pages.py"))["pages"](),
        **runpy.run_path(str(ROOT / "script" / "_json_pages.py"))["pages"](),
        **runpy.run_path(str(ROOT / "script" / "_blueprint_pages.py"))["pages"](),
        **runpy.run_path(str(ROOT / "script" / "_patch_pages.py"))["pages"](),
        **runpy.run_path(str(ROOT / "script" / "_policy_pages.py"))["pages"](),
    }


def _commands_page(name: str, program: click.Group) -> str:
    parts = [MADE, f"# `{name}`: every command\n", _help_of(program, name)]
    for path, command in _leaves(program, (name,)):
        called = " ".join(path)
        parts += [f"## `{called}`\n", _help_of(command, called)]
    return "\n".join(parts)


def _leaves(
    group: click.Group, path: tuple[str, ...]
) -> list[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group, info_name=path[-1])
    found: list[tuple[tuple[str, ...], click.Command]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += _leaves(command, (*path, name))
        else:
            found.append(((*path, name), command))
    return found


def _help_of(command: click.Command, called: str) -> str:
    context = click.Context(command, info_name=called, terminal_width=80, max_content_width=80)
    context.obj = Shell(Output("reference/1", as_json=False))
    return f"```text\n{command.get_help(context)}\n```\n"


def _states_page() -> str:
    parts = [MADE, "# States\n", "A transition that is not in these tables is refused.\n"]
    parts.append("## Thread\n")
    rows = [(t.source, t.target, t.verb, t.when) for t in TRANSITIONS]
    parts.append(_table(("from", "to", "by", "when"), rows))
    for kind, table in TABLES.items():
        parts.append(f"## {kind.capitalize()}\n")
        parts.append(_table(("from", "to", "by"), [(t.source, t.target, t.by) for t in table]))
    parts.append("## Patch\n")
    parts.append(
        "What is said of a patch is written once, and its state follows from that. A patch begins"
        " as created; one whose\nattempt ends without it, and that is none of quarantined,"
        " apply_failed and rolled_back by then, is dropped.\n"
    )
    spoken = [
        (f"{kind} {outcome}", ", ".join(said.sources), said.target or "as it was", said.meaning)
        for (kind, outcome), said in ENTRIES.items()
    ]
    parts.append(_table(("said", "of one that is", "makes it", "which means"), spoken))
    return "\n".join(parts)


def _table(headings: tuple[str, ...], rows: list[tuple[str | None, ...]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(cell or "–" for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for page, text in pages().items():
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        print(page.relative_to(ROOT))
