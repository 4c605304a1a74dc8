"""The cells of the commands about patches."""

from inbox_orch.orch.runs.config import Config
from support.matrix import NO_WAIT, Cell, Never, plain, read_while_busy
from support.orch_matrix import NO_TOKEN, Enterprise, after, reader, the_run, with_tasks
from support.runs import add_task, commit

ASKED, REFUSED = {"ask_paths": ["a.txt"]}, {"forbid_paths": ["a.txt"]}


def handed_in(project: Enterprise, policy: dict) -> None:
    """Task `a`, of which a worker has handed in a patch that this policy has judged."""
    name = project.open_run(config=Config(policy=policy))
    with project.scheduler() as scheduler:
        add_task(scheduler, scheduler.run(name), key_name="a", title="Do a", max_attempts=1)
        item = scheduler.dispatch(the_run(scheduler)).items[0]
    commit(item["worktree"], "a.txt", "text\n")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.done(item["thread"], str(token), body="done")
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))


def asked(project: Enterprise) -> None:
    """It waits for an approval."""
    handed_in(project, ASKED)


def refused(project: Enterprise) -> None:
    """It was refused."""
    handed_in(project, REFUSED)


def of_a_patch(verb: str) -> dict[str, Cell | Never]:
    """A command that reads one."""
    return {
        "ok": after(asked, "patch", verb, "a/1/1"),
        "usage": plain("patch", verb),
        "not_found": after(with_tasks("a"), "patch", verb, "a/1/1"),
        "conflict": Never("it only looks"),
        "busy": read_while_busy(after(asked, "patch", verb, "a/1/1")),
        "no_database": plain("patch", verb, "a/1/1"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    }


def said_of_a_patch(verb: str, apt, inapt, *options: str) -> dict[str, Cell | Never]:
    """A command that says something of one: what comes before that it can, and that it cannot."""
    words = ("patch", verb, "a/1/1", *options, "--agent", "boss")
    return {
        "ok": after(apt, *words),
        "usage": plain("patch", verb),
        "not_found": after(with_tasks("a"), *words),
        "conflict": after(inapt, *words),
        "busy": after(apt, *words),
        "no_database": plain(*words),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    }


CELLS: dict[str, dict[str, Cell | Never]] = {
    "patch list": {
        **reader("patch", "list"),
        "usage": plain("patch", "list", "--state", "no-such-state"),
    },
    "patch show": of_a_patch("show"),
    "patch log": of_a_patch("log"),
    "patch approve": said_of_a_patch("approve", asked, refused),
    "patch refuse": said_of_a_patch("refuse", asked, refused),
    "patch release": said_of_a_patch(
        "release", refused, asked, "--rule", "forbid_paths", "--reason", "so"
    ),
    "patch drop": said_of_a_patch("drop", refused, asked),
}
