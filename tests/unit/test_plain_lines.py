"""What is read of a plain command line without click is what click reads of it; the rest is not
read at all."""

import importlib
import os
from typing import Any, NamedTuple

import click
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from inbox_orch.inbox.cli import COMMANDS, HOOKS, program
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.declaring import Declared, common
from inbox_orch.shared.shell.output import Output
from inbox_orch.shared.shell.plain_lines import read
from inbox_orch.shared.shell.shell import Shell
from inbox_orch.shared.shell.values import Choice
from support.commands import ULID
from support.lengths import LONG


def declared() -> dict[str, Declared]:
    named = [(name, module) for name, (module, _) in COMMANDS.items()]
    named += [(f"hook {name}", module) for name, (module, _) in HOOKS.items()]
    found = {name: importlib.import_module(module).command for name, module in named}
    return {name: command for name, command in found.items() if isinstance(command, Declared)}


DECLARED = declared()
MOST_CALLED = ("claim", "fetch", "renew", "update", "done", "reply", "send", "prime")
# With a type of click's: click alone can read it.
CLICKS_OWN = {"work"}
VARIABLES = ("INBOX_THREAD", "INBOX_TOKEN", "INBOX_DB", "INBOX_DB_ID", "INBOX_AGENT")


class Read(NamedTuple):
    """What the function of a command is called with, and what its shell says."""

    values: dict[str, Any]
    shell: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        # 1 and 1.0 and True are not the same here.
        return isinstance(other, Read) and sorted_text(self) == sorted_text(other)

    __hash__ = None


def sorted_text(found: Read) -> str:
    return repr([sorted(part.items()) for part in found])


def said(shell: Shell) -> dict[str, Any]:
    return {key: value for key, value in vars(shell).items() if key != "output"}


def by_us(command: Declared, words: list[str]) -> Read | None:
    line = read(command, words)
    if line is None:
        return None
    shell = Shell(Output("inbox/1", as_json=False))
    for field, value in line[1].items():
        shell.keep(field, value, field)
    return Read(line[0], said(shell))


def by_click(command: Declared, words: list[str]) -> Read | None:
    """None for what click refuses, and where it answers itself."""
    seen: dict[str, Any] = {}
    copy = Declared(
        command.name,
        lambda context, **values: seen.update(values),
        command.parameters,
        agent=command.agent,
        help=((), ""),
        lenient=None,
    ).for_click()
    shell = Shell(Output("inbox/1", as_json=False))
    above = click.Context(program, info_name="inbox", obj=shell)
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Help is printed to the process's own output.
            patch.setattr(Output, "text", lambda self, text: None)
            patch.setattr(Output, "result", lambda self, data, *blocks: None)
            with copy.make_context(command.name, list(words), parent=above) as context:
                copy.invoke(context)
    except (InboxOrchError, click.ClickException, click.exceptions.Exit):
        return None
    return Read(seen, said(shell))


def agree(name: str, words: list[str]) -> Read | None:
    """What we read, which is what click reads, if we read it."""
    ours = by_us(DECLARED[name], words)
    if ours is not None:
        assert ours == by_click(DECLARED[name], words)
    return ours


PLAIN = [
    ("claim", ""),
    ("claim", "--agent w1 --mailbox workers --wait 90 --json"),
    ("claim", f"{ULID} --agent=w1 --export"),
    ("claim", f"--lease 60.5 {ULID} --wait inf"),
    ("claim", "--mailbox a --mailbox b --lease 600"),
    ("claim", "--json --json --export --export"),
    ("claim", "--mailbox --json"),
    ("claim", "--mailbox --"),
    ("claim", "--mailbox=--x=y"),
    ("claim", "--db some/where --db-id X"),
    ("fetch", "--limit 5 --peek --wait 0"),
    ("renew", f"{ULID} --token t --lease 60"),
    ("update", f"{ULID} --token t --progress 40 --body grün --attach a --attach b --key k"),
    ("update", "--body= --progress 100"),
    ("done", f"--token t {ULID} --body-file - --payload-file p"),
    ("reply", f"{ULID} --body -x --agent leader"),
    ("send", "--to w --subject s --body b --priority -5 --delay 0.5 --max-deliveries 3 --sealed"),
    ("send", "--subject= --to w --strict"),
    ("prime", "--agent w1 --json"),
    ("list", "--state pending --state done --mailbox workers --limit 20 --json"),
    ("hook stop", "--agent w1 --mailbox workers"),
    ("hook session-start", ""),
    ("hook post-tool", "--json"),
]
NOT_PLAIN = [
    ("claim", "--help"),
    ("claim", "-h"),
    ("claim", "--lea 60"),
    ("claim", "--lease"),
    ("claim", "--lease 0"),
    ("claim", "--lease 1e3"),
    ("claim", "--lease="),
    ("claim", "--json=true"),
    ("claim", "--unknown"),
    ("claim", "--agent="),
    ("claim", "--db="),
    ("claim", "--mailbox="),
    ("send", "--subject s --to="),
    ("claim", "--lease 600 --lease 600"),
    ("claim", "--lease wrong --lease 600"),
    ("claim", "--agent w1 --agent w1"),
    ("claim", "--db some/where --db other"),
    ("send", "--to a --to b --subject s"),
    ("send", "--to a --to=a --subject s"),
    ("claim", "-m workers"),
    ("claim", "-"),
    ("claim", "--"),
    ("claim", f"-- {ULID}"),
    ("claim", f"{ULID} {ULID}"),
    ("claim", "---json"),
    ("fetch", "--limit 1.5"),
    ("fetch", "--limit 100000000"),
    ("update", "--progress 101"),
    ("update", "--progress ٣"),
    ("reply", "--body b"),
    ("send", "--to w"),
    ("send", "--to w --subject s --priority 1.0"),
    ("where", "--agent w1"),
    ("list", "--state Pending"),
    ("list", "--state"),
    ("hook stop", "extra"),
    ("hook stop", "--wait 5"),
]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name, line", PLAIN)
def test_plain_lines_are_read_as_click_reads_them(name: str, line: str):
    assert agree(name, line.split()) is not None


