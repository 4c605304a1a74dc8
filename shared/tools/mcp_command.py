"""`inbox mcp` and `orch mcp`: the command that serves a program's tools, or lists them.

Loads the protocol only to serve; what the tools are, it knows without.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import click

from ..errors import usage
from ..shell.blocks import Table
from ..shell.commandline import Shell, Verb, shell_of
from .cutting import rest_tool
from .tool_calls import Place
from .tools import Described, Tool, described
from .wording import Wording, worded, wording_of


def mcp_command(
    name: str,
    *,
    tools: Sequence[Tool],
    about_arguments: Mapping[str, str],
    gives: Callable[[str, int], dict[str, Any]],
    instructions: Callable[[click.Context], str],
    text: str,
) -> click.Command:
    """`mcp` of the program `name`. `gives` is the JSON Schema of a command's nth result,
    `instructions` what the client is told of the whole."""

    @click.command(
        "mcp",
        cls=Verb,
        agent=True,
        examples=(f"{name} mcp --agent w1", f"{name} mcp --tools"),
        help=text,
    )
    @click.option("--tools", "listing", is_flag=True, help="List the tools, and serve nothing.")
    @click.pass_context
    def command(context: click.Context, listing: bool) -> None:
        program = context.find_root().command
        assert isinstance(program, click.Group)
        found = tuple(described(program, tool, about_arguments, gives) for tool in tools)
        wording = wording_of(name, found)
        found = worded(found, wording)
        shell = shell_of(context)
        if listing:
            _list(shell, (*found, rest_tool(name)))
        else:
            place = Place(program, _options(shell))
            _serve(shell, place, instructions(context), found, wording)

    return command


def _list(shell: Shell, found: Sequence[Described]) -> None:
    items = [
        {
            "name": about.name,
            "command": about.tool.command,
            "description": about.description,
            "input_schema": about.takes,
            "reads": about.tool.reads,
        }
        for about in found
    ]
    rows = tuple((about.name, about.description.split(". ")[0].rstrip(".")) for about in found)
    data = {"items": items, "truncated": False, "next_cursor": None}
    shell.output.result(data, Table(("TOOL", "DOES"), rows, "no tools", fixed=(0,)))


def _serve(
    shell: Shell,
    place: Place,
    instructions: str,
    found: tuple[Described, ...],
    wording: Wording,
) -> None:
    if shell.json:
        raise usage("--json goes with --tools", hint="a server speaks its own protocol")
    if find_spec("mcp") is None:
        from ..shell.extras import missing

        raise missing("mcp", "serving tools")
    if sys.stdin is None:
        raise usage("standard input is closed", hint="the client's messages come from there")
    if sys.stdin.isatty():
        shell.output.notice("serving a client on standard input; --tools lists the tools")
    from .serving import Offer, serve

    rest = rest_tool(place.name)
    serve(Offer(place, version("inbox-orch"), instructions, found, wording, rest))


def _options(shell: Shell) -> tuple[str, ...]:
    """What was said to the server holds for every call."""
    said = (
        ("--db", shell.database if shell.database_named else None),
        ("--db-id", shell.database_id),
        ("--agent", shell.agent),
    )
    return tuple(f"{option}={value}" for option, value in said if value is not None)
