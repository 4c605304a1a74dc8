"""The gates that are named by name only. Pure."""

from collections.abc import Mapping

from .definitions import Gate

PATCH_SAFETY = "patch-safety"
"""It has no command: what it judges are the changes, as git has them (`patch_safety`)."""

BUILT_IN: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("ruff", ("ruff", "check", "--output-format=json", "."), "ruff"),
        Gate(
            "ruff-format",
            ("ruff", "format", "--check", "."),
            "lines",
            # Of older releases the first, of newer ones the second.
            pattern=r"^(?:Would reformat: | *--> )(?P<id>.+?)(?::\d+:\d+)?$",
        ),
        Gate("mypy", ("mypy", "--no-pretty", "."), "mypy"),
        Gate("pytest", ("pytest", "-q", "--junitxml={report}"), "junit"),
        Gate(PATCH_SAFETY, ()),
    )
}
