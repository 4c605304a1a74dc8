"""A secret that got in is taken out of rows, contents and refs of ours; what cannot be reached is
named, and nothing else is touched."""

import json
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.attempts import submit
from inbox_orch.orch.purge import database
from inbox_orch.orch.purge.found import KINDS, NOT_REACHED
from inbox_orch.orch.purge.scrub import MASK
from inbox_orch.orch.purge.tables import TABLES, names_of
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.schemas.purge import Purged, PurgePlace
from inbox_orch.shared.digests import sha256_hex
from support.buses import refused
from support.chambers import BRIEF, WAL, Chamber
from support.ledgers import all_events, dump
from support.runs import Site, add_task, commit, git

SECRET = "s3cr3t-k3y-0f-ours"


def purge(site: Site, *values: str, yes: bool = True, **options: Any) -> dict[str, Any]:
    return site.scheduler.purge(values or (SECRET,), yes=yes, **options).as_json()


def places(done: dict[str, Any], action: str | None = None) -> dict[str, int]:
    """How many of each kind, with the table of rows."""
    return {
        (item["name"] if item["kind"] == "rows" else item["kind"]): item["count"]
        for item in done["items"]
        if action in (None, item["action"])
    }


def stored(site: Site) -> bytes:
    """All that a reader of the folder of the database may come across."""
    site.office.close()
    folder = site.office.path.parent
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def is_sound(site: Site) -> None:
    assert site.scheduler.doctor(verify=True).problems == 0
    found = site.office.bus().doctor(verify=True)
    assert [check for check in found.checks if check.status == "problem"] == []


def everywhere(site: Site, tmp_path: Path):
    """A run with the secret in every kind of text."""
    run = site.open_run()
    title = f"For {SECRET}"
    add_task(site.scheduler, run, key_name="a", title=title, body=f"Use {SECRET}.", max_attempts=1)
    site.add(run, "b")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    site.worker.update(item["thread"], token, body=f"It is {SECRET}")
    attached = tmp_path / "note.txt"
    attached.write_text(SECRET)
    commit(item["worktree"], "key.txt", f"key = {SECRET}\n")
    site.worker.done(
        item["thread"],
        token,
        body=json.dumps({"said": SECRET}),
        payload=json.dumps({"said": SECRET}),
        attach=[attached],
    )
    site.scheduler.reconcile(run)
    return run, item


def test_every_column_of_the_schema_has_its_place(site: Site):
    """A new column is one of them, or this fails."""
    with site.scheduler.database.snapshot() as snapshot:
        names = snapshot.all(
            "SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
            " WHERE m.type = 'table' AND m.name NOT LIKE '%sqlite\\_%' ESCAPE '\\'"
        )
    texts = {(row[0], row[1]) for row in names if row[2] in ("TEXT", "BLOB")}
    known = {
        (table.name, column)
        for table in TABLES
        for column in (*table.columns, *names_of(table), *table.key)
    }
    assert texts - known == set()
    assert known <= {(row[0], row[1]) for row in names}


def test_what_is_published_of_places_is_what_there_is():
    kind, named = PurgePlace.model_fields["kind"], Purged.model_fields["not_reached"]
    assert get_args(kind.annotation) == KINDS
    assert get_args(get_args(named.annotation)[0]) == tuple(NOT_REACHED)


def test_looking_changes_nothing_and_says_what_would_be_done(site: Site, tmp_path: Path):
    everywhere(site, tmp_path)
    before, refs = dump(site.office.path), git(site.repository, "for-each-ref")
    done = purge(site, yes=False)
    assert not done["done"]
    found = places(done, "found")
    assert {"message", "event", "task", "artifacts"} <= found.keys()
    assert dump(site.office.path) == before
    assert git(site.repository, "for-each-ref") == refs
    assert SECRET not in json.dumps(done)


def test_it_is_gone_from_every_file_beside_the_database(site: Site, tmp_path: Path):
    everywhere(site, tmp_path)
    assert SECRET.encode() in stored(site)
    site.scheduler = site.leader()
    done = purge(site, reason=f"it was printed: {SECRET}")
    # In another process, which has no locks of SQLite's to lose; somebody has it open still.
    path = site.office.path
    live = subprocess.run(["cat", path, f"{path}-wal"], capture_output=True, check=True).stdout
    assert b"SQLite format 3" in live
    assert SECRET.encode() not in live
    site.scheduler = site.leader()
    is_sound(site)
    event = next(e for e in all_events(site.office.bus()) if e.kind == "purged")
    assert event.data["reason"] == f"it was printed: {MASK}"
    assert event.data["rows"]["message"] >= 3
    assert SECRET not in json.dumps([e.as_json() for e in all_events(site.office.bus())])
    content = stored(site)
    assert SECRET.encode() not in content
    assert sha256_hex(SECRET.encode()).encode() not in content
    assert SECRET not in json.dumps(done)


