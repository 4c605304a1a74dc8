"""The shape that all commands share: options in any position, numbers, help, errors.

A program is a `Program` (a group that loads a command's module only when it is called); its
commands are `Verb`s. Whatever goes wrong becomes one error in the one envelope.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import click

from ..errors import EXIT_MEANINGS, InboxOrchError, usage
from ..ids import named_by, printable
from .declaring import Declared, clicks_keywords, common
from .output import Output
from .shell import Shell as Shell
from .shell import helpful
from .shell import shell_of as shell_of
from .value_types import DOCUMENT as DOCUMENT
from .value_types import NAME as NAME
from .value_types import PATH as PATH
from .value_types import TEXT as TEXT
from .value_types import Choice as Choice
from .value_types import Number as Number
from .value_types import Text as Text
from .values import given_again
from .values import parse_number as parse_number

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


def _read_as_text(parameters: Iterable[click.Parameter]) -> None:
    """Plain strings of click's become `NAME`, so that no command can forget it."""
    for parameter in parameters:
        if parameter.type is click.STRING:
            parameter.type = NAME


def _refuse_repeated(command: click.Command, context: click.Context, words: Sequence[str]) -> None:
    """Error `usage` for several values of an option that takes one; not while help is asked for,
    and not while a shell completes."""
    if context.resilient_parsing:
        return
    _, _, given = command.make_parser(context).parse_args(args=[*words])
    if any(parameter.name in ("help", "version") for parameter in given):
        return
    for parameter in given:
        takes_one = isinstance(parameter, click.Option) and not (
            parameter.is_flag or parameter.multiple
        )
        if takes_one and given.count(parameter) > 1:
            raise given_again(parameter.opts[0])


def _refuse_empty_variables(command: click.Command, context: click.Context) -> None:
    """Error `usage` for a variable that is to name what no word does, and is empty."""
    if context.resilient_parsing:
        return
    for parameter in command.params:
        variable, source = parameter.envvar, context.get_parameter_source(str(parameter.name))
        if isinstance(variable, str) and source is not click.core.ParameterSource.COMMANDLINE:
            named_by(variable)


# -- commands ------------------------------------------------------------------------------


class StandIn(click.Argument):
    """An argument that says what an option says: `orch run close NAME`, as `--run NAME` does."""

    def __init__(self, names: Sequence[str], *, instead_of: str) -> None:
        super().__init__(names, required=False, metavar=f"[{names[0].upper()}]")
        self.instead_of = instead_of


def stand_in(name: str, instead_of: str) -> Callable[[Command], Command]:
    """An argument for the option whose value the function of a command gets as `instead_of`."""

    return click.argument(name, cls=StandIn, instead_of=instead_of)


def _let_stand_in(command: click.Command, context: click.Context) -> None:
    """Give what a stand-in says to the option that it stands for; error `usage` where that says
    something else."""
    by_words = click.core.ParameterSource.COMMANDLINE
    for parameter in command.params:
        if not isinstance(parameter, StandIn):
            continue
        option, value = parameter.instead_of, context.params.pop(str(parameter.name), None)
        if value is None:
            continue
        given = context.params[option]
        if context.get_parameter_source(option) is by_words and given != value:
            raise usage(
                f"{printable(value)} and --{parameter.name} {printable(given)} are not the same",
                hint="give one of them",
            )
        context.params[option] = value
        context.set_parameter_source(option, by_words)


