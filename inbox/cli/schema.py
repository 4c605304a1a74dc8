"""`inbox schema`."""

import json

import click

from inbox_orch.shared.commandline import Verb, shell_of
from inbox_orch.shared.errors import not_found

from ..schemas import COMMANDS, AllSchemas, OneSchema, command_schema


@click.command("schema", cls=Verb, examples=("inbox schema claim", "inbox schema --json"))
@click.argument("name", required=False, metavar="[COMMAND]")
@click.pass_context
def command(context: click.Context, name: str | None) -> None:
    """Print the JSON Schema of what a command prints with --json; of all without COMMAND.

    `inbox` stands for the program without a command, `help` for any command's --help. Of a
    stream it is the schema of a line. Needs no database.
    """
    output = shell_of(context).output
    if name is None:
        found = [command_schema(each) for each in COMMANDS]
        data = AllSchemas(items=found, truncated=False, next_cursor=None).model_dump()
        text = {each.id: each.json_schema for each in found}
    elif name in COMMANDS:
        one = command_schema(name)
        data, text = OneSchema(command=one).model_dump(), one.json_schema
    else:
        raise not_found("command", name, hint="`inbox schema` prints those of all commands")
    if output.as_json:
        output.result(data)
    else:
        output.text(json.dumps(text, indent=2) + "\n")
