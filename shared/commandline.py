"""The shape that all commands share: options in any position, numbers, help, errors.

A program is a `Program` (a group that loads a command's module only when it is called); its
commands are `Verb`s. Whatever goes wrong becomes one error in the one envelope.
"""

import contextlib
import gc
import importlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .errors import EXIT_MEANINGS, EXIT_READER_GONE, InboxOrchError, usage
from .output import Output, ReaderGone
from .signals import Signalled, signal_behind
from .values import PATH as PATH
from .values import TEXT as TEXT
from .values import Number as Number
from .values import Text as Text
from .values import parse_number as parse_number

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Shell:
    """What the options that every command takes have said; the object of a click context."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.database: str | None = None
        self.database_named = False
        self.database_id: str | None = None
        self.agent: str | None = None
        self.json = False

    @property
    def busy_seconds(self) -> float:
        """How long a write waits for other writers (INBOX_BUSY_TIMEOUT, in seconds)."""
        text = os.environ.get("INBOX_BUSY_TIMEOUT", "")
        return parse_number("INBOX_BUSY_TIMEOUT", text, 0, 3600) if text else 10.0

    @property
    def expected_id(self) -> str | None:
        """The database id to insist on. A --db given by hand overrides INBOX_DB_ID, which
        belongs to the INBOX_DB beside it."""
        if self.database_id is not None or self.database_named:
            return self.database_id
        return os.environ.get("INBOX_DB_ID") or None


def shell_of(context: click.Context) -> Shell:
    """The shell of a command's context."""
    shell = context.find_object(Shell)
    assert shell is not None
    return shell


def _read_as_text(parameters: Iterable[click.Parameter]) -> None:
    """Plain strings of click's become `TEXT`, so that no command can forget it."""
    for parameter in parameters:
        if parameter.type is click.STRING:
            parameter.type = TEXT


# -- commands ------------------------------------------------------------------------------


def _store(field: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that keeps an option's value in the shell, wherever the option stood."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        shell = shell_of(context)
        if value is None or value is False:
            return
        if value == "":
            raise usage(f"{parameter.opts[0]} is empty", hint="a variable may not be set")
        setattr(shell, field, value)
        if field == "database":
            shell.database_named = True

    return keep


def _common_options(*, agent: bool) -> list[click.Parameter]:
    options: list[click.Parameter] = [
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_store("json"),
            help="Print one JSON value.",
        ),
        click.Option(
            ["--db"],
            type=PATH,
            metavar="PATH",
            expose_value=False,
            callback=_store("database"),
            help="The database file.  [env: INBOX_DB]",
        ),
        click.Option(
            ["--db-id"],
            type=TEXT,
            metavar="ID",
            expose_value=False,
            callback=_store("database_id"),
            help="Refuse any other database.  [env: INBOX_DB_ID]",
        ),
    ]
    if agent:
        options.append(
            click.Option(
                ["--agent"],
                type=TEXT,
                metavar="NAME",
                expose_value=False,
                callback=_store("agent"),
                help="Who is acting.  [env: INBOX_AGENT]",
            )
        )
    return options


@contextlib.contextmanager
def _helpful(context: click.Context) -> Iterator[None]:
    """Give a wrong call that has no hint the one that always helps."""
    try:
        yield
    except InboxOrchError as error:
        if error.code == "usage" and error.hint is None:
            error.hint = f"`{context.command_path} --help` shows how it is called"
        raise


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
        with _helpful(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with the garbage collector that `program.run` has stopped."""
        shell = shell_of(ctx)
        # Only now is it sure whether --json was an option, and not the value of one.
        shell.output.as_json = shell.json
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        with _helpful(ctx):
            return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, examples, text, options."""
        self.format_usage(ctx, formatter)
        _write_examples(formatter, self.examples)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)


