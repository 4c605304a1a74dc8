"""The program `orch`."""

from typing import TYPE_CHECKING, NoReturn

from inbox_orch.shared.shell.program import run

if TYPE_CHECKING:
    import click


def main() -> NoReturn:
    """Run `orch` with the arguments of the process."""
    run("orch", _load)


def _load() -> "click.Group":
    from .cli import program

    return program


if __name__ == "__main__":
    main()
