"""Whether escape sequences may be written."""

import os


def escapes_allowed() -> bool:
    """Whether escape sequences may be written at all, be it for colours or to paint anew: not
    with NO_COLOR (no-color.org), and not on a terminal that says it knows none."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