def test_what_has_nothing_of_it_stays_to_the_letter(site: Site, tmp_path: Path):
    everywhere(site, tmp_path)
    before = dump(site.office.path)
    with site.scheduler.database.snapshot() as snapshot:
        bodies = snapshot.all("SELECT body_sha256, body FROM message")
    digests = [row[0] for row in bodies if SECRET in row[1]]
    signs = [SECRET, sha256_hex(SECRET.encode()), *digests]
    purge(site)
    after = dump(site.office.path)
    # One event more, whose number the database remembers.
    own = ("event", "sqlite_sequence")
    assert {t: len(rows) for t, rows in before.items() if t not in own} == {
        t: len(rows) for t, rows in after.items() if t not in own
    }
    changed = [
        (table, old, new)
        for table, rows in before.items()
        if table != "sqlite_sequence"
        for old, new in zip(rows, after[table], strict=False)
        if old != new
    ]
    assert {table for table, _, _ in changed} == {
        *("artifact", "event", "lease", "message", "task", "thread"),
    }
    for table, old, new in changed:
        if table == "lease":
            assert [n for o, n in zip(old, new, strict=True) if o != n] == ["purged"]
        else:
            assert any(sign in repr(old) for sign in signs), (table, old, new)


def test_an_artifact_is_replaced_and_can_be_read(site: Site, tmp_path: Path):
    _, item = everywhere(site, tmp_path)
    purge(site)
    thread = site.worker.show(item["thread"])
    (artifact,) = [a for m in thread.messages for a in m.artifacts if a.name == "note.txt"]
    with site.worker.artifacts.open(artifact.sha256) as file:
        assert file.read() == MASK.encode()
    assert artifact.bytes == len(MASK)


def test_doing_it_again_does_nothing_more(site: Site, tmp_path: Path):
    everywhere(site, tmp_path)
    purge(site)
    before = dump(site.office.path)
    done = purge(site)
    assert places(done, "removed") == {}
    assert dump(site.office.path) == before


def test_in_a_live_run_leases_hold_and_the_worker_goes_on(site: Site):
    run = site.open_run()
    site.add(run, "a", body=f"Use {SECRET}.")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    commit(item["worktree"], "key.txt", SECRET)
    done = purge(site)
    kept = places(done, "kept")
    assert kept["live_attempts"] == 1
    assert kept["worktree"] == 1
    assert MASK in site.worker.show(item["thread"]).messages[0].body
    site.worker.done(item["thread"], token, body="done")
    site.scheduler.reconcile(run)
    assert site.task(run, "a").state == "succeeded"
    is_sound(site)


def refused_patch(site: Site):
    """A change that the policy has refused: it is in the chain of its attempt alone."""
    run = site.open_run(config=Config(policy={"forbid_paths": ["*.key"]}))
    site.add(run, "a", max_attempts=1)
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "ours.txt", "kept\n")
    commit(item["worktree"], "deep/a.key", f"key {SECRET}\n")
    site.done(item)
    site.scheduler.reconcile(run)
    assert site.task(run, "a").state == "failed"
    return run, site.attempts(run, "a")[0]


def reachable(site: Site) -> str:
    """All that refs lead to."""
    git(site.repository, "reflog", "expire", "--expire=now", "--all")
    git(site.repository, "gc", "--quiet", "--prune=now")
    return git(site.repository, "cat-file", "--batch-all-objects", "--batch")


def test_refs_of_ours_are_made_anew_and_yours_stay(site: Site):
    run, attempt = refused_patch(site)
    site.scheduler.cleanup(run, force=True)
    main = git(site.repository, "rev-parse", "main")
    chain = f"refs/orch/attempts/{attempt.id}"
    before = git(site.repository, "rev-parse", chain)
    found = purge(site, yes=False)
    assert places(found, "found")["refs"] >= 1
    done = purge(site)
    after = git(site.repository, "rev-parse", chain)
    assert after != before
    assert git(site.repository, "rev-parse", "main") == main
    assert git(site.repository, "show", f"{after}:deep/a.key") == f"key {MASK}"
    assert git(site.repository, "show", f"{after}:ours.txt") == "kept"
    assert git(site.repository, "for-each-ref", "refs/orch/purged") == ""
    assert any("gc --prune=now" in words for words in done["commands"])
    assert places(done, "kept").keys() == {"unreachable_objects"}
    with site.scheduler.database.snapshot() as snapshot:
        (patch,) = snapshot.all("SELECT head, tree, base FROM patch")
    assert git(site.repository, "rev-parse", f"{patch[0]}^{{tree}}") == patch[1]
    is_sound(site)
    assert SECRET not in reachable(site)
    git(site.repository, "fsck", "--strict")
    assert places(purge(site)) == {}


