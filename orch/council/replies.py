"""What a reviewer has sent, as a reply or as the reasons why it is none."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .extracting import objects_in
from .model import Decision, DecisionVote, Item, Link, Reply, Vote
from .plain import has_lines_in_form, read_plain
from .refusals import is_refusal, tells_of_failure

_ENVELOPE = ("council_id", "round", "brief_sha256")
_MOST_ERRORS = 20


class Expected(NamedTuple):
    """What a reply must belong to. `anchors` are the places that the brief has; what was checked
    must be one of them to count as looked at."""

    council_id: str
    round: int
    brief_sha256: str
    decisions: tuple[Decision, ...] = ()
    anchors: Collection[str] = ()


class Read(NamedTuple):
    """`state` is `valid`, `abstained`, `declined`, `empty` or `invalid`; only the first has a
    reply. `errors` say what to mend: line and column for syntax, a JSON pointer for shape."""

    state: str
    reply: Reply | None = None
    errors: tuple[str, ...] = ()


class BallotRead(NamedTuple):
    """The votes of one reviewer, or why they cannot be read."""

    votes: tuple[Vote, ...] | None
    errors: tuple[str, ...] = ()


def read(raw: str | bytes, *, reviewer: str, expected: Expected) -> Read:
    """Read one reply. Nothing is guessed: what is not surely a reply is `invalid`."""
    from .shapes import REPLY_SCHEMA

    text = _decoded(raw)
    if isinstance(text, _Trouble):
        return Read("invalid", None, text.errors)
    if not text.strip():
        return Read("empty", None, ("there is nothing in it",))
    found = objects_in(text)
    candidates = [value for value in found.objects if _is_of(value, REPLY_SCHEMA, "verdict")]
    if candidates:
        return _read_object(candidates, reviewer, expected)
    if has_lines_in_form(text) and REPLY_SCHEMA not in text and '"recommendations"' not in text:
        return _read_prose(text, reviewer, expected)  # braces in it are examples
    if found.trouble is not None:
        return Read("invalid", None, (found.trouble,))
    if found.objects:
        return Read("invalid", None, (f"no object with the keys of {REPLY_SCHEMA}",))
    return _read_prose(text, reviewer, expected)


def _read_prose(text: str, reviewer: str, expected: Expected) -> Read:
    plain = read_plain(text, reviewer, expected.decisions)
    refused = is_refusal(text) and not has_lines_in_form(text)
    if isinstance(plain, str):
        return _declined(text) if refused else Read("invalid", None, (plain,))
    # A choice is a vote, whatever stands around it.
    if (refused and not plain.decisions) or _only_refuses(plain):
        return _declined(text)
    return Read("valid", plain)


def _declined(reason: str) -> Read:
    return Read("declined", None, (" ".join(reason.split())[:300],))


def _only_refuses(reply: Reply) -> bool:
    """Whether all that a reply holds is that it could not be written."""
    said = [f"{item.title}.\n{item.proposal}" for item in reply.items if item.keywords]
    if reply.items and len(said) < len(reply.items):
        return False
    if not said and reply.no_recommendations_because is not None:
        said = [reply.no_recommendations_because]
    return bool(said) and not reply.decisions and all(map(tells_of_failure, said))


def read_ballot(
    raw: str | bytes,
    *,
    reviewer: str,
    expected: Expected,
    labels: Mapping[str, str],
    own_items: Collection[str],
) -> BallotRead:
    """Read one ballot. `labels` maps each label to the smallest item of its group; `own_items`
    are the ids of what the reviewer itself has raised."""
    from .shapes import BALLOT_SCHEMA, Ballot

    text = _decoded(raw)
    if isinstance(text, _Trouble):
        return BallotRead(None, text.errors)
    found = objects_in(text)
    candidates = [value for value in found.objects if _is_of(value, BALLOT_SCHEMA, "votes")]
    chosen = _the_one(candidates, expected)
    if isinstance(chosen, _Trouble):
        trouble = (found.trouble,) if found.trouble and not candidates else chosen.errors
        return BallotRead(None, trouble)
    model = _validated(Ballot, chosen)
    if isinstance(model, _Trouble):
        return BallotRead(None, model.errors)
    targets = {**labels, **{item: item for item in own_items}}
    targets |= {item.split("/", 1)[1]: item for item in own_items}
    votes, errors = [], []
    for number, vote in enumerate(model.votes):
        if vote.ref not in labels:
            errors.append(f"/votes/{number}/ref: there is no {vote.ref[:60]!r} on this ballot")
        elif vote.same_as is not None and vote.same_as not in targets:
            errors.append(f"/votes/{number}/same_as: there is no {vote.same_as[:60]!r}")
        else:
            same = None if vote.same_as is None else targets[vote.same_as]
            votes.append(Vote(reviewer, labels[vote.ref], vote.vote, same, vote.why))
    twice = [f"/votes: {ref!r} twice" for ref in _twice([v.ref for v in model.votes])]
    if errors or twice:
        return BallotRead(None, tuple(errors + twice)[:_MOST_ERRORS])
    return BallotRead(tuple(votes))


def reply_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a reply."""
    from .shapes import Reply as ReplyShape

    return ReplyShape.model_json_schema(by_alias=True)


