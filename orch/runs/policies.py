"""The rules that a policy has, what each is by itself, and which of two values is the stricter.
Pure.

A layer is a mapping from the names of rules to their values, as a run's config, a task or a stage
gives it. What the values mean for a change, `patches.rules` knows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

Given = Mapping[str, Any]
Named = tuple[str, Given]
"""A layer, with its name before it."""

WORDS = ("allow", "ask", "deny")
"""What a rule may say of a kind of change, from the mildest."""
HISTORIES = ("keep", "squash")
BUILT_IN, RUN = "built-in", "run"
MOST_PATTERNS = 200
MAX_PATTERN_CHARS = 1000
MAX_NUMBER = 10**12
MAX_TEXT_BYTES = 1024 * 1024
MAX_FILE_BYTES = 50 * 1024 * 1024

ASK_PATHS = (
    ".orch/",
    # What git goes by, and what it may run.
    *(".gitattributes", ".gitmodules", ".githooks/", ".hooks/", ".husky/"),
    *(".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"),
    # What is run elsewhere, with other rights.
    *("/.github/workflows/", "/.github/actions/", "/.gitlab-ci.yml", "/.gitlab/", "/.circleci/"),
    *("/.buildkite/", "/.forgejo/workflows/", "/.gitea/workflows/", "/.woodpecker/"),
    *("/.woodpecker.yml", "/.woodpecker.yaml", "/.travis.yml", "/.drone.yml", "/Jenkinsfile"),
    *("/azure-pipelines.yml", "/bitbucket-pipelines.yml", "/appveyor.yml", "/.cirrus.yml"),
    *("CODEOWNERS", "/.github/dependabot.yml"),
    # What agents go by.
    *("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"),
    *(".claude/", ".agents/", ".codex/", ".gemini/", ".cursor/", ".opencode/", ".windsurf/"),
    *(".clinerules/", ".mcp.json", "opencode.json", ".cursorrules", ".windsurfrules"),
    *(".clinerules", ".aider.conf.yml", ".github/copilot-instructions.md"),
    # What editors run when a folder is opened.
    *("/.vscode/", "/.devcontainer/", "/.devcontainer.json"),
)


class Rule(NamedTuple):
    """One rule. `kind` says what its values are and how two of them compare: see `KINDS`. `default`
    is what the built-in layer says, None where it says nothing; `broken` what becomes of a change
    that breaks it (of `WORDS`, None: as its value says); `meaning` what it is, for people."""

    name: str
    kind: str
    default: Any
    broken: str | None
    meaning: str


KINDS = {
    "allowed": "patterns; a path has to fit those of every layer",
    "found": "patterns; those of all layers count",
    "most": "a number; the smallest counts",
    "least": "a number; the largest counts",
    "word": "allow, ask or deny; the strictest counts",
    "must": "true or false; true counts",
    "tests": "patterns, each with one or more patterns of tests; those of all layers count",
    "history": "squash or keep; squash counts",
}

RULES = {
    rule.name: rule
    for rule in (
        Rule("allow_paths", "allowed", None, "deny", "what may be changed; all where it is not"
             " given"),
        Rule("forbid_paths", "found", None, "deny", "what may not be changed"),
        Rule("ask_paths", "found", ASK_PATHS, "ask", "what may be changed once somebody has"
             " approved"),
        Rule("max_files", "most", None, "deny", "how many files a change may have"),
        Rule("max_lines", "most", None, "deny", "how many lines it may add and take away"),
        Rule("max_patch_bytes", "most", MAX_TEXT_BYTES, "deny", "how many bytes of text these lines"
             " may have; binary files are not counted"),
        Rule("max_file_bytes", "most", MAX_FILE_BYTES, "deny", "how large a new or changed file may"
             " be"),
        Rule("binary", "word", None, None, "a new or changed file that is not text"),
        Rule("deletes", "word", None, None, "a file that goes; one that is renamed goes, too"),
        Rule("renames", "word", None, None, "a file that has another name, and much the same"
             " content"),
        Rule("mode_changes", "word", None, None, "a file that becomes executable, or is it no more;"
             " a new one that is"),
        Rule("symlinks", "word", "ask", None, "a new or changed symbolic link"),
        Rule("submodules", "word", "ask", None, "a submodule that comes, goes, or has another"
             " commit"),
        Rule("secrets", "word", "deny", None, "keys of known formats, and the values of the run's"
             " secrets, in added lines and messages of commits"),
        Rule("tests_for", "tests", None, "deny", "where these paths change, a file of their tests"
             " has to change, too"),
        Rule("ascii_only", "must", None, "deny", "added lines and new names have no other"
             " characters than those of ASCII"),
        Rule("issue_ref", "must", None, "deny", "a message of a commit names an issue: #17, ABC-17,"
             " or the address of one"),
        Rule("min_reviewers", "least", None, "ask", "so many people have to approve, whatever is"
             " changed"),
        Rule("history", "history", None, None, "squash: what is accepted is one commit, made of the"
             " tree that was judged; keep: the worker's own commits, each of which is judged"),
    )
}  # fmt: skip
"""All rules by their names. docs/reference/policy.md is made of it."""


def built_in(replaced: Given) -> dict[str, Any]:
    """The layer that is there by itself, without what another one replaces."""
    return {
        rule.name: list(rule.default) if isinstance(rule.default, tuple) else rule.default
        for rule in RULES.values()
        if rule.default is not None and rule.name not in replaced
    }


def layers_of(
    config: Given | None, task: tuple[str, Given | None] | None = None, *, staged: bool = False
) -> list[Named]:
    """The layers in force, from the outermost: none as long as nobody gives one and no blueprint is
    gone by. `config` is what the run's config gives, `task` a task's key with what it gives."""
    own = None if task is None else task[1]
    if config is None and own is None and not staged:
        return []
    found: list[Named] = [(BUILT_IN, built_in(config or {}))]
    if config is not None:
        found.append((RUN, config))
    if task is not None and own is not None:
        found.append((f"task {task[0]}", own))
    return found


def stored(text: str | None) -> Given | None:
    """The layer of a task, from its column."""
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    return found


def column(given: Given | None) -> str | None:
    """A layer as the column of a task; equal for equal ones."""
    if given is None:
        return None
    return json.dumps(given, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


# -- which is the stricter -------------------------------------------------------------------


def is_looser(rule: Rule, value: Any, than: Any) -> bool:
    """Whether a value lets in what another one of the same rule does not. Lists of patterns never
    do: each layer's are judged by themselves."""
    if rule.kind == "most":
        return bool(value > than)
    if rule.kind == "least":
        return bool(value < than)
    if rule.kind == "must":
        return bool(than) and not value
    if rule.kind == "word":
        return WORDS.index(value) < WORDS.index(than)
    if rule.kind == "history":
        return HISTORIES.index(value) < HISTORIES.index(than)
    return False