def test_messages_authors_and_names_of_files_are_made_anew_and_reflogs_named(site: Site):
    run = site.open_run(config=Config(policy={"forbid_paths": ["*.key"]}))
    site.add(run, "a", max_attempts=1)
    item = site.dispatch(run)["a"]
    worktree = Path(item["worktree"])
    for name in (f"{SECRET}.key", "plain.key"):
        (worktree / name).write_text("nothing\n")
        git(worktree, "add", "--all")
        author = f"--author=A {SECRET} <a@example.invalid>"
        git(worktree, "commit", "--quiet", author, "--message", f"Use {SECRET}")
    site.done(item)
    site.scheduler.reconcile(run)
    (attempt,) = site.attempts(run, "a")
    site.scheduler.cleanup(run, force=True)
    done = purge(site)
    chain = f"refs/orch/attempts/{attempt.id}"
    told = git(site.repository, "log", "--format=%an %s", chain)
    assert told.count(f"A {MASK} Use {MASK}") == 2
    assert f"{MASK}.key" in git(site.repository, "ls-tree", "-r", "--name-only", chain)
    assert SECRET not in reachable(site)
    git(site.repository, "fsck", "--strict")
    is_sound(site)
    kept = {item["kind"]: item["items"] for item in done["items"] if item["action"] == "kept"}
    assert kept.keys() <= {"unreachable_objects", "files", "names"}
    assert all("logs/" in name for name in kept.get("files", ()))


def test_a_branch_that_a_worktree_has_stays_until_that_is_gone(site: Site):
    run, attempt = refused_patch(site)
    done = purge(site)
    assert places(done, "kept")["worktree_branches"] == 1
    assert places(done, "kept")["worktree"] == 1
    assert git(site.repository, "rev-parse", str(attempt.branch)) == attempt.head_commit
    site.scheduler.cleanup(run, force=True)
    done = purge(site)
    assert places(done, "removed")["trash"] == 1
    assert SECRET not in reachable(site)


def test_what_is_on_a_branch_of_yours_is_named(site: Site):
    site.open_run()
    head = commit(site.repository, "config.txt", SECRET)
    git(site.repository, "tag", "v1")
    done = purge(site)
    kept = {item["kind"]: item["items"] for item in done["items"]}
    assert sorted(kept["your_refs"]) == ["refs/heads/main", "refs/tags/v1"]
    assert kept["commits"] == [head]
    assert git(site.repository, "show", "HEAD:config.txt") == SECRET


def test_a_name_stays_and_is_said(site: Site):
    bus = site.office.bus("w-" + SECRET)
    sent = bus.send(to="workers", subject="s", body="b")
    done = purge(site)
    named = [item for item in done["items"] if item["kind"] == "names"]
    assert {item["name"] for item in named} >= {"thread.sender", "event.actor"}
    assert SECRET not in json.dumps(done)
    assert site.worker.show(sent.thread.id).thread.sender == "w-" + SECRET
    is_sound(site)


def test_a_run_whose_name_was_made_of_it_is_said_and_told_without(site: Site):
    run = site.open_run(title=f"For {SECRET}")
    site.add(run, "a")
    commit(site.dispatch(run)["a"]["worktree"], "key.txt", SECRET)
    done = purge(site)
    assert SECRET in run.name
    assert "run.name" in {item["name"] for item in done["items"]}
    assert SECRET not in json.dumps(done)
    assert site.scheduler.run(run.id).title == f"For {MASK}"
    is_sound(site)


def test_a_call_that_is_made_again_does_not_bring_it_back(site: Site):
    bus = site.office.bus("w1")
    bus.send(to="workers", subject="s", body=SECRET, key="once")
    bus.send(to="workers", subject="s", body="harmless", key="other")
    purge(site)
    with refused("key_conflict"):
        bus.send(to="workers", subject="s", body=SECRET, key="once")
    assert bus.send(to="workers", subject="s", body="harmless", key="other").replayed


@pytest.mark.parametrize(
    "values, words",
    [
        ((), "no value"),
        (("short",), "5 bytes"),
        ((" " * 9,), "9 bytes"),
        ((SECRET, MASK), "value 2 cannot be told"),
        (("REMOVED*",), "cannot be told"),
        (("provisioned",), "is a word that events are told with"),
        (tuple(f"{SECRET}{n}" for n in range(101)), "at most 100"),
    ],
)
def test_values_that_cannot_be_looked_for_are_refused(site: Site, values, words):
    with pytest.raises(Exception, match=words) as failure:
        site.scheduler.purge(values, yes=True)
    assert failure.value.code == "usage"
    assert SECRET not in str(failure.value)


