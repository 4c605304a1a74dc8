"""What a check came to, and what a verdict says of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.processes.endings import Ending, ending_text

MAX_TAIL_BYTES = 4 * 1024
_MOST_SHOWN = 80  # characters of a command in a sentence


class Checked(NamedTuple):
    """One check that has been run: how it ended, how many seconds it took, the last of its
    output, how many bytes that had in all, and the artifact with its head and tail; None where
    none is kept."""

    command: str
    ending: Ending
    seconds: float
    output_tail: str
    output_bytes: int
    artifact: str | None = None
    artifact_sha256: str = ""
    artifact_bytes: int = 0

    @property
    def passed(self) -> bool:
        """Whether the work may be accepted or come in, as far as this check goes."""
        return self.ending.timed_out is None and self.ending.exit_status == 0

    @property
    def sentence(self) -> str:
        """Which check it was and how it ended, on one line."""
        return ending_text(self.ending, f"`{brief_command(self.command)}`").rstrip(".")

    def with_artifact(self, name: str, sha256: str, size: int) -> "Checked":
        """Its output is kept as this artifact, and what calls for no action is there alone."""
        kept = self._replace(artifact=name, artifact_sha256=sha256, artifact_bytes=size)
        return kept._replace(output_tail="") if self.passed else kept

    def as_json(self) -> dict[str, Any]:
        facts = {
            "command": self.command,
            "passed": self.passed,
            "exit_status": self.ending.exit_status,
            "signal": self.ending.signal,
            "timed_out_seconds": self.ending.timed_out,
            "seconds": self.seconds,
            "output_tail": self.output_tail,
            "output_bytes": self.output_bytes,
        }
        if self.artifact is None:
            return facts
        return {
            **facts,
            "artifact": self.artifact,
            "artifact_sha256": self.artifact_sha256,
            "artifact_bytes": self.artifact_bytes,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Checked":
        """What `as_json` has made of one whose output is kept."""
        ending = Ending(stored["exit_status"], stored["signal"], stored["timed_out_seconds"])
        return cls(
            stored["command"],
            ending,
            stored["seconds"],
            stored["output_tail"],
            stored["output_bytes"],
            stored["artifact"],
            stored["artifact_sha256"],
            stored["artifact_bytes"],
        )


def brief_command(command: str) -> str:
    """A command on one line, cut where it is long."""
    line = " ".join(command.split())
    return line if len(line) <= _MOST_SHOWN else line[: _MOST_SHOWN - 1] + "…"


def objection(results: Sequence[Checked]) -> str | None:
    """Why work is not accepted, on one line; None when every check has passed."""
    failed = [result for result in results if not result.passed]
    return f"checks: {failed[0].sentence}" if failed else None


def report(results: Sequence[Checked]) -> str:
    """Every check with how it ended, and the last of the output of those that failed."""
    parts = []
    for result in results:
        parts.append(f"{result.sentence} ({result.seconds:.1f} s).")
        if not result.passed and result.output_tail:
            parts.append(result.output_tail)
    return "\n\n".join(parts)
