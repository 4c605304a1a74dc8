"""What of a repository's settings a leader should know before worktrees are made from it. Reads
only."""

import os

from inbox_orch.shared.errors import InboxOrchError

from .commands import git, output_of
from .repository import Repository

# Its index could lose entries when two commands met (fixed in 2.51.1).
_BAD_VERSIONS = ("2.51.0",)
_FILTER_KEYS = ("process", "smudge", "clean")


def version_warning(text: str) -> str | None:
    """What is wrong with this release of git (`git version …`), if it is a bad one."""
    version = text.removeprefix("git version ").split(" ")[0]
    if version in _BAD_VERSIONS:
        return f"{text} is known to damage the index; use another release"
    return None


def check_version() -> str:
    """What git calls itself. Error `git_missing` for one that is too old for merges in memory
    (before 2.38)."""
    text = output_of("/", "version")
    digits = text.removeprefix("git version ").split(".")
    version = tuple(int(d) for d in digits[:2] if d.isdigit())
    if version < (2, 38):
        raise InboxOrchError(
            "git_missing",
            f"{text} is too old: git 2.38 or newer is needed",
            hint="update git",
        )
    return text


def notes(repository: Repository) -> list[str]:
    """Hooks elsewhere, filters whose program is missing, submodules; each as a sentence."""
    settings = _settings(repository)
    found = []
    hooks = settings.get("core.hookspath")
    if hooks is not None:
        found.append(
            f"core.hooksPath is {hooks}: those hooks do not run when worktrees are made, but"
            " for the workers' commits they do"
        )
    for name, program in _missing_programs(settings):
        found.append(
            f"filter {name} needs {program}, which is not on PATH: worktrees cannot be filled"
            + (" unless the run's config says `lfs: skip`" if name == "lfs" else "")
        )
    if _has_submodules(repository):
        found.append(
            "it has submodules: they stay empty unless the run's config says `submodules: true`"
        )
    return [f"{repository.path}: {text}" for text in found]


def _settings(repository: Repository) -> dict[str, str]:
    """The last value of each setting, as git in the repository sees it."""
    # The hooks' path is ours in every command, so the files alone are asked.
    found = {}
    for scope in ("--system", "--global", "--local"):
        status, text = git(
            repository.path,
            *("config", scope, "--includes", "--null", "--list"),
            reads=True,
            accepted=(0, 1, 128),
        )
        for entry in text.split("\0") if status == 0 else ():
            name, _, value = entry.partition("\n")
            found[name] = value
    return {name: value for name, value in found.items() if name}


def _missing_programs(settings: dict[str, str]) -> list[tuple[str, str]]:
    """The filters that must work, with the program that is not there."""
    import shutil

    missing = {}
    for name, required in settings.items():
        if not (name.startswith("filter.") and name.endswith(".required") and required == "true"):
            continue
        driver = name.removeprefix("filter.").removesuffix(".required")
        for key in _FILTER_KEYS:
            program = _program_of(settings.get(f"filter.{driver}.{key}", ""))
            if program is not None and shutil.which(program) is None:
                missing[driver] = program
    return sorted(missing.items())


def _program_of(command: str) -> str | None:
    """The program that a filter's command line begins with; None where a shell must tell."""
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:
        return None
    plain = bool(words) and not set("$`;&|<>(=") & set(words[0])
    return words[0] if plain else None


def _has_submodules(repository: Repository) -> bool:
    if repository.bare:
        status, _ = git(
            repository.path,
            *("cat-file", "-e", "HEAD:.gitmodules"),
            reads=True,
            accepted=(0, 1, 128),
        )
        return status == 0
    return os.path.isfile(os.path.join(repository.path, ".gitmodules"))
