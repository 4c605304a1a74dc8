"""How an integration is told: what is not a plain success about it, and all that came of it."""

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Body, Sentence, Table

from ...integration.integrate import Integrated
from ...integration.rules import Result


def failure_of(done: Integrated) -> InboxOrchError | None:
    """What is not a plain success about it."""
    failed = done.failed_check
    if failed is not None:
        return InboxOrchError(
            "checks_failed",
            f"{failed.sentence}; nothing was moved",
            hint="`orch status` shows whose work it is; `orch retry TASK --force` has it done anew",
            details={"command": failed.command},
            data=done.as_json(),
        )
    said = [f"{r.piece.name} conflicts in {', '.join(r.paths[:5])}" for r in done.conflicts]
    said += [f"{r.piece.name} waits for {', '.join(r.because)}" for r in done.held_back]
    missed = [missed.sentence for missed in done.plan.missed]
    hint = "then integrate again; the rest has come in" if missed else None
    if said:
        hint = "the attempts that resolve it start from what was integrated; then integrate again"
    said += missed
    if done.onto is not None and done.not_forwarded:
        said.append(f"{done.onto['branch']} was not moved: {_why_not(done.onto)}")
        hint = done.onto["command"] or hint
    if not said:
        return None
    return InboxOrchError(
        "degraded",
        "; ".join(said),
        hint=hint,
        details={"tasks": [r.piece.task.key for r in done.conflicts]},
        data=done.as_json(),
    )


def _why_not(onto: dict[str, object]) -> str:
    if onto["state"] == "conflict":
        assert isinstance(onto["paths"], list)
        return f"it conflicts with what was integrated, in {', '.join(onto['paths'][:5])}"
    return str(onto["reason"])


def blocks_of(done: Integrated) -> list[Block]:
    rows = tuple((result.piece.name, result.state, _note(result)) for result in done.results)
    headings = ("ATTEMPT", "STATE", "NOTE")
    blocks: list[Block] = [Table(headings, rows, "nothing to integrate", (0, 1), (2,))]
    blocks += [Sentence(t.sentence, ("check", t.passed, t.command)) for t in done.checks]
    failed = done.failed_check
    if failed is not None:
        return [*blocks, Body(("output",), failed.output_tail)]
    if done.tip is not None:
        verb = "would be" if done.dry_run and done.tip != done.plan.before else "is"
        text = f"{done.plan.branch} {verb} at {done.tip}"
        blocks.append(Sentence(text, (done.plan.branch, done.tip)))
    if done.onto is not None:
        blocks.append(_onto_block(done.onto, dry_run=done.dry_run))
    if done.undispatched is not None:
        text = f"No attempt could be opened for {done.undispatched}"
        blocks.append(Sentence(text, ("undispatched", done.undispatched)))
    return blocks


def _note(result: Result) -> str:
    if result.commit is not None:
        return result.commit
    if result.because:
        return f"builds on {', '.join(result.because)}"
    offered = f"; attempt {result.offered} is to resolve it" if result.offered else ""
    return f"in {', '.join(result.paths)}{offered}"


def _onto_block(onto: dict[str, object], *, dry_run: bool) -> Sentence:
    state = str(onto["state"]).replace("_", " ")
    if dry_run:
        state = f"would be {state}"
    return Sentence(f"{onto['branch']}: {state}", (onto["branch"], onto["state"], onto["commit"]))
