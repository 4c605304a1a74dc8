"""The workers that are wanted: as options name them, and as a config describes those of roles."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from inbox_orch.inbox.worker.plan import find_command
from inbox_orch.shared.adapters import commands
from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import MAILBOX_PATTERN, printable, quoted

from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Run
from ..runs.role import Role
from ..stages import roles

_LOOK_AT = "nothing was started; check its name, PATH and its executable bit"
_AS_A_VARIABLE = (
    "nothing was started; what stands before `=` is a mailbox, so a variable is set with "
    "`env NAME=VALUE CMD`"
)
# What makes of the first word of a command something else than a name.
_NOT_PLAIN = frozenset("=$`*?[(<>&|;{\"'\\~")


class Post(NamedTuple):
    """A worker that is wanted: its command, as a shell reads it; the mailbox that it serves, None
    for those of the run's tasks that no other post names; the name that it goes by.

    `adapter` is the name of a known agent that is run instead of a command, with a `toolset`, and
    with `model` if not None.
    """

    command: str
    mailbox: str | None
    agent: str
    adapter: str | None = None
    toolset: str = "coding"
    model: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """What it is given to `inbox work` as."""
        if self.adapter is None:
            return ("--", "/bin/sh", "-c", self.command)
        model = () if self.model is None else ("--model", self.model)
        return ("--with", self.adapter, "--toolset", self.toolset, *model)

    @property
    def shown(self) -> str:
        """The same, as a person would write it."""
        return f"-- {self.command}" if self.adapter is None else f"--with {self.adapter}"


def posts_of(
    wanted: Iterable[str],
    command_line: Sequence[str] = (),
    adapters: Iterable[str] = (),
    *,
    toolset: str = "coding",
) -> tuple[Post, ...]:
    """The posts that the options `--worker [MAILBOX=]COMMAND` and `--with [MAILBOX=]NAME` describe,
    and one for the words of a command; with a name for each, made from its command. `toolset` is
    that of the latter. Error `usage`, also when there is no such command or agent."""
    parts = [_parts(text) for text in wanted]
    parts += [(None, shlex.join(find_command(command_line)))] if command_line else []
    posts: list[Post] = []
    for mailbox, command in parts:
        line, program = _checked(command, mailbox)
        name = free_name(_name(program), {post.agent for post in posts})
        posts.append(Post(line, mailbox, name))
    for mailbox, known in map(_parts, adapters):
        found = commands.command(known, toolset)
        name = free_name(known, {post.agent for post in posts})
        posts.append(Post(found.line, mailbox, name, known, toolset))
    return tuple(posts)


def _parts(text: str) -> tuple[str | None, str]:
    import re

    before, equals, after = text.partition("=")
    if equals and re.fullmatch(MAILBOX_PATTERN, before):
        return before, after
    return None, text


def _checked(command: str, mailbox: str | None) -> tuple[str, str]:
    """A command and its first word, which has to be there; error `usage`.

    A program that is named by a path is found from the present folder: the command itself runs in
    the worktree of its task.
    """
    try:
        words = shlex.split(command, comments=True)
    except ValueError as error:
        raise usage(
            f"the worker's command {quoted(command)} cannot be read: {error}",
            hint="it is given to a shell as it stands; check its quotes",
        ) from error
    if not words:
        raise usage("a worker needs a command", hint="for example --worker './agent.sh'")
    first = words[0]
    if set(first) & _NOT_PLAIN:
        return command, first
    if not _is_known_to_the_shell(first):
        raise usage(
            f"the worker's command {quoted(first)} is not found",
            hint=_AS_A_VARIABLE if mailbox else _LOOK_AT,
            command=printable(first),
        )
    rest = command.lstrip()
    if "/" in first and rest.startswith(first):
        command = shlex.quote(os.path.abspath(first)) + rest.removeprefix(first)
    return command, first


def _is_known_to_the_shell(word: str) -> bool:
    """Whether a shell can run it: a program, or what the shell itself knows."""
    asked = ("/bin/sh", "-c", 'command -v -- "$1"', "worker", word)
    return subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def _name(program: str) -> str:
    """A name for an agent, made from that of its program; `worker` if it is a shell's own word."""
    if shutil.which(program) is None:
        return "worker"
    name = os.path.splitext(os.path.basename(program))[0]
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return kept.strip("._-")[:50] or "worker"


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that is not taken: this one, or with a number."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def posts_of_roles(run: Run, names: Iterable[str]) -> tuple[Post, ...]:
    """The posts of those of these roles whose workers the config describes. Error `usage` when
    there is no such command or agent."""
    posts: list[Post] = []
    given, mailboxes = config_of(run).roles, roles.mailboxes_by_role(run)
    for name in names:
        role = given.get(name, Role())
        agent = free_name(name[:50], {post.agent for post in posts})
        if role.command is not None:
            line = shlex.join(find_command(role.command))
            posts.append(Post(line, mailboxes[name], agent))
        elif role.adapter is not None:
            toolset = role.toolset or "coding"
            found = commands.command(role.adapter, toolset, role.model)
            box = mailboxes[name]
            posts.append(Post(found.line, box, agent, role.adapter, toolset, role.model))
    return tuple(posts)


def tell_of_idle(desk: Desk, run: Run, names: Collection[str]) -> None:
    """Say of roles which no stage has that their workers have nothing to do."""
    for name in sorted(names):
        desk.database.notice(
            f"no stage of run {run.name} has the role {name}: it has no work there"
        )


def cast(
    desk: Desk, run: Run, posts: Sequence[Post], drawn: tuple[str, str] | None = None
) -> tuple[Run, tuple[Post, ...]]:
    """The run and its posts, of which one that names a role serves the mailbox of that role: the
    one that the config says, else one of its own in this run. Roles that have stages, and whose
    workers the config describes, have posts besides. `drawn` is the blueprint that tasks may still
    be given. Errors: those of every write, and of `posts_of_roles`."""
    names = {post.mailbox for post in posts if post.mailbox is not None}
    if not names and not any(role.is_manned for role in config_of(run).roles.values()):
        return run, tuple(posts)
    also = None if drawn is None else drawn[1]
    run = roles.give(desk, run, names, also)
    with desk.database.snapshot() as snapshot:
        used = roles.used_in(snapshot, run, also)
    tell_of_idle(desk, run, names.intersection(roles.KNOWN).difference(used))
    given = {role: box for role, box in roles.mailboxes_by_role(run).items() if role in used}
    found = [post._replace(mailbox=given.get(post.mailbox or "", post.mailbox)) for post in posts]
    served = {post.mailbox for post in found}
    described = posts_of_roles(run, (name for name in used if given.get(name) not in served))
    return run, (*found, *(described if posts else ()))