def test_copies_beside_the_database_are_named(site: Site):
    site.office.bus("w1").send(to="workers", subject="s", body=SECRET)
    copy = site.office.path.with_name("before.db")
    copy.write_bytes(b"a copy" + SECRET.encode())
    done = purge(site)
    (item,) = [item for item in done["items"] if item["kind"] == "files"]
    assert item["items"] == ["before.db"]
    assert copy.exists()


def test_a_change_that_was_handed_in_as_text_is_kept_without_it(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    edits = {"edits": [{"path": "key.txt", "content": f"key {SECRET}\n"}]}
    for key in ("a", "b"):
        submit.submit(site.scheduler.desk, run, key, json.dumps(edits).encode())
    site.scheduler.cleanup(run, force=True)
    purge(site)
    with site.scheduler.database.snapshot() as snapshot:
        texts = snapshot.all("SELECT DISTINCT text FROM patch WHERE text IS NOT NULL")
        kept = snapshot.all("SELECT DISTINCT sha256 FROM kept_file WHERE kind = 'handed_in'")
    assert [tuple(row) for row in texts] == [tuple(row) for row in kept]
    with site.scheduler.bus.artifacts.open(texts[0][0]) as file:
        assert json.load(file)["edits"][0]["content"] == f"key {MASK}\n"
    assert SECRET not in reachable(site)
    is_sound(site)


def test_replies_of_a_council_are_counted_as_before(tmp_path: Path):
    chamber = Chamber(tmp_path / "project")
    run = chamber.start(brief=f"{BRIEF}\nThe key is {SECRET}.\n")
    told = {**WAL, "proposal": f"Use {SECRET} for it, so that nothing is lost."}
    for name in ("ada", "bob"):
        chamber.answer(run, name, told)
    assert chamber.states(run)["ada"] == "valid"
    before = chamber.tally(run).as_json()["tally"]
    done = chamber.scheduler.purge([SECRET], yes=True)
    assert {place.name for place in done.places} >= {"council", "council_reply"}
    chamber.verified()
    after = chamber.tally(run).as_json()["tally"]
    assert after["council"] == before["council"]
    assert after["decisions"] == before["decisions"]
    assert len(after["groups"]) == len(before["groups"]) == 1
    chamber.answer(run, "eve", told)
    assert chamber.states(run)["eve"] == "valid"
    chamber.close()


def test_what_is_written_meanwhile_is_found_by_looking_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    other = site.office.bus("w1")
    other.send(to="w2", subject="s", body=f"first {SECRET}")
    genuine, sent = database.look, []

    def look(*arguments: Any) -> Any:
        found = genuine(*arguments)
        if len(sent) < 2:
            sent.append(other.send(to="w2", subject="s", body=f"second {SECRET}"))
        return found

    monkeypatch.setattr(database, "look", look)
    assert places(purge(site), "removed")["message"] == 3
    is_sound(site)


def test_while_somebody_reads_an_old_state_it_is_not_finished_and_says_so(site: Site):
    site.office.bus("w1").send(to="w2", subject="s", body=SECRET)
    with Bus.open(site.office.path) as other, other.database.snapshot() as snapshot:
        snapshot.one("SELECT 1 FROM event")
        with refused("busy") as failure:
            purge(site)
    assert "same command again" in str(failure.value.hint)
    purge(site)
    assert SECRET.encode() not in stored(site)
    site.scheduler = site.leader()


def test_who_why_and_what_are_told_by_one_event_of_each_change(site: Site):
    sent = site.office.bus("w1").send(to="w2", subject="s", body=SECRET)
    site.leader("boss").purge([SECRET, "not-there-at-all"], yes=True, reason="it leaked")
    (event,) = [e for e in all_events(site.office.bus()) if e.kind == "purged"]
    assert event.actor == "boss"
    assert event.data == {
        "reason": "it leaked",
        "values": 2,
        "rows": {"event": 1, "message": 1},
        "messages": [sent.message.id],
        "threads": [sent.thread.id],
    }
    purge(site)
    assert len([e for e in all_events(site.office.bus()) if e.kind == "purged"]) == 1


def test_what_a_process_is_in_the_middle_of_stays_until_it_is_over(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.dispatch(run)
    owner = site.scheduler.database.owner()
    with site.scheduler.database.transaction() as tx:
        tx.run(
            "INSERT INTO intent (run_id, kind, data, owner_boot_id, owner_process, owner_started,"
            " owner_namespace, opened_at) VALUES (?, 'verify', ?, ?, ?, ?, ?, 1)",
            (run.id, json.dumps({"said": SECRET}), *owner),
        )
    done = purge(site)
    (item,) = [item for item in done["items"] if item["name"] == "begun"]
    assert item["action"] == "kept"
    with site.scheduler.database.transaction() as tx:
        tx.run("UPDATE intent SET closed_at = 2, outcome = 'done' WHERE closed_at IS NULL")
    assert places(purge(site), "removed")["intent"] == 1
