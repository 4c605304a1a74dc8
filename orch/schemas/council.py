"""The `data` of the commands about councils, and the things in it."""

from typing import Annotated, Any, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Count, Name, Seconds, Shape, Time, Ulid

from .results import Expectation
from .things import Positive, RunState

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
ItemId = Annotated[str, Field(pattern="^[^/]+/.+$", description="<reviewer>/<id in its reply>")]
PerMille = Annotated[int, Field(ge=0, le=1000)]
CouncilStatus = Literal["open", "complete", "degraded", "no_quorum"]
SeatState = Literal[
    "pending",
    "delivered",
    "leased",
    "valid",
    "valid_after_kill",
    "invalid",
    "empty",
    "declined",
    "abstained",
    "failed",
    "timed_out",
    "late",
]
Bucket = Literal["consensus", "majority", "minority", "unconfirmed"]
Severity = Literal["blocker", "major", "minor", "nit"]


class Decision(Shape):
    """What the brief asks to be decided."""

    id: str
    question: str
    choices: list[str]


class Round(Shape):
    """The first round asks for replies, the second one for votes."""

    number: Literal[1, 2]
    opened_at: Time
    deadline: Time | None
    closed_at: Time | None
    closed_by: Literal["final", "deadline"] | None


class Council(Shape):
    """A council as it stands. `id` and `name` are those of its run; `revision` is 0 before the
    first round is closed."""

    id: Ulid
    name: str
    title: str
    status: CouncilStatus
    brief_sha256: Sha256
    decisions: list[Decision]
    quorum: Positive
    seat_timeout_seconds: Seconds | None
    valid: Count
    declared: Positive
    revision: Count
    run_state: RunState
    rounds: list[Round]
    created_at: Time
    closed_at: Time | None


class Seat(Shape):
    """One reviewer in one round. `thread` is that of the newest attempt; `too_late`: why what came
    after the deadline does not count."""

    reviewer: Name
    state: SeatState
    lens: str | None
    task: Ulid
    attempts: Count
    thread: Ulid | None
    holder: Name | None
    missing_reason: str | None
    too_late: str | None
    reply_bytes: Count | None
    reply_sha256: Sha256 | None


class SeatOfRound(Seat):
    """A seat, and its round."""

    round: Literal[1, 2]


class Revision(Shape):
    """What changed the tally."""

    revision: Positive
    cause: str
    at: Time


class StoredReport(Shape):
    """A report that is an artifact of a thread."""

    name: str
    sha256: Sha256
    bytes: Count
    revision: Count
    thread: Ulid


class DatedReport(StoredReport):
    """A stored report, with the time at which it was made."""

    created_at: Time


class KeptReport(StoredReport):
    """`already`: the same bytes had been stored before."""

    already: bool


class CouncilStarted(Shape):
    """`council start`."""

    council: Council
    seats: list[Seat]
    warnings: list[str]
    replayed: bool = False


class CouncilShown(Shape):
    """`council show` and `wait`; also beside the errors of `wait`. `stale`: the database cannot
    be written here, so what has come was not taken in."""

    council: Council
    seats: list[SeatOfRound]
    revisions: list[Revision]
    reports: list[DatedReport]
    stale: bool


class CouncilList(Shape):
    """`council list`."""

    items: list[Council]
    truncated: bool
    next_cursor: None


# -- the tally -------------------------------------------------------------------------------


class TallyCouncil(Shape):
    """Which council was counted."""

    id: Ulid
    title: str
    brief_sha256: Sha256


class TallySeat(Shape):
    """A declared reviewer, and why its reply does not count if it does not. `agent` held the
    lease with which the reply was handed in."""

    reviewer: Name
    state: SeatState
    model: str | None
    verdict: Literal["approve", "approve_with_changes", "reject", "abstain"] | None
    missing_reason: str | None
    agent: Name | None
    warnings: list[str]


class DecisionCount(Shape):
    """Who chose what. `silent` are valid seats that did not choose."""

    id: str
    question: str
    choices: dict[str, list[Name]]
    silent: list[Name]


