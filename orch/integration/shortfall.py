"""What is not a plain success about an integration, as the error that tells it."""

from inbox_orch.shared.errors import InboxOrchError

from .integrate import Integrated


def failure_of(done: Integrated) -> InboxOrchError | None:
    """What is not a plain success about an integration."""
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
