"""A word that is no command leads to the one that is meant; the help has each command once."""

import click
import pytest

from inbox_orch.inbox.cli import COMMANDS as OF_INBOX
from inbox_orch.orch.cli import COMMANDS, program
from inbox_orch.orch.cli.words import GROUPS, MEANT
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.commandline import Program, Shell, Words
from inbox_orch.shared.shell.meant import hint_at
from inbox_orch.shared.shell.output import Output


def is_called(call: str) -> bool:
    """Whether there is such a call: a command, or an option of the program."""
    first, *rest = call.split()
    if first == "inbox":
        return rest[0] in OF_INBOX
    command: click.Command | None = program
    for word in call.split():
        if word.startswith("--"):
            return any(word in parameter.opts for parameter in program.params)
        assert isinstance(command, Program)
        command = command.get_command(click.Context(command), word)
    return command is not None


@pytest.mark.parametrize("word", MEANT)
def test_what_a_wrong_word_means_is_there(word: str):
    if word in COMMANDS:
        pytest.skip("it is a command by now")
    assert [call for call in MEANT[word] if not is_called(call)] == []


@pytest.mark.parametrize(
    "word, hint",
    [
        ("list", "did you mean `orch task list` or `orch status`?"),
        ("LS", "did you mean `orch task list` or `orch status`?"),
        ("start", "did you mean `orch drive` or `orch do`?"),
        ("merge", "did you mean `orch integrate`?"),
        ("claim", "did you mean `inbox claim`?"),
        ("dispach", "did you mean `orch dispatch`?"),
        ("xyzzy", "`orch --help` lists the commands"),
    ],
)
def test_a_wrong_word_leads_to_the_command_that_is_meant(word: str, hint: str):
    assert hint_at(word, "orch", COMMANDS, MEANT) == hint

    context = click.Context(program, info_name="orch", obj=Shell(Output("orch/1", as_json=False)))
    with pytest.raises(InboxOrchError) as raised:
        program.resolve_command(context, [word])
    assert (raised.value.code, raised.value.hint) == ("usage", hint)


def test_the_help_has_each_command_once_and_begins_with_where_to_start():
    sections = Words(GROUPS).sections(COMMANDS)

    listed = [name for names in sections.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    assert next(iter(sections)) == "Start here"
    assert Words(GROUPS).sections([*COMMANDS, "novelty"])["Others"] == ["novelty"]
    assert Words().sections(["a"]) == {"Commands": ["a"]}
