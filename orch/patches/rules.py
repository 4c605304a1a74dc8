"""What a policy objects to in a change: a judgement of facts. Pure; `examine` reads the facts.

Each layer is judged by itself, so that no inner layer ever lets in what an outer one does not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from inbox_orch.shared.ids import counted

from ..git.changes import Change, Facts
from ..runs.policies import BUILT_IN, RULES, WORDS, Rule, whose
from . import floor
from .patterns import Patterns
from .policy import NO_NAME, Layer, Objection, Policy

FLOOR = "floor"
MOST_NAMED = 20
"""So many paths of an objection are kept."""
_OUTCOMES = {"ask": "asked", "deny": "denied"}
_EXECUTABLE, _PLAIN = "100755", "100644"


class Finding(NamedTuple):
    """Where something stands: in a line of a path (None: in the message of a commit, which `path`
    names), and what it is. Never what it says."""

    kind: str
    path: str
    line: int | None

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where} ({self.kind})"


class Evidence(NamedTuple):
    """All that is known of a change. `breaches` are those of the floor. `text_bytes` is how much
    its lines have; `renames` are pairs of an old and a new path; `issue` is whether a message names
    one; `unread` says what could not be looked at, and why."""

    facts: Facts
    breaches: tuple[floor.Breach, ...] = ()
    text_bytes: int = 0
    secrets: tuple[Finding, ...] = ()
    not_ascii: tuple[Finding, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    issue: bool = False
    unread: tuple[str, ...] = ()


def judged(policy: Policy, evidence: Evidence) -> tuple[Objection, ...]:
    """What speaks against a change, the gravest first; each rule and layer once."""
    found = [*_of_floor(evidence), *_unread(evidence)]
    for rule in RULES.values():
        found += _JUDGES[rule.kind](rule, policy.layers, evidence)
    return tuple(sorted(found, key=lambda objection: objection.outcome != "denied"))


def approvals_needed(policy: Policy) -> int:
    """How many people have to approve of what is asked for."""
    return max(1, *(int(layer.given.get("min_reviewers", 1)) for layer in policy.layers), 1)


# -- the floor -------------------------------------------------------------------------------


def _of_floor(evidence: Evidence) -> Iterator[Objection]:
    by_rule: dict[str, list[floor.Breach]] = {}
    for breach in evidence.breaches:
        by_rule.setdefault(breach.rule, []).append(breach)
    for rule, breaches in by_rule.items():
        first = breaches[0]
        more = f", and {counted(len(breaches) - 1, 'more path')}" if len(breaches) > 1 else ""
        yield Objection(
            rule,
            FLOOR,
            "denied",
            _named(breach.path for breach in breaches),
            f"{first.path} {first.why}{more}",
            "nothing allows that: hand the change in without it",
        )


def _unread(evidence: Evidence) -> Iterator[Objection]:
    for why in evidence.unread:
        text = f"it could not be judged: {why}"
        yield Objection("unjudged", FLOOR, "denied", (), text, "hand in less, or other, content")


# -- paths -----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _patterns(texts: tuple[str, ...], strict_about: str) -> Patterns:
    return Patterns(texts, strict_about)


def patterns_of(rule: Rule, layer: Layer) -> Patterns | None:
    """The patterns that a layer gives for a rule; None where it gives none."""
    if rule.name not in layer.given:
        return None
    strict_about = "allowed" if rule.kind == "allowed" else "found"
    return _patterns(tuple(layer.given[rule.name]), strict_about)


def _allowed(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    left = list(evidence.facts.files)
    for layer in layers:
        patterns = patterns_of(rule, layer)
        if patterns is None:
            continue
        inside = {change.path for change in left if patterns.found(change.path) is not None}
        outside = [change.path for change in left if change.path not in inside]
        left = [change for change in left if change.path in inside]
        if outside:
            allowed = ", ".join(patterns.texts[:5]) or "nothing"
            text = f"{_and_more(outside)} may not be changed: allowed is {allowed}"
            yield _objection(rule, layer, outside, text)


def _found(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    for layer in layers:
        patterns = patterns_of(rule, layer)
        if patterns is None:
            continue
        hits = [(change.path, patterns.found(change.path)) for change in evidence.facts.files]
        met = [(path, pattern) for path, pattern in hits if pattern is not None]
        if met:
            paths = [path for path, _ in met]
            verb = "may not be changed" if rule.broken == "deny" else "is not changed unasked"
            yield _objection(rule, layer, paths, f"{_and_more(paths)} {verb} ({met[0][1]})")


def _tests(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    changed = [change.path for change in evidence.facts.files]
    there = [change.path for change in evidence.facts.files if change.new_mode is not None]
    for layer in layers:
        for paths, tests in layer.given.get(rule.name, {}).items():
            wanted = [tests] if isinstance(tests, str) else list(tests)
            fits = _patterns((paths,), "found").found
            is_test = _patterns(tuple(wanted), "allowed").found
            about = [path for path in changed if fits(path) and not is_test(path)]
            if about and not any(is_test(path) for path in there):
                text = f"{_and_more(about)} changes, and no test of it ({', '.join(wanted)})"
                yield _objection(rule, layer, about, text)


# -- numbers ---------------------------------------------------------------------------------


def _most(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    said = [(layer.given[rule.name], place) for place, layer in enumerate(layers)
            if rule.name in layer.given]  # fmt: skip
    if not said:
        return
    limit, place = min(said)
    layer, facts = layers[place], evidence.facts
    if rule.name == "max_file_bytes":
        large = [change for change in facts.files if change.size > limit]
        if large:
            text = (
                f"{_and_more([change.path for change in large])} has {large[0].size} bytes, and at"
                f" most {limit} are let in"
            )
            yield _objection(rule, layer, [change.path for change in large], text)
        return
    has, what = {
        "max_files": (len(facts.files), "files"),
        "max_lines": (facts.insertions + facts.deletions, "lines"),
        "max_patch_bytes": (evidence.text_bytes, "bytes of text"),
    }[rule.name]
    if has > limit:
        text = f"{has} {what} are changed, and at most {limit} are let in"
        yield _objection(rule, layer, (), text)


def _least(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    said = [(layer.given[rule.name], -place) for place, layer in enumerate(layers)
            if rule.name in layer.given]  # fmt: skip
    if not said or max(said)[0] < 1 or not evidence.facts.files:
        return
    number, place = max(said)
    who = "somebody has" if number == 1 else f"{number} people have"
    yield _objection(rule, layers[-place], (), f"{who} to approve of every change")


# -- words -----------------------------------------------------------------------------------


def _is_link(change: Change) -> bool:
    return change.new_mode == floor.LINK


def _is_module(change: Change) -> bool:
    return floor.MODULE in (change.old_mode, change.new_mode)


def _has_another_mode(change: Change) -> bool:
    was, now = change.old_mode, change.new_mode
    if now == _EXECUTABLE:
        return was != _EXECUTABLE
    return was == _EXECUTABLE and now == _PLAIN


_KINDS: Mapping[str, tuple[Callable[[Change], bool], str]] = {
    "binary": (lambda c: c.binary and c.new_mode not in (None, floor.LINK), "is not text"),
    "deletes": (lambda c: c.new_mode is None, "is taken away"),
    "mode_changes": (_has_another_mode, "becomes executable, or is it no more"),
    "symlinks": (_is_link, "is a symbolic link"),
    "submodules": (_is_module, "is a submodule, or was one"),
}


def _word(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    said = [(WORDS.index(layer.given[rule.name]), -place) for place, layer in enumerate(layers)
            if rule.name in layer.given]  # fmt: skip
    if not said or max(said)[0] == 0:
        return
    strictness, place = max(said)
    outcome = _OUTCOMES[WORDS[strictness]]
    paths, text = _broken_word(rule, evidence)
    if paths:
        yield _objection(rule, layers[-place], paths, text, outcome)


def _broken_word(rule: Rule, evidence: Evidence) -> tuple[list[str], str]:
    if rule.name == "secrets":
        found = [str(finding) for finding in evidence.secrets]
        paths = [finding.path for finding in evidence.secrets]
        return paths, f"there is what looks like a secret: {_and_more(found, 3)}"
    if rule.name == "renames":
        told = [f"{old} to {new}" for old, new in evidence.renames]
        return [path for pair in evidence.renames for path in pair], f"{_and_more(told)} is renamed"
    is_it, what = _KINDS[rule.name]
    paths = [change.path for change in evidence.facts.files if is_it(change)]
    return paths, f"{_and_more(paths)} {what}"


def _must(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    layer = next((layer for layer in layers if layer.given.get(rule.name)), None)
    if layer is None or not evidence.facts.files:
        return
    if rule.name == "ascii_only" and evidence.not_ascii:
        told = _and_more([str(each) for each in evidence.not_ascii], 3)
        paths = [each.path for each in evidence.not_ascii]
        yield _objection(rule, layer, paths, f"there are other characters than ASCII: {told}")
    if rule.name == "issue_ref" and not evidence.issue:
        yield _objection(rule, layer, (), "no message of a commit names an issue, like #17")


def _none(rule: Rule, layers: Sequence[Layer], evidence: Evidence) -> Iterator[Objection]:
    return iter(())


_JUDGES: Mapping[str, Callable[[Rule, Sequence[Layer], Evidence], Iterator[Objection]]] = {
    "allowed": _allowed,
    "found": _found,
    "most": _most,
    "least": _least,
    "word": _word,
    "must": _must,
    "tests": _tests,
    "history": _none,
}


# -- in words --------------------------------------------------------------------------------


def _objection(
    rule: Rule, layer: Layer, paths: Iterable[str], text: str, outcome: str | None = None
) -> Objection:
    outcome = outcome or _OUTCOMES[str(rule.broken)]
    said = f"`{rule.name}` of {whose(layer.name)}: {text}"
    return Objection(rule.name, layer.name, outcome, _named(paths), said, remedy(rule, layer.name,
                     outcome))  # fmt: skip


def remedy(rule: Rule, layer: str, outcome: str) -> str:
    """How what breaks a rule could be allowed."""
    if outcome == "asked":
        return f"`orch patch approve {NO_NAME}` lets it in; whoever wrote it cannot"
    if layer == BUILT_IN:
        return f"`{rule.name}` under `policy` of the run's config says otherwise for all of a run"
    once = f"`orch patch release {NO_NAME} --rule {rule.name} --reason TEXT`"
    return f"change what is handed in; or {once} lets this one in"


def _named(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))[:MOST_NAMED]


def _and_more(told: Sequence[Any], most: int = 1) -> str:
    named = ", ".join(str(each) for each in told[:most])
    return named if len(told) <= most else f"{named} and {len(told) - most} more"
