"""`skill print` and `skill install` of both programs: the manual for agents, as a SKILL.md.

The text ships with the program, so that both always have one version. The format is that of
agentskills.io: a folder with the skill's name, in it SKILL.md with `name` and `description` in
front. A file that a user has changed is never replaced unasked, and a link never at all.
"""

import io
import os
from collections.abc import Callable
from typing import NamedTuple

import click

from ..errors import InboxOrchError, usage
from ..ids import printable
from ..shell.blocks import Sentence
from ..shell.commandline import PATH, Verb, shell_of
from ..shell.inputs import read_input
from ..shell.writing import write_file

DEFAULT_FOLDER = os.path.join(".agents", "skills")
_MOST_BYTES = 1024 * 1024


class Installed(NamedTuple):
    """Where a skill lies now; `changed` is false when it lay there already, just so."""

    path: str
    changed: bool


def install(name: str, text: str, folder: str, *, force: bool) -> Installed:
    """Put the skill into FOLDER/NAME/SKILL.md.

    Errors: `file_exists` when another file is there and `force` is not given; `usage` when the
    folder cannot be made or a link is in the way.
    """
    target = os.path.join(os.path.abspath(folder), name)
    path = os.path.join(target, "SKILL.md")
    for each in (target, path):
        if os.path.islink(each):
            raise usage(
                f"{printable(each, 300)} is a link, and is not written through",
                hint="give another folder with --dir, or remove the link",
            )
    if os.path.lexists(path):
        if read_input(path, _MOST_BYTES) == text.encode():
            return Installed(path, False)
        if not force:
            raise InboxOrchError(
                "file_exists",
                f"{printable(path, 300)} is there already, with another text",
                hint="--force replaces it; `skill print` shows the text that would be written",
                details={"path": path},
            )
    try:
        os.makedirs(target, exist_ok=True)
    except OSError as error:
        raise usage(
            f"cannot make {printable(target, 300)}: {error.strerror}",
            hint="give a folder that can be written with --dir",
        ) from error
    write_file(path, io.BytesIO(text.encode()))
    return Installed(path, True)


def print_command(program: str, text: Callable[[], str]) -> click.Command:
    """`skill print` of a program."""

    @click.command(
        "print",
        cls=Verb,
        examples=(f"{program} skill print", f"{program} skill print > SKILL.md"),
        help=f"Print the manual of `{program}` for agents, in the SKILL.md format. Needs no "
        "database.",
    )
    @click.pass_context
    def command(context: click.Context) -> None:
        output = shell_of(context).output
        if output.as_json:
            output.result({"skill": {"id": program, "text": text()}})
        else:
            output.text(text())

    return command


def install_command(program: str, text: Callable[[], str]) -> click.Command:
    """`skill install` of a program."""

    @click.command(
        "install",
        cls=Verb,
        examples=(
            f"{program} skill install",
            f"{program} skill install --dir .claude/skills",
            f"{program} skill install --dir ~/.claude/skills --force",
        ),
        help=f"Write the manual of `{program}` for agents to DIR/{program}/SKILL.md. A file that "
        "is there with another text is refused (exit 9) without --force; a link always is.",
    )
    @click.option(
        "--dir",
        "folder",
        type=PATH,
        default=DEFAULT_FOLDER,
        show_default=True,
        metavar="DIR",
        help="The folder of skills. Claude Code reads .claude/skills.",
    )
    @click.option("--force", is_flag=True, help="Replace a file with another text.")
    @click.pass_context
    def command(context: click.Context, folder: str, force: bool) -> None:
        installed = install(program, text(), folder, force=force)
        path = printable(installed.path, 4096)
        sentence = f"The skill is in {path}" if installed.changed else f"{path} is current"
        shell_of(context).output.result(
            {"skill": {"id": program, "path": path}, "changed": installed.changed},
            Sentence(f"{sentence}.", (path,)),
        )

    return command
