"""The cells of what is for agents, shells and readers: `prime`, `skill`, `hook`, `help`, …"""

from pathlib import Path

from support.matrix import (
    AS_WORKER,
    NO_BASE,
    NO_LEASE,
    NO_STATE,
    NO_THREAD,
    NO_WAIT,
    Cell,
    Never,
    given,
    plain,
)


def changed_skill(folder: Path, program: str) -> None:
    """A skill that somebody has written to since it was installed."""
    path = folder / "skills" / program / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("my own")


def needs_nothing(*words: str, usage: Cell, missing: Cell | Never) -> dict[str, Cell | Never]:
    """The cells of a command that prints what ships with the program."""
    return {
        "ok": plain(*words),
        "usage": usage,
        "not_found": missing,
        "conflict": NO_STATE,
        "busy": plain(*words)._replace(code=0, because=NO_BASE.because),
        "no_database": plain(*words)._replace(code=0, because=NO_BASE.because),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    }


def printed(*words: str) -> dict[str, Cell | Never]:
    """The same without any name in its arguments."""
    return needs_nothing(*words, usage=plain(*words, "surplus"), missing=NO_THREAD)


def installed(program: str) -> dict[str, Cell | Never]:
    """The cells of `skill install`."""
    words = ("skill", "install", "--dir")
    folder = given(lambda project: (*words, str(project.folder / "skills")))

    def refused(project):
        changed_skill(project.folder, program)
        return (*words, str(project.folder / "skills"))

    return {
        **needs_nothing("skill", "install", usage=plain(*words, "/dev/null"), missing=NO_THREAD),
        "ok": folder,
        "conflict": Cell(refused, 9, "a file with another text is precious"),
        "busy": folder._replace(code=0, because=NO_BASE.because),
        "no_database": folder._replace(code=0, because=NO_BASE.because),
    }


def hook(event: str) -> dict[str, Cell | Never]:
    """The cells of a hook."""
    words = ("hook", event, *AS_WORKER)
    told = given(lambda project: (project.send(), *words)[1:])
    return {
        "ok": told,
        "usage": plain(*words, "--no-such-option"),
        "not_found": NO_THREAD,
        "conflict": NO_STATE,
        "busy": told._replace(code=0, because="what it remembers is in a file of its own"),
        "no_database": plain(*words)._replace(code=0, because="there is nothing to announce"),
        "stale": NO_LEASE,
        "timeout": NO_WAIT,
    }


HELP = needs_nothing(
    "help", "json", usage=plain("help", "--no-such-option"), missing=plain("help", "no-such-topic")
)
COMPLETION = needs_nothing(
    "completion",
    "bash",
    usage=plain("completion", "tcsh"),
    missing=Never("a shell that it does not know is a wrong call"),
)

MCP = {
    **needs_nothing(
        "mcp",
        "--tools",
        usage=plain("mcp"),
        missing=NO_THREAD,
    ),
    "conflict": Never("only to serve it needs an optional part, and a server prints no JSON"),
}


def hand_changed(project) -> tuple[str, ...]:
    """The skill of another, where the one of the set-up would be."""
    path = project.folder / ".agents" / "skills" / "inbox" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("my own")
    return ("setup", "codex")


SETUP = {
    **needs_nothing("setup", "claude", usage=plain("setup", "nobody"), missing=NO_THREAD),
    "conflict": Cell(hand_changed, 9, "a file with another text is precious"),
}

CELLS: dict[str, dict[str, Cell | Never]] = {
    "prime": {
        **printed("prime"),
        "busy": plain("prime")._replace(code=0, because="it only reads"),
        "no_database": plain("prime")._replace(code=0, because="it says that there is none"),
    },
    "guide": printed("guide"),
    "skill print": printed("skill", "print"),
    "skill install": installed("inbox"),
    "setup": SETUP,
    "hook session-start": hook("session-start"),
    "hook stop": hook("stop"),
    "hook post-tool": hook("post-tool"),
    "mcp": MCP,
    "completion": COMPLETION,
    "help": HELP,
}
