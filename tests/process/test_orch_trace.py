"""The trace of a run, at a collector that is there, that is not, and that hangs."""

import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inbox_orch.orch.leader import otlp, trace, tracing
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.views import spans
from inbox_orch.shared.errors import InboxOrchError
from support.collectors import Collector
from support.orch_matrix import Enterprise, the_run
from support.runs import add_task, commit
from support.timing import PATIENCE_SECONDS

with_sdk = pytest.mark.skipif(
    not tracing.is_installed(), reason="the optional part `otel` is not installed"
)


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """One that the environment names."""
    with Collector().listening() as made:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5")
        yield made


@pytest.fixture(autouse=True)
def no_settings_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a developer exports is not where this goes."""
    for name in (*tracing.VARIABLES, "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def asked(project: Enterprise, config: Config | None = None) -> Iterator[tuple[Scheduler, Run]]:
    """A run with an attempt whose worker has asked something."""
    project.open_run(config=config or Config())
    with project.scheduler() as scheduler:
        run = the_run(scheduler)
        add_task(scheduler, run, key_name="a", title="Do a")
        (item,) = scheduler.dispatch(run).items
        with project.bus("w1") as bus:
            token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
            bus.ask(item["thread"], str(token), body="which?")
        scheduler.reconcile(run)
        yield scheduler, run


def export(scheduler: Scheduler, run: Run, seconds: float = 20.0) -> int:
    """Export what is new; how many spans that were."""
    found = trace.trace(scheduler.desk, run)
    for position in otlp.export(found, seconds):
        trace.mark_exported(scheduler.desk, run, position)
    return len(found.spans)


# -- a collector that is there ----------------------------------------------------------------


@with_sdk
def test_a_drive_exports_what_it_drove(project: Enterprise, collector: Collector):
    name = project.open_run()
    with project.scheduler() as scheduler:
        run = the_run(scheduler)
        add_task(scheduler, run, key_name="a", title="Do a", checks=["true", "test -e one"])
        add_task(scheduler, run, key_name="b", title="Do b", max_attempts=1)
    worker = "case $PWD in *a-1) echo 1 > one ;; *) exit 1 ;; esac"
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=secret"}

    ended = project.orch("drive", "--worker", worker, "--slots", "2", **environment)

    assert (ended.code, ended.stderr.count(b"\n")) == (11, 2), ended
    assert Counter(collector.names) == {
        "run": 1,
        "attempt": 2,
        "provision": 2,
        "wait.queue": 2,
        "wait.verdict": 1,
        "verify": 1,
        "check": 2,
    }
    by_name = {span["name"]: span for span in collector.spans}
    root = by_name["run"]
    assert {span["trace"] for span in collector.spans} == {spans.trace_id(run.id)}
    assert root["parent"] == ""
    assert root["failed"]
    assert (root["orch.tasks.succeeded"], root["orch.tasks.failed"]) == (1, 1)
    attempts = {s["orch.task.key"]: s for s in collector.spans if s["name"] == "attempt"}
    assert {span["parent"] for span in attempts.values()} == {root["id"]}
    assert (attempts["a"]["orch.attempt.state"], attempts["a"]["failed"]) == ("succeeded", False)
    assert (attempts["b"]["orch.attempt.state"], attempts["b"]["failed"]) == ("failed", True)
    assert attempts["a"]["orch.deliveries"] == 1
    checks = [span for span in collector.spans if span["name"] == "check"]
    assert {span["parent"] for span in checks} == {attempts["a"]["id"]}
    assert sorted(span["orch.check.command"] for span in checks) == ["test -e one", "true"]
    assert all(root["begin"] <= s["begin"] <= s["end"] <= root["end"] for s in collector.spans)
    assert collector.sums[-1] == {
        ("orch.attempts", "succeeded"): 1,
        ("orch.attempts", "failed"): 1,
        ("orch.tasks", "succeeded"): 1,
        ("orch.tasks", "failed"): 1,
        ("orch.checks", "true"): 2,
    }
    assert {said["service.name"] for said in collector.resources} == {"inbox-orch"}
    assert {headers.get("api-key") for headers in collector.headers} == {"secret"}

    before = {span["id"] for span in collector.spans}
    assert len(before) == len(collector.spans)
    assert project.orch("trace", "--json").value["data"]["spans"] == 0
    again = project.orch("trace", name, "--again", "--json").value["data"]
    assert again["spans"] == len(before)
    assert again["trace"] == spans.trace_id(run.id)
    assert {span["id"] for span in collector.spans} == before


@with_sdk
def test_what_was_not_taken_is_sent_the_next_time_and_only_once(
    project: Enterprise, collector: Collector
):
    with asked(project) as (scheduler, run):
        collector.answers = 400
        with pytest.raises(InboxOrchError) as failed:
            export(scheduler, run)
        assert failed.value.code == "collector_failed"
        assert "400" in failed.value.message or "Bad Request" in failed.value.message
        collector.answers = 200
        assert export(scheduler, run) == 2
        assert export(scheduler, run) == 0
    assert collector.names == ["provision", "wait.queue"]


@with_sdk
def test_one_that_is_killed_before_it_has_noted_it_sends_the_same_spans_again(
    project: Enterprise, collector: Collector
):
    with asked(project) as (scheduler, run):
        assert len(trace.trace(scheduler.desk, run).spans) == 2
        next(otlp.export(trace.trace(scheduler.desk, run), 20.0))
        assert export(scheduler, run) == 2

    assert [s["id"] for s in collector.spans[:2]] == [s["id"] for s in collector.spans[2:]]


@with_sdk
def test_the_next_leader_goes_on_with_the_same_trace(project: Enterprise, collector: Collector):
    with asked(project) as (scheduler, run):
        export(scheduler, run)
        scheduler.answer(run, "a", body="this")
    with project.scheduler() as other:
        other.reconcile(run)
        other.cancel(run, ("a",))
        export(other, run)

    assert collector.names[:3] == ["provision", "wait.queue", "wait.answer"]
    assert len({span["id"] for span in collector.spans}) == len(collector.spans)
    assert {span["trace"] for span in collector.spans} == {spans.trace_id(run.id)}
    assert [sums["orch.questions",] for sums in collector.sums] == [1, 1], "it counts on"


@with_sdk
def test_spans_are_sent_some_hundred_at_a_time(
    project: Enterprise, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trace, "_MOST_SPANS", 1)
    with asked(project) as (scheduler, run):
        positions = list(otlp.export(trace.trace(scheduler.desk, run), 20.0))

    assert len(positions) == 3
    assert positions == sorted(positions)
    assert len(collector.headers) == 3, "two of spans, one of sums"


@with_sdk
def test_the_variables_of_opentelemetry_are_heard(
    project: Enterprise, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=t")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    with asked(project) as (scheduler, run):
        export(scheduler, run)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        with pytest.raises(InboxOrchError) as refused:
            list(otlp.export(trace.trace(scheduler.desk, run), 1.0))

    assert (collector.resources[0]["service.name"], collector.resources[0]["team"]) == ("mine", "t")
    assert collector.sums == []
    assert refused.value.code == "usage"
    assert "only http/protobuf" in refused.value.message


def test_no_secret_of_the_config_is_sent(project: Enterprise):
    config = Config(environment={"TOKEN": "s3cret-word"}, secrets=("TOKEN",))
    project.open_run(config=config)
    with project.scheduler() as scheduler:
        run = the_run(scheduler)
        add_task(scheduler, run, key_name="a", title="Use s3cret-word", worktree=False)
        (item,) = scheduler.dispatch(run).items
        with project.bus("w1") as bus:
            token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
            bus.fail(item["thread"], str(token), body="s3cret-word is wrong", fatal=True)
        scheduler.reconcile(run)
        told = trace.trace(scheduler.desk, run).spans

    (attempt,) = [span for span in told if span.name == "attempt"]
    assert attempt.attributes["orch.task.title"] == "Use ***"
    assert attempt.reason == "*** is wrong"
    assert attempt.attributes["orch.worker"] == "w1"
    assert "s3cret" not in str(told)


def test_what_workers_report_of_their_cost_is_said(project: Enterprise):
    item = project.dispatched()
    with project.bus("w1") as bus:
        token = str(bus.claim(item["thread"], mailboxes=["workers"]).lease.token)
        commit(item["worktree"], "a.txt", "a")
        usage = {"cost_usd": 0.25, "usage": {"input_tokens": 7, "output_tokens": 9}}
        bus.done(item["thread"], token, body="done", payload=json.dumps(usage))
    with project.scheduler() as scheduler:
        run = the_run(scheduler)
        scheduler.reconcile(run)
        told = trace.trace(scheduler.desk, run).spans

    (said,) = [span.attributes for span in told if span.name == "attempt"]
    assert said["orch.cost_usd"] == 0.25
    assert said["gen_ai.usage.input_tokens"] == 7
    assert said["gen_ai.usage.output_tokens"] == 9


# -- one that is not, and one that hangs ------------------------------------------------------


@contextmanager
def hanging() -> Iterator[str]:
    """The address of one that takes what comes and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def absent() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@with_sdk
