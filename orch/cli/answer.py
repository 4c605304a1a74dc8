"""`orch answer`."""

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, TEXT, Verb, shell_of

from .parts.base import chosen_run, key_option, lead_on, open_scheduler, read_body, run_option


@click.command("answer", cls=Verb, agent=True, examples=("orch answer lexer --body 'the new one'",))
@run_option
@click.argument("task")
@click.option(
    "--body-file", type=PATH, metavar="PATH|-", help="Read the answer from a file or stdin."
)
@click.option("--body", type=TEXT, metavar="TEXT", help="The answer itself.")
@key_option
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    task: str,
    body_file: str | None,
    body: str | None,
    key: str | None,
) -> None:
    """Answer the open question of a task's worker; any text will do."""
    text = read_body(body, body_file)
    if text is None:
        raise usage("a body is needed", hint="give --body TEXT or --body-file PATH")
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    data = scheduler.answer(run, task, body=text, key=key)
    shell_of(context).output.result(
        data, Sentence(f"Answered {data['key']}", (data["key"], data["thread"]["id"]))
    )
    lead_on(context, scheduler, run)