class Member(Shape):
    """One item of a group, as its reviewer wrote it."""

    item: ItemId
    title: str
    stance: Literal["do", "avoid", "keep", "unstated"]
    severity: Severity
    confidence: Annotated[int, Field(ge=0, le=100)] | None


class Merge(Shape):
    """Why two groups became one."""

    rule: str
    items: list[ItemId]
    score: PerMille
    shared: list[str]


class Pair(Shape):
    """Two items that belong to one topic and not to one group."""

    items: list[ItemId]
    score: PerMille
    shared: list[str]
    rule: str


class Contested(Pair):
    """Two items that speak against each other, the groups they are in, and what shows it."""

    groups: list[ItemId]
    evidence: str


class Group(Shape):
    """One recommendation. `id` is that of its smallest item; `bucket` is null where one seat was
    asked; `automatic_bucket` differs from it where a leader moved items. `near` are items of other
    groups that may be about the same."""

    id: ItemId
    title: str
    bucket: Bucket | None
    members: list[Member]
    raised_by: list[Name]
    endorsed_by: list[Name]
    opposed_by: list[Name]
    abstained: list[Name]
    carried: list[Name]
    bucket_after_ballot: Bucket | None
    contested: bool
    merges: list[Merge]
    adjusted_by: list[Positive]
    automatic_bucket: Bucket | None
    dismissed: bool
    notes: list[str]
    near: list[ItemId]


class Override(Shape):
    """What a leader has settled."""

    number: Positive
    kind: Literal["merge", "split", "dismiss", "note"]
    items: list[ItemId]
    reason: str
    actor: Name
    forced: bool


class Tally(Shape):
    """`orch.council.tally/1`. `digest` is the SHA-256 of the canonical JSON of all the rest."""

    schema_: Literal["orch.council.tally/1"] = Field(alias="schema")
    council: TallyCouncil
    status: CouncilStatus
    seats: list[TallySeat]
    decisions: list[DecisionCount]
    groups: list[Group]
    contested: list[Contested]
    possible_duplicates: list[Pair]
    overrides: list[Override]
    banners: list[str]
    warnings: list[str]
    parameters: dict[str, int]
    revision: Count
    digest: Sha256


class Tallied(Shape):
    """`council tally`; also beside the errors of exits 8 and 11. `explained` with --explain."""

    tally: Tally
    explained: Group | None
    stale: bool


class Reported(Shape):
    """`council report`; also beside the errors of exits 8 and 11. `artifact` is null while the
    round is open."""

    council: Council
    format: Literal["md", "json", "madr"]
    text: str
    artifact: KeptReport | None
    path: str | None
    stale: bool


class Advised(Reported):
    """`council ask`; also beside the errors of exits 8 and 11. `banners` are what the report says
    above everything else; `resumed`: the same call had opened the council before."""

    banners: list[str]
    resumed: bool
    database_created: bool


class BallotOpened(Shape):
    """`council ballot`."""

    council: Council
    seats: list[Seat]


class Settled(Shape):
    """`council group …` and `apply`. `already`: it was settled like that before."""

    council: Council
    overrides: list[Override]
    groups: list[Group]
    already: bool


class Suggestion(Pair):
    """A pair that is to be decided on: `decision` is `merge` or `keep` in what is applied."""

    titles: list[str]
    decision: Literal["merge", "keep"] | None
    reason: str | None


class Suggested(Shape):
    """`council suggest`."""

    council: Council
    items: list[Suggestion]
    truncated: bool
    next_cursor: None


class Template(Shape):
    """`council template`."""

    prompt: str
    lenses: dict[str, str]
    reply_schema: dict[str, Any]
    ballot_schema: dict[str, Any]
    parameters: dict[str, int]


class CouncilDemonstrated(Shape):
    """`council demo`; also beside the error `problems_found`. The folder is gone without --keep."""

    held: bool
    expectations: list[Expectation]
    report: str
    seconds: Seconds
    folder: str
