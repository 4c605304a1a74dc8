"""Pruning: what goes, what stays, and that no file is ever missed."""

import os

import pytest

from inbox_orch.inbox.services import pruning
from inbox_orch.shared.store import requests
from inbox_orch.shared.store.artifacts import ArtifactStore
from support.buses import refused
from support.engines import looking

DAY = 24 * 3600


@pytest.fixture
def attach(tmp_path):
    """Makes a file to attach."""

    def make(name, content):
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return make


@pytest.fixture
def finished(leader):
    """Makes a cancelled thread with these files; its id."""

    def make(*files, **options):
        sent = leader.send(
            to="w1", subject="task", body="a body", payload='{"a": 1}', attach=files, **options
        )
        leader.cancel(sent.thread.id, body="enough")
        return sent.thread.id

    return make


def contents(office):
    return sorted(path.read_text() for path in office.path.parent.glob("artifacts/??/*"))


def test_only_threads_that_have_been_final_for_longer_are_emptied(office, leader, finished):
    old = finished()
    office.clock.advance(2 * DAY)
    new = finished()
    live = leader.send(to="w1", subject="live", body="a body").thread.id

    pruned = leader.prune(1.5)

    assert (pruned.threads, pruned.messages) == (1, 2)
    assert pruned.body_bytes == len('a body{"a": 1}enough')
    shown = leader.show(old, full=True)
    assert shown.thread.pruned
    assert [(m.body, m.payload, m.body_bytes) for m in shown.messages] == [
        (None, None, 6),
        (None, None, 6),
    ]
    for thread in (new, live):
        assert leader.show(thread).messages[0].body == "a body"
    assert leader.prune(1.5).threads == 0


def test_pruning_is_an_event_and_verify_accepts_it(office, leader, finished, attach):
    thread = finished(attach("a.txt", "content"), key="k1")
    leader.prune(0, agent="keeper")

    (event,) = [e for e in leader.watch(after="0", wait_seconds=0) if e.kind == "thread_pruned"]
    assert (event.thread_id, event.actor, event.data["from"]) == (thread, "keeper", "cancelled")
    assert not leader.doctor(verify=True).problems


def test_a_pruned_artifact_keeps_its_row_and_is_not_found(office, leader, finished, attach):
    thread = finished(attach("a.txt", "content"))
    pruned = leader.prune(0)

    assert (pruned.artifacts, pruned.files, pruned.file_bytes) == (1, 1, 7)
    assert contents(office) == []
    assert [(a.name, a.pruned) for a in leader.show(thread).artifacts] == [("a.txt", True)]
    with refused("not_found"):
        leader.artifact(thread, "a.txt")


def test_a_content_that_a_live_thread_needs_stays(office, leader, finished, attach):
    shared = attach("a.txt", "shared")
    finished(shared, attach("b.txt", "own"))
    live = leader.send(to="w1", subject="live", attach=[shared]).thread.id

    leader.prune(0)

    assert contents(office) == ["shared"]
    with leader.artifact(live, "a.txt")[1] as content:
        assert content.read() == b"shared"


def test_the_key_of_a_pruned_thread_is_free_again(leader, finished):
    finished(key="k1")
    assert leader.prune(0).keys == 1

    again = leader.send(to="w1", subject="another", key="k1")

    assert again.replayed is False


def test_a_dry_run_foretells_the_counts_and_changes_nothing(office, leader, finished, attach):
    for name in ("a", "b"):
        finished(attach(f"{name}.txt", name), attach("c.txt", "common"), key=name)
    leader.send(to="w1", subject="live", attach=[attach("a.txt", "a")])
    before = leader.latest_event(), contents(office)

    foretold = leader.prune(0, dry_run=True)

    assert (leader.latest_event(), contents(office)) == before
    assert foretold.files == 2
    assert foretold == leader.prune(0)._replace(dry_run=True)


def test_unreferenced_files_and_unfinished_copies_are_collected_once_they_are_old(
    office, leader, tmp_path
):
    store = ArtifactStore(leader.database.layout.artifacts)
    ages = {"old": 2 * 3600, "new": 600}
    for name, age in ages.items():
        stored = store.add_bytes(name, name.encode())
        os.utime(store.path(stored.sha256), (office.clock.wall_ms / 1000 - age,) * 2)
    incoming = office.path.parent / "artifacts" / "incoming"
    old, new, other = f"1-{'0' * 16}", f"1-{'1' * 16}", "2026-notes"
    for name, age in ((old, 2 * DAY), (new, DAY / 2), (other, 2 * DAY)):
        (incoming / name).write_text("part")
        os.utime(incoming / name, (office.clock.wall_ms / 1000 - age,) * 2)

    assert leader.prune(1, dry_run=True)[6:9] == (1, 3, 1)
    assert leader.prune(1)[6:9] == (1, 3, 1)
    assert contents(office) == ["new"]
    assert sorted(path.name for path in incoming.iterdir()) == [new, other]


