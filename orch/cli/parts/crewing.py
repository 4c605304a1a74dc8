"""The workers that a command starts, as its options name them."""

from collections.abc import Callable, Sequence

import click

from inbox_orch.shared.adapters.commands import warning_of_line
from inbox_orch.shared.shell.output import Output

from ...leader.posts import Post, posts_of
from .base import Command


def with_option(
    metavar: str = "[MAILBOX=]NAME",
    words: str = "A coding agent instead of a command; MAILBOX may be a role of a blueprint",
) -> Callable[[Command], Command]:
    """`--with [MAILBOX=]NAME`."""
    return click.option(
        "--with",
        "adapters",
        multiple=True,
        metavar=metavar,
        help=f"{words}: claude, codex, cursor-agent, gemini or opencode; repeatable.",
    )


def posts_wanted(
    output: Output,
    workers: Sequence[str],
    adapters: Sequence[str],
    command_line: Sequence[str] = (),
) -> tuple[Post, ...]:
    """The posts that are wanted; says so of a command with which an agent can change no file.
    Errors as of `posts_of`."""
    posts = posts_of(workers, command_line, adapters)
    for post in posts:
        warning = None if post.adapter is not None else warning_of_line(post.command)
        if warning is not None:
            output.notice(warning)
    return posts
