"""What a change is, and what a policy objects to: its facts are read by git on the result, in a
folder where no attribute and no setting has a say, and judged. Writes nothing.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable

from ..git import history, promised
from ..git.added import Added, added, pieces
from ..git.changes import Change, Facts
from ..git.commands import NO_ANSWER
from ..git.facts import facts_in
from ..git.failures import shown
from ..git.genuine import require_genuine
from ..git.repository import Repository
from ..git.sealed import Sealed, sealed_folder
from . import floor, secret_formats
from .hiding import hidden
from .model import MOST_PATHS, Summary
from .policy import Examined, Objection, Policy
from .rules import Evidence, Finding, judged

MOST_TEXT_BYTES = 64 * 1024 * 1024
"""So much of a diff is looked through."""
MOST_BINARY_BYTES = 64 * 1024 * 1024
"""So much of what is not text is looked through for keys."""
MOST_FINDINGS = 200
# Names of standards look like those of issues.
_ISSUE = re.compile(
    r"(?<![\w#])#[0-9]{1,9}(?!\w)|/issues/[0-9]"
    r"|(?<![\w-])(?!(?:UTF|SHA|ISO|RFC|MD|AES|CVE)-)[A-Z][A-Z0-9]{1,9}-[0-9]{1,9}(?![\w-])"
)
# What a fault of ours raises.
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
           ValueError)  # fmt: skip


_MOST_PATH_CHARS = 4096
_NO_CONTENT = (None, floor.LINK, floor.MODULE)


class Told(NamedTuple):
    """What is known of a change beside its trees: the values of the run's secrets, who wrote it,
    who cannot approve of it, and texts that will come with it, beside the messages of the commits
    between."""

    secrets: Sequence[str] = ()
    author: str | None = None
    messages: Sequence[str] = ()


class _Asked(NamedTuple):
    """What is looked for, and by which policy."""

    policy: Policy
    told: Told

    def said(self, rule: str) -> list[Any]:
        """What the layers say by a rule."""
        return [layer.given[rule] for layer in self.policy.layers if rule in layer.given]


def examine(
    repository: Repository,
    base: str,
    head: str,
    policy: Policy,
    *,
    secrets: Sequence[str] = (),
    author: str | None = None,
) -> Examined:
    """`examine_told` for what has no texts but the messages of its commits."""
    return examine_told(repository, base, head, policy, Told(secrets, author))


def examine_told(
    repository: Repository, base: str, head: str, policy: Policy, told: Told
) -> Examined:
    """Judge the change from one commit (or tree) to another, by their whole names.

    What goes wrong while it is judged is an objection that says so. Errors: `git_failed` of a git
    that gave no answer, `git_missing`, `disk_full`, `read_only`, `io_error`.
    """
    asked = _Asked(policy, told)
    try:
        promised.bring_changed(repository, base, head)
        with sealed_folder(repository) as sealed:
            evidence = _evidence(sealed, base, head, asked)
            objections = judged(policy, evidence)
            if policy.keeps_history:
                objections += _of_history(sealed, base, head, asked, objections)
        return Examined(
            _summary(evidence.facts, told.secrets),
            tuple(_shown(each, told) for each in objections),
        )
    except InboxOrchError as error:
        if error.code != "git_failed" or error.details.get("status") == NO_ANSWER:
            raise
        return unjudged(error.message, error.hint)
    except _FAULTS as error:
        return unjudged(f"{type(error).__name__}: {error}")


def unjudged(why: str, remedy: str | None = None) -> Examined:
    """A change that could not be judged, which is denied; `remedy` is what can be done about it."""
    evidence = Evidence(Facts((), 0, 0), unread=(printable(why, 500),))
    found = judged(Policy(), evidence)
    if remedy is not None:
        found = tuple(each._replace(remedy=printable(remedy, 500)) for each in found)
    return Examined(Summary(0, 0, 0, 0, ()), found)


def _summary(facts: Facts, secrets: Sequence[str]) -> Summary:
    paths = [_name(each.path, secrets) for each in facts.files[:MOST_PATHS]]
    size = sum(each.size for each in facts.files)
    return Summary(len(facts.files), facts.insertions, facts.deletions, size, tuple(paths))


def _shown(objection: Objection, told: Told) -> Objection:
    """As it is stored and shown: without secrets, and without what drives a terminal."""
    remedy = objection.remedy
    secrets = told.secrets
    if objection.outcome == "asked" and told.author is not None:
        remedy = remedy.replace("whoever wrote it", told.author)
    return objection._replace(
        paths=tuple(_plain(path, secrets) for path in objection.paths),
        text=_plain(objection.text, secrets, 1000),
        remedy=_plain(remedy, secrets),
    )


def _name(path: str, secrets: Sequence[str]) -> str:
    """A path that is stored as it is; whoever shows it takes care of what drives a terminal."""
    return shown(hidden(path, secrets))[:_MOST_PATH_CHARS]


def _plain(text: str, secrets: Sequence[str], most: int = 4096) -> str:
    return printable(hidden(text, secrets), most)


# -- what is read ----------------------------------------------------------------------------


def _evidence(sealed: Sealed, base: str, head: str, asked: _Asked) -> Evidence:
    more = asked.policy.is_more_than_the_floor
    # Git makes its diff meanwhile, which takes as long as all that is done with the facts.
    with ThreadPoolExecutor(2) as beside:
        genuine = beside.submit(require_genuine, sealed.folder, (head,), base, sealed.reading)
        text = beside.submit(added, sealed, base, head, MOST_TEXT_BYTES) if more else None
        evidence = _of_trees(sealed, base, head, genuine.result)
    if text is None:
        return evidence
    evidence = _with_text(sealed, evidence, text.result(), asked)
    evidence = _with_messages(sealed, base, head, evidence, asked)
    if asked.said("renames"):
        evidence = evidence._replace(renames=tuple(history.renames(sealed, base, head)))
    return evidence


def _of_trees(
    sealed: Sealed, base: str, head: str, sizes: Callable[[], Mapping[str, int]] = dict
) -> Evidence:
    facts = facts_in(sealed, base, head, sizes)
    return Evidence(facts, tuple(_breaches(sealed, head, facts)))


def _breaches(sealed: Sealed, head: str, facts: Facts) -> Iterator[floor.Breach]:
    """What breaks the floor. More than the change is read only where that can be."""
    new = [change for change in facts.files if change.new_mode is not None]
    for change in new:
        yield from floor.of_name(change.path)
    added_paths = [change.path for change in new if change.old_mode is None]
    links = any(floor.LINK in (change.old_mode, change.new_mode) for change in facts.files)
    if added_paths:
        yield from floor.collisions(added_paths, history.beside(sealed, head, added_paths))
    if links:
        targets = history.link_targets(sealed, history.entries(sealed, head))
        yield from floor.led_out(targets, {change.path for change in facts.files})
    modules = [change for change in new if change.new_mode == floor.MODULE]
    if any(change.old_mode != floor.MODULE for change in modules):
        declared = history.declared_modules(sealed, head)
        for change in modules:
            if floor.is_nested(change.path, change.old_mode, change.new_mode, declared):
                why = "is a repository of its own that .gitmodules does not name"
                yield floor.Breach("nested_repository", change.path, why)


def _with_text(sealed: Sealed, evidence: Evidence, text: Added, asked: _Asked) -> Evidence:
    """What is known of the lines. How much text they have is counted only where that could be too
    much."""
    files = evidence.facts.files
    unread = evidence.unread
    if not text.whole:
        unread += (f"it has {text.total} bytes of text; {MOST_TEXT_BYTES} can be read",)
    secrets = [*_secrets_in(text, asked.told.secrets), *_secret_names(files, asked)]
    secrets += _secrets_beside(sealed, files, asked.told.secrets)
    fits = len(text.diff) <= min(asked.said("max_patch_bytes"), default=0)
    ascii_only = any(asked.said("ascii_only"))
    return evidence._replace(
        text_bytes=0 if fits else text.text_bytes(),
        secrets=tuple(secrets[:MOST_FINDINGS]),
        not_ascii=tuple(_not_ascii(text, files)) if ascii_only else (),
        unread=unread,
    )


def _secrets_in(text: Added, secrets: Sequence[str]) -> Iterator[Finding]:
    if not any(secret_formats.hits(text.lines(), secrets)):
        return
    number = 0
    for start, _, kind in secret_formats.hits(text.diff, secrets):
        place = text.place(start)
        if place is not None:
            yield Finding(kind, *place)
            number += 1
        if number >= MOST_FINDINGS:
            return


def _secrets_beside(
    sealed: Sealed, files: Iterable[Change], secrets: Sequence[str]
) -> Iterator[Finding]:
    """Those in what git takes for binary; also in letters of two bytes."""
    new = {c.new_blob: c.path for c in files if c.binary and c.new_mode not in _NO_CONTENT}
    names = [name for name in new if name is not None]
    for name, content in pieces(sealed, names, MOST_BINARY_BYTES) if names else ():
        narrow = content.replace(b"\0", b"")
        kinds = dict.fromkeys(kind for _, _, kind in secret_formats.hits(narrow, secrets))
        for kind in kinds:
            yield Finding(kind, new[name], None)


def _secret_names(files: Iterable[Change], asked: _Asked) -> Iterator[Finding]:
    names = "\n".join(change.path for change in files if change.new_mode is not None)
    encoded = names.encode("utf-8", "surrogateescape")
    for _, _, kind in secret_formats.hits(encoded, asked.told.secrets):
        yield Finding(kind, "the name of a file", None)


def _not_ascii(text: Added, files: Sequence[Change]) -> Iterator[Finding]:
    for change in files:
        if change.new_mode is not None and not change.path.isascii():
            yield Finding("its name", change.path, None)
    lines = re.finditer(rb"^\+[^\n]*[\x80-\xff]", text.diff, re.MULTILINE)
    places = (text.place(found.end()) for found in lines)
    told = (Finding("added line", *place) for place in places if place is not None)
    yield from itertools.islice(told, MOST_FINDINGS)


def _with_messages(
    sealed: Sealed, base: str, head: str, evidence: Evidence, asked: _Asked
) -> Evidence:
    commits = history.commits(sealed, base, head)
    if commits is None:
        many = f"more than {history.MOST_COMMITS} commits lie between"
        return evidence._replace(unread=(*evidence.unread, many))
    texts = [(f"the message of {each.name[:12]}", each.text) for each in commits]
    texts += [("a message", text) for text in asked.told.messages]
    found = [
        Finding(kind, where, None)
        for where, text in texts
        for _, _, kind in secret_formats.hits(
            text.encode("utf-8", "surrogateescape"), asked.told.secrets
        )
    ]
    return evidence._replace(
        secrets=(*evidence.secrets, *found[:MOST_FINDINGS]),
        issue=any(_ISSUE.search(text) for _, text in texts),
    )


# -- each commit by itself -------------------------------------------------------------------


def _of_history(
    sealed: Sealed, base: str, head: str, asked: _Asked, known: Iterable[Objection]
) -> tuple[Objection, ...]:
    """What is objected to in a commit between, and not in the whole: what comes and goes again
    comes in with the history. Numbers count for the whole alone."""
    whole = {(each.rule, each.layer) for each in known}
    found: dict[tuple[str, str], Objection] = {}
    numbers = ("max_files", "max_lines", "max_patch_bytes", "min_reviewers", "issue_ref")
    layers = [
        layer._replace(given={k: v for k, v in layer.given.items() if k not in numbers})
        for layer in asked.policy.layers
    ]
    policy = Policy(tuple(layers))
    between = history.commits(sealed, base, head) or ()
    texts = history.whole_texts(sealed, [commit.name for commit in between])
    for commit, whole_text in zip(between, texts, strict=True):
        for parent in commit.parents or (history.empty_tree(sealed),):
            lines = added(sealed, parent, commit.name, MOST_TEXT_BYTES)
            evidence = _with_text(sealed, _of_trees(sealed, parent, commit.name), lines, asked)
            hits = secret_formats.hits(whole_text, asked.told.secrets)
            beside = [Finding(kind, "what is in the commit itself", None) for _, _, kind in hits]
            secrets = (*evidence.secrets, *beside[:MOST_FINDINGS])
            for each in judged(policy, evidence._replace(secrets=secrets)):
                key = (each.rule, each.layer)
                if key not in whole:
                    text = f"{each.text} (in the commit {commit.name[:12]})"
                    found.setdefault(key, each._replace(text=text))
    return tuple(found.values())