def test_a_send_whose_copy_was_collected_is_refused_and_never_names_a_missing_file(
    office, leader, finished, attach, monkeypatch
):
    """The content is copied in, pruned by another, and only then is to be named."""
    file = attach("a.txt", "content")
    finished(file)
    sender = office.bus("sender")
    draft = sender.desk.draft

    def draft_and_let_prune(*arguments, **options):
        drafted = draft(*arguments, **options)
        leader.prune(0)
        return drafted

    with monkeypatch.context() as patched, refused("busy"):
        patched.setattr(sender.desk, "draft", draft_and_let_prune)
        sender.send(to="w1", subject="again", attach=[file])

    assert leader.list(states_wanted=["pending"]).items == ()
    sender.send(to="w1", subject="again", attach=[file])
    assert not leader.doctor(verify=True).problems


def test_a_content_that_is_named_again_before_it_is_collected_stays(
    office, leader, finished, attach, monkeypatch
):
    """Between the commit that drops the last reference and the removal behind the gate."""
    file = attach("a.txt", "content")
    finished(file)
    sender = office.bus("sender")
    collect = pruning.collect

    def send_then_collect(*arguments, **options):
        if not sender.list(states_wanted=["pending"]).items:
            sender.send(to="w1", subject="again", attach=[file])
        return collect(*arguments, **options)

    monkeypatch.setattr(pruning, "collect", send_then_collect)
    leader.prune(0)

    assert contents(office) == ["content"]
    assert not leader.doctor(verify=True).problems


def test_many_threads_are_pruned_batch_by_batch(office, leader, finished, monkeypatch):
    monkeypatch.setattr(pruning, "THREADS_AT_ONCE", 4)
    monkeypatch.setattr(pruning, "FILES_AT_ONCE", 3)
    for _ in range(10):
        finished()
    transactions = []
    begin = leader.database.transaction

    def counted(**options):
        transactions.append(options)
        return begin(**options)

    monkeypatch.setattr(leader.database, "transaction", counted)

    assert leader.prune(0).threads == 10
    # Three for the threads, and one for the keys of none.
    assert len(transactions) == 4


def test_what_was_written_on_a_pruned_thread_later_is_sound(leader, finished):
    thread = finished()
    leader.prune(0)
    leader.reply(thread, body="one more word")

    assert leader.show(thread).messages[-1].body == "one more word"
    assert not leader.doctor(verify=True).problems


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf"), 36_501])
def test_days_out_of_range_are_a_wrong_call(leader, days):
    with refused("usage"):
        leader.prune(days)


def test_what_was_written_on_a_pruned_thread_later_goes_the_next_time(
    office, leader, finished, attach
):
    thread = finished()
    leader.prune(0)
    leader.reply(thread, body="one more word", attach=[attach("a.txt", "late")], key="late")

    assert leader.prune(1).threads == 0
    office.clock.advance(2 * DAY)
    foretold = leader.prune(1, dry_run=True)
    pruned = leader.prune(1)

    assert pruned == foretold._replace(dry_run=False)
    assert (pruned.threads, pruned.messages, pruned.body_bytes) == (1, 1, 13)
    assert (pruned.artifacts, pruned.keys, pruned.files) == (1, 1, 1)
    assert leader.show(thread).messages[-1].body is None
    assert contents(office) == []
    assert leader.prune(0).threads == 0
    assert not leader.doctor(verify=True).problems


def test_keys_that_belong_to_no_thread_go_by_their_own_age(office, leader):
    def key(name):
        with leader.transaction() as tx:
            request = requests.Request("run init", "leader", name, "")
            requests.store(tx, request, "{}", tx.now.wall_ms)

    key("old")
    office.clock.advance(2 * DAY)
    key("new")

    assert leader.prune(1, dry_run=True).keys == 1
    assert leader.prune(1).keys == 1
    rows = looking(leader.database).all("SELECT key FROM request")
    assert [row[0] for row in rows] == ["new"]


@pytest.mark.parametrize("care", [lambda bus: bus.prune(0), lambda bus: bus.doctor(fix=True)])
def test_what_takes_several_commits_is_refused_inside_a_transaction(leader, care):
    with leader.transaction(), refused("usage"):
        care(leader)


