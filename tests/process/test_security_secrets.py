"""The secrets that a run's config names stand in the config of the run and nowhere else."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.orch.runs.config import Config, Setup
from sqlite import outside
from support.orch_matrix import Enterprise
from support.runs import Site, git

GIVEN, INHERITED = "s3cret-in-the-config", "s3cret-of-the-environment"
CHATTY = 'echo "$GIVEN $INHERITED"; echo "$GIVEN $INHERITED" >&2; '


@pytest.fixture
def site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site in whose environment there is a secret, too."""
    monkeypatch.setenv("INHERITED", INHERITED)
    return site


def config(**options) -> Config:
    return Config(
        environment={"GIVEN": GIVEN, "PLAIN": "known to all"},
        secrets=("GIVEN", "INHERITED"),
        **options,
    )


def leaks(site: Site) -> list[str]:
    """Where a secret stands: columns of tables, files beside the database, exports, output."""
    found = {
        f"{table}.{column}"
        for table, rows in outside.named_contents(site.office.path).items()
        for row in rows
        for column, value in row.items()
        if is_secret(value)
    }
    for path in site.office.path.parent.rglob("*"):
        ours = path.is_file() and not path.name.startswith("bus.db")
        if ours and (is_secret(path.read_bytes()) or is_secret(str(path))):
            found.add(str(path))
    found |= {
        f"export {line['type']}"
        for line in site.office.bus("reader").export()
        if is_secret(repr(line))
    }
    found |= {f"shown {value[:60]}" for value in shown(site) if is_secret(value)}
    return sorted(found)


def shown(site: Site) -> Iterator[str]:
    """What commands show of every run and attempt."""
    yield repr(site.scheduler.doctor(verify=True))
    for run in site.scheduler.runs(closed=True):
        status = site.scheduler.status(run)
        yield repr(status.as_json())
        for row in status.rows:
            for attempt in site.attempts(run, row.standing.task.key):
                yield repr(attempt.as_json())


def is_secret(value: object) -> bool:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return GIVEN in text or INHERITED in text


def test_a_setup_that_prints_its_secrets_and_fails_leaks_none(site: Site):
    run = site.open_run(config=config(setup=Setup(CHATTY + f"echo {GIVEN}; exit 3", 60)))
    site.add(run, "a")
    (item,) = site.scheduler.dispatch(run, task_names=["a"]).items

    assert item["state"] == "provision_failed"
    assert "***" in str(item["details"])
    assert not is_secret(repr(item))
    assert leaks(site) == ["run.config"]


@pytest.mark.parametrize("ends", ["exit 0", "exit 3", "kill -9 $$"])
def test_a_check_that_prints_its_secrets_leaks_none(site: Site, ends: str):
    run = site.open_run(config=config(checks=(CHATTY + ends, "true")))
    site.add(run, "a", max_attempts=2)
    site.deliver(site.dispatch(run, "a")["a"], "a.txt")
    site.scheduler.reconcile(run)
    site.scheduler.dispatch(run)  # the next one is told what the first came to

    assert leaks(site) == ["run.config"]


def test_a_check_of_an_integration_that_prints_its_secrets_leaks_none(site: Site):
    run = site.open_run(config=config())
    site.add(run, "a")
    site.deliver(site.dispatch(run, "a")["a"], "a.txt")
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run, checks=[CHATTY + "exit 1"])

    assert not is_secret(repr(done.as_json()))
    assert leaks(site) == ["run.config"]


def test_nothing_that_git_says_of_a_secret_is_kept(site: Site):
    """A filter of the user's gets the leader's environment, and says what it likes."""
    (site.repository / ".gitattributes").write_text("*.txt filter=talking\n")
    (site.repository / "a.txt").write_text("text\n")
    git(site.repository, "add", "--all")
    git(site.repository, "commit", "--quiet", "--message", "Files")
    git(site.repository, "config", "filter.talking.smudge", "echo $INHERITED >&2; exit 1")
    git(site.repository, "config", "filter.talking.clean", "cat")
    git(site.repository, "config", "filter.talking.required", "true")
    run = site.open_run(config=config())
    site.add(run, "a")
    (item,) = site.scheduler.dispatch(run, task_names=["a"]).items

    assert item["state"] == "provision_failed"
    assert not is_secret(repr(item))
    assert leaks(site) == ["run.config"]


def test_what_a_run_and_its_plan_say_has_no_secret_even_where_a_command_has_it(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    (project.folder / "run.yaml").write_text(
        f"environment: {{GIVEN: {GIVEN}}}\nsecrets: [GIVEN]\nchecks: ['use {GIVEN}']\n"
    )
    project.orch("run", "init", "--title", "T", "--config", "run.yaml")
    project.orch("task", "add", "--task", "a", "--title", "A", "--check", f"test {GIVEN}")

    for line in (("plan", "export"), ("plan", "export", "--json"), ("run", "show")):
        text = project.orch(*line).text
        assert GIVEN not in text
        assert "use ***" in text


def test_no_command_shows_a_secret(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    (project.folder / "run.yaml").write_text(
        f"environment: {{GIVEN: {GIVEN}}}\nsecrets: [GIVEN]\nchecks: ['use $GIVEN']\n"
    )
    project.orch("run", "init", "--title", "T", "--config", "run.yaml", "--key", "k")
    project.orch("task", "add", "--task", "a", "--title", "A")
    for line in (
        ("plan", "export"),
        ("run", "show"),
        ("run", "list"),
        ("task", "show", "a"),
        ("status",),
        ("run", "init", "--title", "T", "--config", "run.yaml", "--key", "k"),
        ("run", "init", "--title", "U", "--config", "run.yaml", "--key", "k"),
        ("task", "add", "--task", "b", "--title", "B"),
        ("dispatch", "--dry-run", "--allow-dirty"),
        ("dispatch", "--allow-dirty"),
        ("attempt", "show", "a"),
        ("graph",),
    ):
        for option in ((), ("--json",)):
            ended = project.orch(*line, *option)
            assert GIVEN.encode() not in ended.stdout + ended.stderr, line


def test_no_secret_stands_on_a_command_line(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`ps` shows every user the arguments of every process. Those of other tests, too: this one
    has a secret of its own."""
    own = f"s3cret-{uuid.uuid4().hex}"
    monkeypatch.setenv("INHERITED", own)
    fifo, seen = tmp_path / "fifo", tmp_path / "seen"
    os.mkfifo(fifo)
    check = f'ps -eo args > \'{seen}\'; test -n "$GIVEN" && test -n "$INHERITED"'
    secret = config(setup=Setup(check, 60), checks=(check,))._replace(environment={"GIVEN": own})
    run = site.open_run(config=secret)
    site.add(run, "a")
    (item,) = site.scheduler.dispatch(run, task_names=["a"]).items
    assert item["state"] == "offered"
    assert "ps -eo" in seen.read_text()
    assert own not in seen.read_text()
    seen.unlink()
    site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded"}
    assert own not in seen.read_text()


def test_a_backup_has_them_where_the_database_has_them_and_is_as_private(site: Site):
    site.open_run(config=config())
    copy = site.folder / "copy.db"
    with site.office.bus("leader") as bus:
        bus.backup(copy)
    stored = outside.value(copy, "SELECT config FROM run")

    assert GIVEN in stored and INHERITED not in stored
    assert copy.stat().st_mode & 0o077 == 0
