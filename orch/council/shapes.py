"""The shape of what reviewers send, as models: the reply and the ballot.

pydantic is loaded with this module, so commands that only start or list councils leave it alone.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

REPLY_SCHEMA = "orch.council.reply/1"
BALLOT_SCHEMA = "orch.council.ballot/1"
MOST_BYTES = 128 * 1024
MOST_RECOMMENDATIONS = 25


def _whole_text(value: Any) -> Any:
    # "\ud800" in JSON is half a character, which no output can be written with.
    if isinstance(value, str) and any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise ValueError("has half a surrogate pair, which is no character")
    return value


Text = Annotated[
    str, BeforeValidator(_whole_text), StringConstraints(strip_whitespace=True, min_length=1)
]
OptionalText = Annotated[
    str, BeforeValidator(_whole_text), StringConstraints(strip_whitespace=True)
]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
Reference = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63}/)?[A-Za-z0-9._-]{1,32}$")
]
Percent = Annotated[int, Field(ge=0, le=100)]
Sentence = Annotated[Text, Field(max_length=300)]


class Shape(BaseModel):
    """Keys that are not known are kept, and warned about."""

    model_config = ConfigDict(extra="allow")


class Decision(Shape):
    """A choice in a decision that the brief declares."""

    decision: Annotated[Text, Field(max_length=32)]
    choice: Annotated[Text, Field(max_length=100)]
    confidence: Percent | None = None
    why: Annotated[OptionalText, Field(max_length=600)] = ""


class Link(Shape):
    """One relation to another recommendation: one's own by its id, another's as
    `<reviewer>/<id>`. Exactly one key."""

    same_as: Reference | None = None
    opposes: Reference | None = None
    depends_on: Reference | None = None


class Evidence(Shape):
    """Where it can be seen: a path with lines, or an address; and a short quotation."""

    path: Annotated[Text, Field(max_length=500)] | None = None
    start: Annotated[int, Field(ge=1)] | None = None
    end: Annotated[int, Field(ge=1)] | None = None
    url: Annotated[Text, Field(max_length=500)] | None = None
    quote: Annotated[OptionalText, Field(max_length=300)] | None = None


class Recommendation(Shape):
    """One change, in the imperative. `keywords` are terms of art, the mechanism first, then the
    object: they decide what is taken for the same. `stance`: do it, avoid it, keep what is."""

    id: Slug
    title: Annotated[Text, Field(min_length=8, max_length=120)]
    proposal: Annotated[Text, Field(min_length=20, max_length=1200)]
    rationale: Annotated[OptionalText, Field(max_length=1200)] = ""
    keywords: Annotated[
        list[Annotated[Text, Field(min_length=2, max_length=40)]], Field(min_length=3, max_length=6)
    ]
    stance: Literal["do", "avoid", "keep"] | None = None
    about: Annotated[Text, Field(max_length=300)] = "general"
    choice_of: Annotated[Text, Field(min_length=3, max_length=140)] | None = None
    kind: Literal["risk", "defect", "improvement", "tradeoff", "question", "idea"] = "improvement"
    severity: Literal["blocker", "major", "minor", "nit"] = "minor"
    confidence: Percent | None = None
    evidence: Annotated[list[Evidence], Field(max_length=8)] = []
    links: Annotated[list[Link], Field(max_length=25)] = []


class Envelope(Shape):
    """What ties a reply to its council."""

    council_id: str
    round: int
    brief_sha256: str


class Reply(Envelope):
    """A reviewer's whole reply."""

    schema_: Literal["orch.council.reply/1"] = Field("orch.council.reply/1", alias="schema")
    checked: Annotated[list[Sentence], Field(max_length=50)] = []
    decisions: Annotated[list[Decision], Field(max_length=50)] = []
    recommendations: Annotated[list[Recommendation], Field(max_length=MOST_RECOMMENDATIONS)] = []
    no_recommendations_because: Annotated[Text, Field(max_length=1200)] | None = None
    strengths: Annotated[list[Sentence], Field(max_length=10)] = []
    questions: Annotated[list[Sentence], Field(max_length=10)] = []
    verdict: Literal["approve", "approve_with_changes", "reject", "abstain"]
    model: Annotated[Text, Field(max_length=100)] | None = None
    usage: dict[str, Any] = {}


class BallotVote(Shape):
    """`ref` is a label of the ballot; `same_as` is another label, or one's own item."""

    ref: Annotated[Text, Field(max_length=100)]
    vote: Literal["agree", "disagree", "abstain"]
    same_as: Annotated[Text, Field(max_length=100)] | None = None
    why: Annotated[OptionalText, Field(max_length=300)] = ""


class Ballot(Envelope):
    """A reviewer's answer in the second round."""

    schema_: Literal["orch.council.ballot/1"] = Field("orch.council.ballot/1", alias="schema")
    votes: Annotated[list[BallotVote], Field(max_length=200)]
