"""How an integration is told: all that came of it."""

from inbox_orch.shared.shell.blocks import Block, Body, Sentence, Table

from ...integration.integrate import Integrated
from ...integration.rules import Result


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