def test_what_cannot_be_looked_at_or_removed_stays_and_keeps_nothing_else(
    office, leader, finished, attach, monkeypatch
):
    """As when another user has attached one of the files."""
    kept, held = (
        os.path.dirname(leader.artifacts.path(leader.show(finished(file)).artifacts[0].sha256))
        for file in (attach("a.txt", "kept"), attach("b.txt", "held"))
    )
    finished(attach("c.txt", "gone"))
    said = []
    monkeypatch.setattr(leader.database, "notice", said.append)
    listdir, unlink = os.listdir, os.unlink

    def refuse(call, folder):
        def refusing(path, *rest):
            if os.fspath(path).startswith(folder):
                raise PermissionError(13, "Permission denied", path)
            return call(path, *rest)

        return refusing

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", refuse(listdir, kept))
        incoming = os.path.join(os.path.dirname(kept), "incoming")
        patch.setattr(os, "listdir", refuse(os.listdir, incoming))
        patch.setattr(os, "unlink", refuse(unlink, kept))
        patch.setattr(os, "unlink", refuse(os.unlink, held))
        pruned = leader.prune(0)
        checks = {check.name: check for check in leader.doctor().checks}
    assert (pruned.threads, pruned.files) == (3, 1)
    assert contents(office) == ["held", "kept"]
    assert {line.partition(" stays: ")[2] for line in said} == {"Permission denied"}
    assert (checks["unreferenced_files"].status, checks["unreferenced_files"].total) == (
        "problem",
        1,
    )
    assert checks["unreferenced_files"].items == (f"{kept}: Permission denied",)
    assert checks["unfinished_copies"].items == (f"{incoming}: Permission denied",)

    office.clock.advance(DAY)
    os.utime(os.path.join(kept, os.listdir(kept)[0]), (0, 0))
    os.utime(os.path.join(held, os.listdir(held)[0]), (0, 0))
    assert leader.prune(0).files == 2
    assert contents(office) == []


@pytest.fixture
def done(office, leader):
    """Makes a thread that `w1` has done with a result; its id."""

    def make(body="the result", **options):
        sent = leader.send(to="w1", subject="task", body="a body", **options).thread
        worker = office.bus("w1")
        worker.done(sent.id, worker.claim(sent.id).lease.token, body=body)
        return sent.id

    return make


def test_a_result_that_was_not_fetched_stays_and_is_counted(office, leader, done):
    thread = done()
    for dry_run in (True, False, True):
        pruned = leader.prune(0, dry_run=dry_run)
        assert (pruned.threads, pruned.messages, pruned.unread_threads) == (0, 0, 1)
        assert pruned.unread == (thread,)

    fetched = leader.fetch()
    assert [m.body for m, _ in fetched.items] == ["the result"]
    leader.mark_read(fetched)

    assert leader.prune(0, dry_run=True).threads == 1
    assert leader.prune(0)[1:3] == (1, 2)
    assert not leader.prune(0).unread_threads


def test_a_failure_that_was_not_fetched_stays_though_others_have_read_that_mailbox(
    office, leader, finished
):
    thread = leader.send(to="w1", subject="task").thread.id
    worker = office.bus("w1")
    worker.fail(thread, worker.claim(thread).lease.token, body="why", fatal=True)
    other = office.bus("other")
    other.mark_read(other.fetch(mailboxes=["leader"]))
    gone = finished()

    assert leader.prune(0).threads == 1
    assert leader.show(thread).messages[-1].body == "why"
    assert leader.show(gone).thread.pruned


def test_what_was_not_fetched_goes_when_that_is_asked_for(leader, done):
    done()
    foretold = leader.prune(0, unread=True, dry_run=True)
    pruned = leader.prune(0, unread=True)
    assert (pruned.threads, pruned.unread_threads) == (1, 0)
    assert foretold == pruned._replace(dry_run=True)


def test_many_that_stay_hide_none_that_goes(monkeypatch, leader, done, finished):
    monkeypatch.setattr(pruning, "THREADS_AT_ONCE", 2)
    monkeypatch.setattr(pruning, "_MOST_NAMED", 3)
    kept = [done() for _ in range(5)]
    for _ in range(3):
        finished()
    pruned = leader.prune(0)
    assert (pruned.threads, pruned.unread_threads) == (3, 5)
    assert list(pruned.unread) == kept[:3]


def test_what_was_written_later_and_not_fetched_stays(office, leader, finished):
    thread = finished()
    leader.prune(0)
    office.bus("w1").reply(thread, body="one more thing")
    assert leader.prune(0).messages == 0
    assert leader.show(thread).messages[-1].body == "one more thing"
    leader.mark_read(leader.fetch())
    assert leader.prune(0).messages == 1


def test_what_a_run_has_taken_in_counts_as_fetched(site):
    run = site.open_run()
    site.add(run, "a", max_attempts=1)
    item = site.dispatch(run, "a")["a"]
    site.fail(item, fatal=True)
    leader = site.office.bus("leader")
    assert leader.prune(0).unread_threads == 1
    site.scheduler.reconcile(run)
    pruned = leader.prune(0)
    assert (pruned.threads, pruned.unread_threads) == (1, 0)