@pytest.mark.parametrize("name, line", NOT_PLAIN)
def test_any_other_line_is_left_to_click(name: str, line: str):
    assert agree(name, line.split()) is None


@pytest.mark.parametrize("word", ["\udcff", "a\udc80b", "", " ", "\n", "🙂", "a=b", "x" * 100_000])
@pytest.mark.parametrize(
    "option", ["--body", "--body-file", "--attach", "--key", "--agent", "--db"]
)
def test_whatever_bytes_a_word_has_both_read_it_alike(option: str, word: str):
    agree("update", [ULID, "--token", "t", option, word])
    agree("update", [ULID, "--token", "t", f"{option}={word}"])
    agree("update", [word, "--token", "t"])


@pytest.mark.parametrize("value", ["", "of the environment", "\udcff", "--json", "-"])
@pytest.mark.parametrize("name", VARIABLES)
def test_both_read_the_environment_alike(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(name, value)

    for words in ([], [ULID], ["--token", "t"], [ULID, "--token=", "--agent", "w1"]):
        agree("renew", words)
        agree("done", words)
        agree("reply", [*words, "--body", "b"])


def test_every_command_that_is_called_often_is_declared():
    assert {*MOST_CALLED, *(f"hook {name}" for name in HOOKS)} <= DECLARED.keys()
    unread = {name for name in DECLARED if read(DECLARED[name], needed(name)) is None}
    assert unread == CLICKS_OWN


def needed(name: str) -> list[str]:
    """Words without which click refuses the command."""
    words: list[str] = []
    for each in DECLARED[name].parameters:
        if each.keywords.get("required", each.kind == "argument"):
            kind = each.keywords.get("type")
            value = kind.words[0] if isinstance(kind, Choice) else "1"
            words += [each.names[0], value] if each.kind == "option" else [value]
    return words


# -- random lines --------------------------------------------------------------------------

NUMBERS = "-1 0 1 5 60 600.25 1.5 inf nan 1e3 +7 0x10 1_0 101 999999999999999 9999999999999999"
WORDS = ["", " 5 ", "-", "--", "--json", "a", "w1", ULID, "grün", "\udcff", "a=b", "'"]
VALUES = st.sampled_from([*NUMBERS.split(), *WORDS]) | st.text(max_size=5)


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A command with words, most of them its own options."""
    name = draw(st.sampled_from(sorted(DECLARED)))
    command = DECLARED[name]
    each = [*command.parameters, *common(agent=command.agent).values()]
    options = [n for p in each for n in p.names if n.startswith("--")] or ["--json"]
    option = st.sampled_from(options)
    word = st.one_of(
        st.tuples(option, VALUES),
        st.tuples(st.builds("{}={}".format, option, VALUES)),
        st.tuples(option),
        st.tuples(VALUES),
        st.tuples(st.builds(lambda name, length: name[:length], option, st.integers(1, 9))),
        st.sampled_from([("--help",), ("-h",), ("--",), ("-x5",), ("--version",)]),
    )
    drawn = draw(st.lists(word, max_size=6))
    start = needed(name) if draw(st.booleans()) else []
    return name, [*start, *(part for words in drawn for part in words)]


@settings(
    max_examples=5000 if LONG else 500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines(), st.dictionaries(st.sampled_from(VARIABLES), VALUES, max_size=2))
@example(("renew", [ULID]), {"INBOX_TOKEN": ""})
def test_random_lines_are_read_as_click_reads_them(
    line: tuple[str, list[str]], environment: dict[str, str]
):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            if "\0" not in value and value == os.fsdecode(value.encode("utf-8", "surrogateescape")):
                patch.setenv(name, value)
        agree(*line)