def test_an_export_waits_no_longer_than_it_is_told_to(
    project: Enterprise, monkeypatch: pytest.MonkeyPatch
):
    with asked(project) as (scheduler, run), hanging() as address:
        for each in (address, absent()):
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", each)
            begun = time.monotonic()
            with pytest.raises(InboxOrchError) as failed:
                export(scheduler, run, 0.3)
            assert failed.value.code == "collector_failed"
            assert time.monotonic() - begun < 60
        assert len(trace.trace(scheduler.desk, run).spans) == 2, "all of it is sent later"


@with_sdk
@pytest.mark.parametrize("there", [False, True])
def test_a_drive_neither_waits_for_a_collector_nor_fails(project: Enterprise, there: bool):
    project.tasks("a")
    worker = ("--worker", "echo 1 > one")
    with hanging() as address:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": address if there else absent()}
        ended = project.orch("drive", *worker, OTEL_EXPORTER_OTLP_TIMEOUT="1", **variables)

    assert ended.code == 0, ended
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith("the trace is not exported for now: ")
    assert "`orch trace a-run-" in line
    with project.scheduler() as scheduler:
        assert len(trace.trace(scheduler.desk, the_run(scheduler)).spans) >= 4


# -- asking for it ----------------------------------------------------------------------------


def said_of(run: Run) -> list[str]:
    """What a person is told when this run is driven and nothing can be exported."""
    said: list[str] = []
    assert not tracing.is_wanted(run, said.append)
    return said