def ballot_schema() -> dict[str, Any]:
    """The JSON Schema of an answer in the second round."""
    from .shapes import Ballot

    return Ballot.model_json_schema(by_alias=True)


class _Trouble(NamedTuple):
    errors: tuple[str, ...]


def _decoded(raw: str | bytes) -> str | _Trouble:
    from .shapes import MOST_BYTES

    size = len(raw) if isinstance(raw, bytes) else len(raw.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        return _Trouble((f"it has {size} bytes, more than {MOST_BYTES}",))
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _Trouble((f"it is not UTF-8: byte {error.start}",))


def _is_of(value: Mapping[str, Any], schema: str, telling: str) -> bool:
    """Whether an object wants to be such a reply, and is no example or log line by the way."""
    if "schema" in value:
        return bool(value["schema"] == schema)
    return telling in value and any(name in value for name in _ENVELOPE)


def _the_one(candidates: Sequence[dict[str, Any]], expected: Expected) -> dict[str, Any] | _Trouble:
    """The only candidate that belongs to this council and round; others are quotations."""
    wanted = (expected.council_id, expected.round, expected.brief_sha256)
    fitting = [v for v in candidates if tuple(v.get(name) for name in _ENVELOPE) == wanted]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        return _Trouble((f"{len(fitting)} different replies in one text: send one",))
    if not candidates:
        return _Trouble(("there is no JSON object in it",))
    return _Trouble(
        tuple(
            f"/{name}: is {candidates[-1].get(name)!r}"[:120] + f", must be {value!r}"
            for name, value in zip(_ENVELOPE, wanted, strict=True)
            if candidates[-1].get(name) != value
        )
    )


def _read_object(candidates: Sequence[dict[str, Any]], reviewer: str, expected: Expected) -> Read:
    from .shapes import Reply as ReplyShape

    chosen = _the_one(candidates, expected)
    if isinstance(chosen, _Trouble):
        return Read("invalid", None, chosen.errors)
    model = _validated(ReplyShape, chosen)
    if isinstance(model, _Trouble):
        return Read("invalid", None, model.errors)
    errors = tuple(_contradictions(model))
    if errors:
        return Read("invalid", None, errors[:_MOST_ERRORS])
    reply = _reply(model, reviewer, expected)
    if reply.verdict != "abstain" and _only_refuses(reply):
        return _declined(_refusal_words(reply))
    state = "abstained" if reply.verdict == "abstain" and not reply.items else "valid"
    return Read(state, reply if state == "valid" else None, _why_abstained(reply, state))


def _refusal_words(reply: Reply) -> str:
    return reply.no_recommendations_because or "; ".join(item.title for item in reply.items)


def _why_abstained(reply: Reply, state: str) -> tuple[str, ...]:
    return (reply.no_recommendations_because or "no reason given",) if state != "valid" else ()


def _validated(shape: Any, value: dict[str, Any]) -> Any:
    """The model, or where it does not fit."""
    from pydantic import ValidationError

    try:
        return shape.model_validate(value)
    except ValidationError as error:
        return _Trouble(
            tuple(
                f"{_pointer(found['loc'])}: {found['msg']}"[:300]
                for found in error.errors(include_url=False)[:_MOST_ERRORS]
            )
        )


def _pointer(location: Sequence[Any]) -> str:
    """RFC 6901."""
    return "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in location) or "/"


def _contradictions(model: Any) -> Iterator[str]:
    """What no single field shows."""
    for twice in _twice([r.id for r in model.recommendations]):
        yield f"/recommendations: the id {twice!r} is there twice"
    if not model.recommendations and model.no_recommendations_because is None:
        yield "/no_recommendations_because: say why there are no recommendations"
    for number, recommendation in enumerate(model.recommendations):
        for place, link in enumerate(recommendation.links):
            if sum(v is not None for v in (link.same_as, link.opposes, link.depends_on)) != 1:
                yield (
                    f"/recommendations/{number}/links/{place}: give exactly one of same_as, "
                    "opposes, depends_on"
                )


def _reply(model: Any, reviewer: str, expected: Expected) -> Reply:
    warnings = [f"the key {name} is not known" for name in _unknown(model, "")]
    votes = _votes(model.decisions, expected.decisions, warnings)
    declared = {d.id: d.choices for d in expected.decisions}
    items = tuple(_item(r, reviewer, declared, warnings) for r in model.recommendations)
    if not _grounded(model.checked, expected.anchors):
        warnings.append("ungrounded: nothing that the brief has is among what was checked")
    return Reply(
        reviewer=reviewer,
        verdict=model.verdict,
        checked=tuple(model.checked),
        decisions=votes,
        items=items,
        no_recommendations_because=model.no_recommendations_because,
        strengths=tuple(model.strengths),
        questions=tuple(model.questions),
        model=model.model or _model_of(model.usage),
        usage=model.usage,
        warnings=tuple(warnings),
    )


def _item(
    model: Any, reviewer: str, declared: Mapping[str, tuple[str, ...]], warnings: list[str]
) -> Item:
    choice = model.choice_of
    if choice is not None:
        decision, _, chosen = choice.partition("=")
        if chosen not in declared.get(decision, ()):
            warnings.append(f"{model.id}: {choice} is no choice that the brief declares")
            choice = None
    links = [
        Link(relation, target if "/" in target else f"{reviewer}/{target}")
        for link in model.links
        for relation in ("same_as", "opposes", "depends_on")
        if (target := getattr(link, relation)) is not None
    ]
    return Item(
        id=f"{reviewer}/{model.id}",
        reviewer=reviewer,
        title=" ".join(model.title.split()),
        proposal=model.proposal,
        rationale=model.rationale,
        keywords=tuple(model.keywords),
        stance=model.stance,
        about=model.about,
        choice_of=choice,
        kind=model.kind,
        severity=model.severity,
        confidence=model.confidence,
        evidence=tuple(e.model_dump(exclude_none=True) for e in model.evidence),
        links=tuple(links),
    )


def _votes(
    given: Sequence[Any], declared: Sequence[Decision], warnings: list[str]
) -> tuple[DecisionVote, ...]:
    """The choices in declared decisions. What is not declared, or chosen twice, is not counted."""
    choices = {decision.id: decision.choices for decision in declared}
    votes: dict[str, DecisionVote] = {}
    for vote in given:
        if vote.decision not in choices:
            warnings.append(f"the brief declares no decision {vote.decision[:60]!r}")
        elif vote.choice not in choices[vote.decision]:
            warnings.append(f"{vote.choice[:60]!r} is no choice of {vote.decision}")
        elif vote.decision in votes:
            warnings.append(f"decision {vote.decision} is there twice: the first one counts")
        else:
            votes[vote.decision] = DecisionVote(
                vote.decision, vote.choice, vote.confidence, vote.why
            )
    return tuple(votes.values())


def _grounded(checked: Sequence[str], anchors: Collection[str]) -> bool:
    """Whether one of the things that were looked at is in the brief; without anchors in the
    brief, whether anything was."""
    if not anchors:
        return bool(checked)
    known = {anchor.casefold() for anchor in anchors}
    return any(not known.isdisjoint(_places_in(entry.casefold().strip())) for entry in checked)


def _places_in(entry: str) -> Iterator[str]:
    """What may be the anchor in an entry: all of it, or what stands before a mark in it."""
    yield entry
    yield entry.split(":", 1)[0].strip()
    for end, mark in enumerate(entry):
        if mark in " .)":
            yield entry[:end]


def _unknown(model: Any, place: str) -> Iterator[str]:
    """JSON pointers of keys that the shape does not know."""
    for name in model.__pydantic_extra__ or {}:
        yield f"{place}/{name}"[:120]
    for name in type(model).model_fields:
        value = getattr(model, name)
        for number, inner in enumerate(value if isinstance(value, list) else ()):
            if hasattr(inner, "__pydantic_extra__"):
                yield from _unknown(inner, f"{place}/{name}/{number}")


def _model_of(usage: Mapping[str, Any]) -> str | None:
    named = usage.get("model")
    return named[:100] if isinstance(named, str) and named.strip() else None


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