def _store(field: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that keeps an option's value in the shell, wherever the option stood."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        shell = shell_of(context)
        if value is not None and value is not False:
            shell.keep(field, value, parameter.opts[0])

    return keep


def _common_options(*, agent: bool) -> list[click.Parameter]:
    options: list[click.Parameter] = []
    for field, each in common(agent=agent).items():
        keywords = clicks_keywords(each)
        keywords |= {"expose_value": False, "callback": _store(field)}
        options.append(click.Option([*each.names], **keywords))
    _read_as_text(options)
    return options


class Verb(click.Command):
    """A command. `agent=True` gives it --agent; `examples` are shown first in its help."""

    def __init__(
        self,
        *args: Any,
        agent: bool = False,
        examples: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        _read_as_text(self.params)
        self.params.extend(_common_options(agent=agent))

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """`--help`, which honours `--json`."""
        return _help_option()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; what is wrong and has no hint of its own leads to the help."""
        with helpful(ctx.command_path):
            _refuse_repeated(self, ctx, args)
            rest = super().parse_args(ctx, args)
            _let_stand_in(self, ctx)
            _refuse_empty_variables(self, ctx)
            return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        shell_of(ctx).begin()
        with helpful(ctx.command_path):
            return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, examples, text, options."""
        self.format_usage(ctx, formatter)
        _write_examples(formatter, self.examples)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)


class Words(NamedTuple):
    """`groups`: the headings of a program's help, and the commands under each; `meant`: which
    commands of its own, or which whole calls, a word that is no command may mean."""

    groups: Mapping[str, Sequence[str]] = {}
    meant: Mapping[str, Sequence[str]] = {}

    def sections(self, known: Iterable[str]) -> dict[str, list[str]]:
        """The known commands by heading; those that no heading names come last."""
        left = dict.fromkeys(known)
        found = {}
        for heading, names in self.groups.items():
            found[heading] = [name for name in names if name in left]
            for name in found[heading]:
                del left[name]
        found["Others" if found else "Commands"] = list(left)
        return {heading: names for heading, names in found.items() if names}


class Program(click.Group):
    """A group of commands, each loaded from a module of its own when it is called.

    `commands_in` maps a command's name to (module, short help); the module's `command` is it.
    `version=True` gives it --version. The module `names_in` suggests names from the database to
    a shell that completes: its `suggest(context, parameter, incomplete)`. `words` are for people
    who do not know the commands.
    """

    def __init__(
        self,
        *args: Any,
        commands_in: Mapping[str, tuple[str, str]],
        examples: Sequence[str] = (),
        version: bool = False,
        names_in: str | None = None,
        words: Words | None = None,
        **kwargs: Any,
    ) -> None:
        # click would raise its whole help as the error's message.
        kwargs["no_args_is_help"] = False
        super().__init__(*args, **kwargs)
        self._modules = dict(commands_in)
        self.names_in = names_in
        self._words = words or Words()
        self.examples = tuple(examples)
        _read_as_text(self.params)
        self.params.extend(_common_options(agent=True))
        self._is_whole = version
        if version:
            self.params.append(_version_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; what is wrong and has no hint of its own leads to the help."""
        with helpful(ctx.command_path):
            _refuse_repeated(self, ctx, args)
            rest = super().parse_args(ctx, args)
            _refuse_empty_variables(self, ctx)
            return rest

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """`--help`, which honours `--json`."""
        return _help_option()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they are declared."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded now."""
        if cmd_name not in self._modules:
            return None
        command = importlib.import_module(self._modules[cmd_name][0]).command
        if isinstance(command, Declared):
            command = command.for_click()
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        """The commands that begin so, without loading them; or options."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=short)
            for name, (_, short) in self._modules.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Error `usage` with the nearest name for an unknown command."""
        known = not args or args[0] in self._modules or args[0].startswith("-")
        if not known and not ctx.resilient_parsing:
            from .meant import hint_at

            hint = hint_at(args[0], ctx.command_path, self._modules, self._words.meant)
            raise usage(f"there is no command {args[0][:40]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, examples, text, commands, options; exit codes of the program as a whole alone."""
        self.format_usage(ctx, formatter)
        _write_examples(formatter, self.examples)
        self.format_help_text(ctx, formatter)
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)
        if self._is_whole:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code), text) for code, text in EXIT_MEANINGS.items()])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Only the options: `format_help` writes the commands itself."""
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their short help, without loading them."""
        widest = max(map(len, self._modules))
        for heading, names in self._words.sections(self._modules).items():
            with formatter.section(heading):
                # As wide in every section as in one of all of them.
                rows = [(f"{name:<{widest}}", self._modules[name][1]) for name in names]
                formatter.write_dl(rows)


def _write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def _help_option() -> click.Option:
    def show(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            _say_and_exit(context, {"help": context.get_help()}, context.get_help())

    return click.Option(
        ["--help", "-h"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Show this text.",
    )


def _version_option() -> click.Option:
    def show(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not context.resilient_parsing:
            from .versions import installed_release

            number = installed_release()
            _say_and_exit(context, {"version": number}, f"{context.command_path} {number}")

    return click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Show the version.",
    )


def _say_and_exit(context: click.Context, data: Mapping[str, str], text: str) -> NoReturn:
    output = shell_of(context).output
    if output.as_json:
        output.result(data)
    else:
        output.text(text + "\n")
    context.exit()


# -- running -------------------------------------------------------------------------------


def invoke(name: str, program: click.Group, arguments: Sequence[str], output: Output) -> int:
    """Parse a command line and run its command; returns the exit code. Errors: all."""
    shell = Shell(output)
    try:
        with program.make_context(
            name, [*arguments], obj=shell, max_content_width=80, terminal_width=_help_width()
        ) as context:
            program.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return output.exit_code


def _help_width() -> int:
    return 80


def usage_error(raised: BaseException) -> InboxOrchError | None:
    """What click says is wrong with a call, as an error of ours; None for any other error."""
    if not isinstance(raised, click.ClickException):
        return None
    context = getattr(raised, "ctx", None)
    path = context.command_path if context is not None else None
    return usage(
        raised.format_message(),
        hint=None if path is None else f"`{path} --help` shows how it is called",
    )
