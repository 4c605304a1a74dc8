"""Comparing the tables with what the event log folds to, thread by thread. Changes nothing."""

from collections import Counter
from typing import NamedTuple

from inbox_orch.shared.store.engine import Session
from inbox_orch.shared.store.findings import Tally

from ..domain.folding import Content, Fact, FoldedThread, fold
from ..store import care
from ..store.care import Dossier, ThreadRow

TOPICS = ("events", "threads", "leases", "messages", "artifacts")


class Findings:
    """Differences by table: the first few, and how many there are."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: dict[str, list[str]] = {topic: [] for topic in TOPICS}
        self._totals: Counter[str] = Counter()
        self.threads = 0
        self.events = 0

    def add(self, topic: str, text: str) -> None:
        """Note a difference."""
        self._totals[topic] += 1
        if len(self._items[topic]) < self._most:
            self._items[topic].append(text)

    def of(self, topic: str) -> Tally:
        """What was found about a table."""
        return Tally(tuple(self._items[topic]), self._totals[topic])


class _Expected(NamedTuple):
    name: str
    stored: object
    folded: object


def verify(tx: Session, most: int) -> Findings:
    """Fold every event and compare; at most `most` differences of each table are kept."""
    findings = Findings(most)
    for dossier in care.dossiers(tx):
        _compare(dossier, findings)
    return findings


def _compare(dossier: Dossier, findings: Findings) -> None:
    facts = []
    for event in dossier.events:
        if event.data is None:
            findings.add("events", f"event {event.seq}: its data cannot be read")
        facts.append(Fact(event.seq, event.kind, event.data or {}))
    folded = fold(facts)
    findings.events += len(facts)
    for seq, text in folded.contradictions:
        findings.add("events", f"thread {dossier.thread_id}, event {seq}: {text}")
    if dossier.thread is None:
        if folded.state is not None or dossier.leases or dossier.messages or dossier.artifacts:
            findings.add("threads", f"thread {dossier.thread_id} is missing; other rows name it")
        return
    findings.threads += 1
    _compare_thread(dossier.thread_id, dossier.thread, folded, findings)
    _compare_leases(dossier, folded, findings)
    _compare_messages(dossier, dossier.thread, folded, findings)
    _compare_artifacts(dossier, dossier.thread, folded, findings)


def _compare_thread(
    thread_id: str, thread: ThreadRow, folded: FoldedThread, findings: Findings
) -> None:
    if folded.state is None:
        findings.add("threads", f"thread {thread_id}: no event tells that it was sent")
        return
    for name, stored, told in (
        _Expected("state", thread.state, folded.state),
        _Expected("epoch", thread.epoch, folded.epoch),
        _Expected("deliveries", thread.deliveries, folded.deliveries),
        _Expected("holder", thread.holder, folded.holder),
        _Expected("max_deliveries", thread.max_deliveries, folded.max_deliveries),
        _Expected("pruned", thread.pruned, folded.pruned),
        _Expected("cancel_seen", thread.cancel_seen, folded.cancel_seen),
    ):
        if stored != told:
            findings.add("threads", f"thread {thread_id}: {name} is {stored}, events say {told}")


def _compare_leases(dossier: Dossier, folded: FoldedThread, findings: Findings) -> None:
    stored = {lease.epoch: tuple(lease) for lease in dossier.leases}
    told = {lease.epoch: tuple(lease) for lease in folded.leases}
    for epoch in sorted(stored.keys() | told.keys()):
        if stored.get(epoch) != told.get(epoch):
            findings.add(
                "leases",
                f"thread {dossier.thread_id}, epoch {epoch}: {_lease(stored.get(epoch))},"
                f" events say {_lease(told.get(epoch))}",
            )


def _lease(lease: tuple[object, ...] | None) -> str:
    if lease is None:
        return "no lease"
    _, holder, counted, ended_by = lease
    return f"{holder}, {ended_by or 'live'}{'' if counted else ', not counted'}"


def _compare_messages(
    dossier: Dossier, thread: ThreadRow, folded: FoldedThread, findings: Findings
) -> None:
    told = dict(folded.messages)
    for message in dossier.messages:
        where = f"message {message.id} of thread {dossier.thread_id}"
        said = told.pop(message.id, None)
        if said is None:
            findings.add("messages", f"{where}: no event tells of it")
        elif said != Content(message.kind, message.sha256, message.bytes):
            findings.add("messages", f"{where}: kind, digest or length is not what its event says")
        if message.actual_sha256 is None:
            if not thread.pruned:
                findings.add("messages", f"{where}: the body is gone, and was not pruned")
        elif (message.actual_sha256, message.actual_bytes) != (message.sha256, message.bytes):
            findings.add("messages", f"{where}: the body does not match its digest and length")
    for number in told:
        findings.add("messages", f"message {number} of thread {dossier.thread_id} is missing")


def _compare_artifacts(
    dossier: Dossier, thread: ThreadRow, folded: FoldedThread, findings: Findings
) -> None:
    if not dossier.artifacts and not folded.artifacts:
        return
    stored = Counter(Content(a.name, a.sha256, a.bytes) for a in dossier.artifacts)
    told = Counter(folded.artifacts)
    for artifact in (stored - told).elements():
        findings.add(
            "artifacts", f"{artifact.name!r} of thread {dossier.thread_id}: no event tells of it"
        )
    for artifact in (told - stored).elements():
        findings.add("artifacts", f"{artifact.name!r} of thread {dossier.thread_id} is missing")
    if not thread.pruned and any(a.pruned for a in dossier.artifacts):
        findings.add(
            "artifacts", f"thread {dossier.thread_id}: marked pruned, but the thread is not"
        )
