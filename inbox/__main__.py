"""The program `inbox`."""

from typing import TYPE_CHECKING, NoReturn

from inbox_orch.shared.program import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from inbox_orch.shared.declaring import Declared


def main() -> NoReturn:
    """Run `inbox` with the arguments of the process."""
    run("inbox", _load, _find)


def _load() -> "click.Group":
    from .cli.tree import program

    return program


def _find(words: "Sequence[str]") -> "tuple[Declared, int] | None":
    from .cli import find

    return find(words)


if __name__ == "__main__":
    main()