class Program(click.Group):
    """A group of commands, each loaded from a module of its own when it is called.

    `commands_in` maps a command's name to (module, short help); the module's `command` is it.
    `version=True` gives it --version. The module `names_in` suggests names from the database to
    a shell that completes: its `suggest(context, parameter, incomplete)`.
    """

    def __init__(
        self,
        *args: Any,
        commands_in: Mapping[str, tuple[str, str]],
        examples: Sequence[str] = (),
        version: bool = False,
        names_in: str | None = None,
        **kwargs: Any,
    ) -> None:
        # click would raise its whole help as the error's message.
        kwargs["no_args_is_help"] = False
        super().__init__(*args, **kwargs)
        self._modules = dict(commands_in)
        self.names_in = names_in
        self.examples = tuple(examples)
        _read_as_text(self.params)
        self.params.extend(_common_options(agent=True))
        if version:
            self.params.append(_version_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; what is wrong and has no hint of its own leads to the help."""
        with _helpful(ctx):
            return super().parse_args(ctx, args)

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
            from .nearest import nearest

            near = nearest(args[0], self._modules)
            raise usage(
                f"there is no command {args[0][:40]!r}",
                hint=f"did you mean `{ctx.command_path} {near}`?"
                if near
                else f"`{ctx.command_path} --help` lists the commands",
            )
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, examples, text, commands, options, exit codes."""
        self.format_usage(ctx, formatter)
        _write_examples(formatter, self.examples)
        self.format_help_text(ctx, formatter)
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in EXIT_MEANINGS.items()])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Only the options: `format_help` writes the commands itself."""
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their short help, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in self._modules.items()])


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


def execute(name: str, load: Callable[[], click.Group], arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code. Never raises an `Exception`."""
    output = Output(f"{name}/1", as_json=_asks_for_json(arguments))

    def run() -> int:
        if f"_{name.upper()}_COMPLETE" in os.environ:
            from .completion import answer

            return answer(name, load, _shell(output), output)
        return invoke(name, load(), arguments, output)

    return guarded(output, run)


def guarded(output: Output, run: Callable[[], int]) -> int:
    """What `run` returns; what it raises is reported, and its exit code returned."""
    try:
        try:
            return run()
        except ReaderGone:
            return EXIT_READER_GONE
        except (Exception, Signalled) as raised:  # noqa: BLE001 - the last line of defence
            error = _error_for(raised)
        return _report(output, error)
    except ReaderGone:
        return EXIT_READER_GONE


def _error_for(raised: BaseException) -> InboxOrchError:
    """What the caller is told; anything unforeseen is a bug, exit 1."""
    signalled = signal_behind(raised)
    if signalled is not None:
        code = "interrupted" if signalled.number == signal.SIGINT else "terminated"
        hint = "what was asked for has been done or not at all"
        return InboxOrchError(code, "stopped by a signal", hint=hint)
    if isinstance(raised, InboxOrchError):
        return raised
    if isinstance(raised, click.ClickException):
        return _usage_error(raised)
    return _internal(raised)


def invoke(name: str, program: click.Group, arguments: Sequence[str], output: Output) -> int:
    """Parse a command line and run its command; returns the exit code. Errors: all."""
    shell = _shell(output)
    try:
        with program.make_context(
            name, [*arguments], obj=shell, max_content_width=80, terminal_width=_help_width()
        ) as context:
            program.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return output.exit_code


def _shell(output: Output) -> Shell:
    """The shell, with what the environment says."""
    shell = Shell(output)
    shell.database = os.environ.get("INBOX_DB") or None
    shell.agent = os.environ.get("INBOX_AGENT") or None
    return shell


def _help_width() -> int:
    return 80


def _report(output: Output, error: InboxOrchError) -> int:
    try:
        output.error(error)
    except InboxOrchError as unwritten:
        output.complain(error.message)
        if error.code != unwritten.code:
            output.complain(unwritten.message)
        if unwritten.hint:
            output.notice(f"hint: {unwritten.hint}")
    return error.exit_code


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether --json stands among the options, so that a usage error is JSON, too."""
    for argument in arguments:
        if argument == "--":
            return False
        if argument == "--json":
            return True
    return False


def _usage_error(error: click.ClickException) -> InboxOrchError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else None
    return usage(
        error.format_message(),
        hint=None if path is None else f"`{path} --help` shows how it is called",
    )


def _internal(error: BaseException) -> InboxOrchError:
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except OSError as gone:
            return InboxOrchError(
                "io_error",
                f"the working folder cannot be told: {gone.strerror}",
                hint="change to a folder that is there, or give whole paths",
            )
    if os.environ.get("INBOX_DEBUG"):
        import traceback

        traceback.print_exception(error)
    return InboxOrchError(
        "internal",
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a bug; INBOX_DEBUG=1 shows where it happened",
    )
