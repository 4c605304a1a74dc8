"""What gates came to, for a worker to read: what counts, and little of it. Pure."""

from collections.abc import Sequence

from .results import GateResult

MOST_BYTES = 2000
_MOST_LINES_OF_OUTPUT = 12
_WORDS = {"error": "could not be judged"}


def told(results: Sequence[GateResult], most_bytes: int = MOST_BYTES) -> list[str]:
    """Lines of at most so many bytes together: how each gate stands, and below it the failures
    that count, or the last of the output where it has no more to say than that. Every gate that
    has failures gets an equal share of the room."""
    most_reason = min(160, max(24, most_bytes // max(1, len(results)) - 100))
    headings = [_heading(result, most_reason) for result in results]
    room = most_bytes - sum(_bytes(line) for line in headings)
    telling = [result for result in results if result.state in ("failed", "error")]
    share = max(0, room) // max(1, len(telling))
    lines = []
    for heading, result in zip(headings, results, strict=True):
        lines += [heading, *(_below(result, share) if result in telling else ())]
    return lines


def summary(results: Sequence[GateResult]) -> str | None:
    """What stops, on one line; None when nothing does."""
    failed = [result.gate for result in results if result.stops and result.state == "failed"]
    unknown = [result.gate for result in results if result.stops and result.state == "error"]
    parts = []
    if failed:
        parts.append(f"{', '.join(failed)} failed")
    if unknown:
        parts.append(f"{', '.join(unknown)} could not be judged")
    return "; ".join(parts) or None


def _heading(result: GateResult, most_reason: int) -> str:
    word = _WORDS.get(result.state, result.state)
    notes = []
    if result.mode == "warn" and result.state == "failed":
        notes.append("only warns")
    if result.tests is not None:
        notes.append(f"{result.tests} test{'' if result.tests == 1 else 's'}")
    if result.seconds:
        notes.append(f"{result.seconds:.1f} s")
    tail = f" ({', '.join(notes)})" if notes else ""
    reason = f": {_cut(result.reason, most_reason)}" if result.reason else ""
    return f"{result.gate} {word}{tail}{reason}"


def _below(result: GateResult, share: int) -> list[str]:
    named = [
        result.texts.get(name, name) + (f" (×{count})" if count > 1 else "")
        for name, count in result.failures.items()
    ]
    lines = _first(named, share)
    if all(name.startswith(f"{result.gate}:") for name in result.failures):
        # Little more than that it failed: its own words say why.
        lines += _last(result.output.splitlines(), share - sum(map(_bytes, lines)))
    return lines


def _first(texts: Sequence[str], share: int) -> list[str]:
    lines: list[str] = []
    room = share - 30  # for the last line
    for number, text in enumerate(texts):
        line = f"  {_cut(text, 200)}"
        room -= _bytes(line)
        if room < 0:
            return [*lines, f"  … and {len(texts) - number} more"]
        lines.append(line)
    return lines


def _last(output: Sequence[str], share: int) -> list[str]:
    lines: list[str] = []
    for text in reversed([line for line in output if line.strip()][-_MOST_LINES_OF_OUTPUT:]):
        line = f"  {_cut(text, 200)}"
        share -= _bytes(line)
        if share < 0:
            break
        lines.insert(0, line)
    return lines


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