def weakened(layers: Sequence[Named]) -> Iterator["Weakened"]:
    """Each value of a layer that is looser than what a layer around it says. The built-in layer is
    as the run leaves it."""
    for place, (inner, given) in enumerate(layers):
        for name, value in given.items():
            rule = RULES[name]
            around = [(outer, said[name]) for outer, said in layers[:place] if name in said]
            if not around and rule.kind == "history" and inner != RUN:
                around = [(BUILT_IN, HISTORIES[-1])]
            looser = [each for each in around if is_looser(rule, value, each[1])]
            if looser:
                yield Weakened(name, inner, value, *looser[0])


def of_stages(drawn: str | None) -> list[Named]:
    """The layers that the stages of a blueprint give, by its text."""
    stages = [] if drawn is None else json.loads(drawn)["stages"]
    return [(f"stage {each['id']}", each["policy"]) for each in stages if each.get("policy")]


class Weakened(NamedTuple):
    """A value that lets in what a layer around it does not."""

    rule: str
    layer: str
    value: Any
    outer: str
    limit: Any

    @property
    def text(self) -> str:
        return (
            f"`{self.rule}: {_shown(self.value)}` of {whose(self.layer)} is looser than"
            f" `{_shown(self.limit)}`, which {whose(self.outer)} says"
        )

    @property
    def instead(self) -> str:
        """What to do about it."""
        where = "the run's config" if self.outer in (BUILT_IN, RUN) else self.outer
        return f"leave it out, or change it in {where}: inner layers only tighten"


def loosened(outer: Sequence[Named], stages: Sequence[Named] = ()) -> list[Weakened]:
    """Every value of some layers, and of each stage within them, that is looser than one around."""
    found = [*weakened(outer)]
    for stage in stages:
        found += [each for each in weakened([*outer, stage]) if each.layer == stage[0]]
    return found


def require_tightening(outer: Sequence[Named], stages: Sequence[Named] = ()) -> None:
    """Error `constraint_weakened` where a layer lets in what one around it does not."""
    found = loosened(outer, stages)
    if found:
        raise InboxOrchError(
            "constraint_weakened",
            "; ".join(each.text for each in found[:5]),
            hint=found[0].instead,
            details={"weakened": [each._asdict() for each in found[:20]]},
        )


def whose(layer: str) -> str:
    """A layer, as a sentence names it."""
    return {BUILT_IN: "the built-in policy", RUN: "the run"}.get(layer, layer)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
