"""What each column of the database is to a purge. Pure; a test holds it to the schema."""

from collections.abc import Iterable
from typing import NamedTuple


class Table(NamedTuple):
    """A table: its key, and its columns by what they have.

    `text` is free text and `json` free JSON. `ids` have digests or ids of git, which follow what
    they stand for. `names` are what rows, folders and refs are found by, and words of ours: they
    are looked at and stay. `digested` has (column, its digest, its length or ""): the digest is
    that of what stands there.
    """

    name: str
    key: tuple[str, ...]
    text: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    digested: tuple[tuple[str, str, str], ...] = ()
    lengths: tuple[tuple[str, str], ...] = ()
    """(a digest, the length that stands beside it) of what is not in the row itself."""

    @property
    def own_keys(self) -> bool:
        """Whether plain words that name members of its JSON are ours."""
        return self.name != "message"

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that can change, without lengths."""
        texts = tuple(column for column, _, _ in self.digested)
        return tuple(dict.fromkeys((*texts, *self.text, *self.json, *self.ids)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _table(name: str, key: str, **columns: object) -> Table:
    sorted_out = {
        kind: _words(value) if isinstance(value, str) else value for kind, value in columns.items()
    }
    return Table(name, _words(key), **sorted_out)  # type: ignore[arg-type]


TABLES = (
    _table("meta", "key", names="value"),
    _table(
        "thread",
        "id",
        text="subject reason",
        json="result_schema",
        names="sender mailbox state holder",
    ),
    _table(
        "message",
        "id",
        json="payload options",
        ids="body_sha256",
        names="thread_id kind sender",
        digested=(("body", "body_sha256", "body_bytes"),),
        lengths=(("body_sha256", "body_bytes"),),
    ),
    _table("destination", "mailbox message_id"),
    _table(
        "lease",
        "thread_id epoch",
        names="token holder boot_id mailbox ended_by end_digest",
    ),
    _table(
        "artifact", "id", text="name", ids="sha256", names="thread_id",
        lengths=(("sha256", "bytes"),),
    ),
    _table("read_cursor", "agent mailbox"),
    _table("reader", "mailbox agent"),
    _table("request", "command agent key", json="response", names="digest thread_id"),
    _table(
        "event",
        "seq",
        json="data",
        names="kind actor thread_id mailbox run_id task_id attempt_id",
    ),
    _table(
        "run",
        "id",
        text="title",
        json="config",
        ids="base_commit",
        names="name state leader repository repository_identity base_ref worktree_root on_failure",
    ),
    _table(
        "task",
        "id",
        text="title body reason",
        json="checks limits policy result_schema",
        ids="accepted_head next_base",
        names="run_id key kind mailbox state accepted_attempt next_base_source blueprint hands_in",
    ),
    _table("dependency", "task_id upstream_id", names="condition"),
    _table(
        "attempt",
        "id",
        text="reason",
        json="dirty_paths details conflict",
        ids="base_commit head_commit salvage_commit",
        names="run_id task_id state ending_as mailbox thread_id branch worktree_path base_ref"
        " base_source clock stage",
    ),
    _table("intent", "number", json="data", names="run_id attempt_id kind owner_boot_id outcome"),
    _table("base_conflict", "task_id", json="heads paths"),
    _table("run_cursor", "agent run_id"),
    _table(
        "council",
        "run_id",
        text="brief",
        json="decisions",
        # By its digest replies say which brief they are to; theirs are counted still.
        names="nonce brief_sha256",
    ),
    _table("council_round", "run_id number", names="closed_by"),
    _table(
        "council_seat",
        "run_id round position",
        text="lens closing",
        json="labels",
        names="reviewer task_id",
    ),
    _table(
        "council_reply",
        "attempt_id",
        text="reason",
        json="errors",
        ids="raw_sha256",
        names="run_id task_id state source",
        digested=(("raw", "raw_sha256", "raw_bytes"),),
        lengths=(("raw_sha256", "raw_bytes"),),
    ),
    _table("council_override", "run_id number", text="text", json="items", names="kind actor"),
    _table("council_revision", "run_id number", text="cause"),
    _table(
        "council_report", "run_id name sha256", ids="sha256", names="thread_id",
        lengths=(("sha256", "bytes"),),
    ),
    _table(
        "visit",
        "attempt_id number",
        text="reason",
        json="result",
        ids="tree_before tree_after snapshot head",
        names="stage kind state mailbox thread_id worker verdict",
    ),
    _table("blueprint", "run_id id", json="text"),
    _table("gate_result", "run_id tree gate ground", json="result", ids="tree"),
    _table("surroundings", "run_id tree", json="found", ids="tree"),
    _table("kept_file", "sha256 owner kind", ids="sha256", lengths=(("sha256", "bytes"),)),
    _table("policy", "digest", ids="digest", digested=(("text", "digest", ""),)),
    _table(
        "patch",
        "id",
        text="author",
        json="facts",
        ids="base base_tree tree head text content",
        names="run_id attempt_id way replaces rollback_of",
    ),
    _table(
        "patch_entry",
        "patch_id number",
        text="reason",
        json="facts",
        ids="policy",
        names="kind outcome by",
    ),
)  # fmt: skip


_NUMBERS = {"seq", "number", "round", "position", "epoch", "message_id"}
_NUMBERED = {"message", "artifact"}


def names_of(table: Table) -> Iterable[str]:
    """The columns of a table that only are looked at: its names, and what of its key is text and
    no id."""
    numbered = ("id",) if table.name in _NUMBERED else ()
    passed = {*table.ids, *_NUMBERS, *numbered}
    return (*table.names, *(column for column in table.key if column not in passed))
