"""The values that a run's config calls secret."""

import contextlib
import os
from collections.abc import Mapping

from .config import Config


def secrets_of(config: Config, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """What is to be masked for a run, with the values from this environment, else from that of
    the process. In a locale that is not UTF-8, Python reads variables by that locale, while what
    commands print of them is read as UTF-8: then both readings are secrets."""
    values = config.secret_values(os.environ if environment is None else environment)
    found = dict.fromkeys(values)
    for value in values:
        with contextlib.suppress(UnicodeEncodeError):  # then no command can be given it, either
            found[os.fsencode(value).decode("utf-8", "surrogateescape")] = None
    return tuple(found)