def test_where_the_part_is_missing_only_who_asked_in_the_config_is_told(
    project: Enterprise, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tracing, "is_installed", lambda: False)
    with asked(project, Config(otel=True)) as (_, run):
        (told,) = said_of(run)
        assert "opentelemetry-sdk>=" in told
        assert sys.executable in told
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        assert said_of(run._replace(config="{}")) == []
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        assert said_of(run) == []


def test_where_the_part_is_missing_the_command_says_how_to_install_it(project: Enterprise):
    with asked(project):
        pass
    hiding = (
        "import sys\n"
        "from inbox_orch.orch.leader import tracing\n"
        "tracing.is_installed = lambda: False\n"
        "from inbox_orch.orch.__main__ import main\n"
        "sys.argv = ['orch', 'trace', '--json']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", hiding],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (6, "extra_missing")
    assert "opentelemetry-sdk>=" in error["hint"]


def test_a_run_asks_for_it_in_its_config(project: Enterprise, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tracing, "is_installed", lambda: True)
    with asked(project, Config(otel=True)) as (_, run):
        assert tracing.is_wanted(run, pytest.fail)
        assert not tracing.is_wanted(run._replace(config="{}"), pytest.fail)
        for name in tracing.VARIABLES:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(name, "http://127.0.0.1:9")
                assert tracing.is_wanted(run._replace(config="{}"), pytest.fail)


def test_two_do_not_export_at_once(project: Enterprise):
    with asked(project) as (scheduler, run):
        lock = trace.exporting(scheduler.desk)
        lock.acquire(0)
        refused = project.orch("trace", run.name, "--wait", "0.1", "--json")
        lock.release()

    assert (refused.code, refused.error["code"]) == (5, "busy")
