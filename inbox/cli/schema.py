"""`inbox schema`."""

import json

import click

from inbox_orch.shared.errors import not_found
from inbox_orch.shared.ids import printable
from inbox_orch.shared.shell.commandline import Verb, shell_of
from inbox_orch.shared.shell.nearest import did_you_mean

from ..schemas import COMMANDS, AllSchemas, OneSchema, command_schema


@click.command("schema", cls=Verb, examples=("inbox schema claim", "inbox schema skill print"))
@click.argument("words", nargs=-1, metavar="[COMMAND]")
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> None:
    """Print the JSON Schema of what a command prints with --json; of all without COMMAND.

    `inbox` stands for the program without a command, `help` for any command's --help. Of a
    stream it is the schema of a line. Needs no database.
    """
    output = shell_of(context).output
    name = " ".join(words)
    if not words:
        found = [command_schema(each) for each in COMMANDS]
        data = AllSchemas(items=found, truncated=False, next_cursor=None).model_dump()
        text = {each.id: each.json_schema for each in found}
    elif name in COMMANDS:
        one = command_schema(name)
        data, text = OneSchema(command=one).model_dump(), one.json_schema
    else:
        hint = did_you_mean(name, COMMANDS, "`inbox schema` prints those of all commands")
        raise not_found("command", printable(name), hint=hint)
    if output.as_json:
        output.result(data)
    else:
        output.text(json.dumps(text, indent=2) + "\n")
