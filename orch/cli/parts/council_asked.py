"""What the commands that open a council are given: the options, and what they come to."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.commandline import TEXT, Number, shell_of
from inbox_orch.shared.shell.inputs import decode_body, read_input, warn_of_delimiter

from ...council import stored
from ...council.ask import CouncilSpec
from ...runs import limits
from .base import Command

SECONDS = Number(1, limits.MAX_CLOCK_SECONDS, seconds=True)
DEADLINE = Number(1, limits.MAX_CLOCK_SECONDS, seconds=True, forever=True)

_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--lens", "lenses"),
        {
            "multiple": True,
            "metavar": "REVIEWER=FILE",
            "help": "What this reviewer is to look at in particular; repeatable.",
        },
    ),
    (
        ("--decision", "decisions"),
        {
            "multiple": True,
            "metavar": "ID=QUESTION:A|B",
            "help": "A decision with its choices, counted exactly; repeatable.",
        },
    ),
    (
        ("--deadline",),
        {
            "type": DEADLINE,
            "default": stored.DEFAULT_DEADLINE_SECONDS,
            "show_default": True,
            "metavar": "SECONDS",
            "help": "The round ends then, even if replies are missing; `inf`: never by itself.",
        },
    ),
    (
        ("--seat-timeout",),
        {
            "type": SECONDS,
            "metavar": "SECONDS",
            "help": "How long a reviewer may take once it has claimed; `inbox work` obeys it.",
        },
    ),
    (
        ("--quorum",),
        {
            "type": Number(1, stored.MOST_SEATS, whole=True),
            "metavar": "N",
            "help": "Fewer valid replies are no result.  [default: 2]",
        },
    ),
    (
        ("--at",),
        {"metavar": "REF", "help": "Give each reviewer a worktree of this commit."},
    ),
)


def council_options(reviewers: str) -> Callable[[Command], Command]:
    """The options that say what a council is asked, besides the brief; `reviewers` is the help of
    `--reviewers`."""
    head: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
        (
            ("--title",),
            {
                "type": TEXT,
                "metavar": "TEXT",
                "help": "One line; default: the brief's first heading.",
            },
        ),
        (("--reviewers",), {"metavar": "A,B,C", "help": reviewers}),
    )

    def decorate(command: Command) -> Command:
        for names, settings in reversed((*head, *_OPTIONS)):
            command = click.option(*names, **settings)(command)
        return command

    return decorate


def names_of(reviewers: str | None) -> tuple[str, ...]:
    """What `--reviewers` names."""
    return () if reviewers is None else tuple(name.strip() for name in reviewers.split(","))


def spec_of(brief_file: str, reviewers: Sequence[str], options: dict[str, Any]) -> CouncilSpec:
    """The council that the options of `council_options` ask for; `reviewers` in their place."""
    return spec_on(_text(brief_file, stored.MAX_BRIEF_BYTES), reviewers, options)


def spec_on(brief: str, reviewers: Sequence[str], options: dict[str, Any]) -> CouncilSpec:
    """The same with the text of the brief."""
    deadline, at = options["deadline"], options["at"]
    return CouncilSpec(
        brief=brief,
        title=options["title"],
        reviewers=reviewers,
        lenses=dict(_lens(each) for each in options["lenses"]),
        decisions=options["decisions"],
        quorum=options["quorum"],
        deadline_seconds=None if deadline == float("inf") else deadline,
        seat_seconds=options["seat_timeout"],
        at=at,
        repository=None if at is None else os.getcwd(),
    )


def _lens(given: str) -> tuple[str, str]:
    reviewer, equals, path = given.partition("=")
    if not equals or not path:
        raise usage(f"--lens {given[:60]!r} is not REVIEWER=FILE")
    return reviewer, _text(path, stored.MAX_LENS_BYTES)


def _text(path: str, most_bytes: int) -> str:
    text = decode_body(read_input(path, most_bytes), most_bytes)
    warn_of_delimiter(text, shell_of(click.get_current_context()).output)
    return text
