"""Jobs of the comparison with whole processes: start-up; send, claim, done; eight at once.

Every round gives each tool its turn, so that a busy moment of the machine meets all alike. A
tool that fails or hangs is left out from then on, and its row says why.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from common import Turns, say
from results import Result, Row, as_row, median_ms, result
from tool import Refused, Tool
from tools import ANOTHERS, LIBRARIES, NO_COMMAND, tools

CYCLE = ("send", "claim", "done")


class Field:
    """The tools that still take part, and why the others do not."""

    def __init__(self, folder: Path, bin_folder: str | None) -> None:
        self.tools = tools(folder, bin_folder)
        self.out: dict[str, str] = {}
        for tool in list(self.tools.values()):
            self.attempt(tool, tool.set_up)

    def attempt(self, tool: Tool, act: Any, *arguments: Any) -> Any:
        """What `act` returns; when it is refused the tool is out, and None comes back."""
        try:
            return act(*arguments)
        except (Refused, subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
            self.out[tool.name] = f"{type(error).__name__}: {error}"[:200]
            self.tools.pop(tool.name, None)
            say(f"{tool.name} is out: {error}")
            return None

    def rows_of_the_rest(self, reason: str = NO_COMMAND) -> list[Row]:
        """Those that fell out, and the libraries, which never took part."""
        fallen = [as_row(name, cannot=f"failed: {why}") for name, why in self.out.items()]
        return fallen + [as_row(name, cannot=reason) for name in LIBRARIES]

    def commands(self, *steps: str) -> dict[str, Any]:
        """Tool -> step -> its command lines, of all that took part."""
        return {
            name: {step: tool.commands[step] for step in steps if step in tool.commands}
            for name, tool in self.tools.items()
        }


def startup(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """The least that each tool answers."""
    field, rounds = Field(folder, bin_folder), Turns(2 if quick else 21, 15)
    times: dict[str, list[float]] = {name: [] for name in ("python -c pass", *field.tools)}
    for _ in rounds:
        before = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times["python -c pass"].append(time.perf_counter() - before)
        for tool in list(field.tools.values()):
            if (timed := field.attempt(tool, tool.timed, "version")) is not None:
                times[tool.name].append(timed[0])
    rows = [as_row("python -c pass", {"ms": median_ms(times["python -c pass"])}, floor=True)]
    rows += [
        as_row(name, {"ms": median_ms(times[name])}, note=tool.notes.get("version"))
        for name, tool in field.tools.items()
    ]
    return [
        result(
            "startup",
            title="Start-up: the least that each command answers",
            did=f"Whole processes, `--version` where there is one; {rounds.done} rounds, medians.",
            unit="ms",
            columns={"ms": "ms"},
            compared=["ms"],
            rows=rows + field.rows_of_the_rest(),
            commands={"python -c pass": "python -c pass", **field.commands("version")},
            raw=times,
        )
    ]


def cycle(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """One item from its sending to its end, each step as processes of their own."""
    field, rounds = Field(folder, bin_folder), Turns(2 if quick else 21, 35)
    times: dict[str, dict[str, list[float]]] = {
        name: {step: [] for step in CYCLE} for name in field.tools
    }
    for number in rounds:
        for tool in list(field.tools.values()):
            field.attempt(tool, one_cycle, tool, times[tool.name], number)
    rows = []
    for name, tool in field.tools.items():
        values: dict[str, Any] = {
            step: median_ms(times[name][step]) for step in CYCLE if times[name][step]
        }
        notes = [f"{step}: {tool.notes[step]}" for step in CYCLE if step in tool.notes]
        notes += [f"{step}: {tool.lacks[step]}" for step in CYCLE if step in tool.lacks]
        if len(values) == len(CYCLE):
            values["all"] = sum(values.values())
        rows.append(as_row(name, values, note="; ".join(notes) or None))
    return [
        result(
            "commands",
            title="Send, claim, done as whole processes",
            did=f"One item from its sending to its end; medians of {rounds.done} rounds.",
            unit="ms",
            columns={
                "send": "send, ms",
                "claim": "claim, ms",
                "done": "done, ms",
                "all": "all, ms",
            },
            compared=["all"],
            rows=rows + field.rows_of_the_rest(),
            commands=field.commands(*CYCLE),
            raw=times,
        )
    ]


def one_cycle(tool: Tool, times: dict[str, list[float]], number: int) -> None:
    """Send where that is possible, claim, and finish."""
    if "send" not in tool.lacks:
        times["send"].append(tool.timed("send", f"key-{number}")[0])
    seconds, taken = tool.timed("claim", "worker")
    times["claim"].append(seconds)
    times["done"].append(tool.timed("done", taken, "worker")[0])


# -- eight at once -----------------------------------------------------------------------------

PROCESSES = 8


def drain(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """Eight shells at once take items and finish them, every step a process."""
    items, seconds, turn_count = (40, 1.0, 1) if quick else (2_000, 3.0, 2)
    field = Field(folder, bin_folder)
    rows = [as_row(t.name, cannot=t.lacks["drain"]) for t in field.tools.values()
            if "drain" in t.lacks]  # fmt: skip
    able = [tool for tool in field.tools.values() if "drain" not in tool.lacks]
    found: dict[str, list[list[dict[str, Any]]]] = {tool.name: [] for tool in able}
    before: dict[str, int] = {}
    for tool in able:
        field.attempt(tool, tool.fill, items)
        before[tool.name] = field.attempt(tool, tool.left) or 0
    for turn in range(turn_count):
        for tool in [tool for tool in able if tool.name in field.tools]:
            say(f"turn {turn + 1} of {turn_count}: {tool.name}")
            done = field.attempt(tool, one_turn, folder, bin_folder, tool.name, seconds)
            found[tool.name].append(done or [])
    for tool in [tool for tool in able if tool.name in field.tools]:
        gone = before[tool.name] - tool.left()
        rows.append(drained(tool, found[tool.name], gone))
    return [
        result(
            "drain-commands",
            title="Eight processes drain a queue, every step a process",
            did=(
                f"{PROCESSES} loops at once, each taking an item with a command and finishing it"
                f" with another, {turn_count} turns of {seconds:g} s, {items:,} items queued; an"
                " item counts once, however often it was handed out."
            ),
            unit="items a second",
            less_is_better=False,
            columns={
                "per_second": "items a second",
                "refused": "claims that others had",
                "duplicates": "duplicates",
                "lost": "lost",
            },
            compared=["per_second"],
            rows=rows + field.rows_of_the_rest(),
            commands={name: _commands_given(turns) for name, turns in found.items()},
            raw={name: [_counted(turn, turns) for turn in turns] for name, turns in found.items()},
        )
    ]


def one_turn(
    folder: Path, bin_folder: str | None, name: str, seconds: float
) -> list[dict[str, Any]]:
    """What each of the loops has done."""
    command = [sys.executable, __file__, name, str(folder), bin_folder or "", str(seconds)]
    loops = [
        subprocess.Popen([*command, f"w{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    try:
        answers = [loop.communicate(timeout=seconds + 60)[0] for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
    return [json.loads(answer) for answer in answers if answer]


def _commands_given(turns: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Step -> its command lines, of a loop that has finished something."""
    given = [loop["commands"] for turn in turns for loop in turn if "done" in loop["commands"]]
    return given[0] if given else {}


def _counted(turn: list[dict[str, Any]], turns: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The loops of a turn for the raw figures, with numbers of items instead of their names."""
    items = Counter(item for turn in turns for loop in turn for item in loop["items"])
    return [
        {
            "items": len(loop["items"]),
            "counted": sum(1 / items[item] for item in loop["items"]),
            **{key: loop[key] for key in ("refused", "failed", "seconds")},
        }
        for loop in turn
    ]


def drained(tool: Tool, turns: list[list[dict[str, Any]]], gone: int) -> Row:
    """The row of one tool, of whose queue so many items are gone. An item that several loops
    were given counts once: as a part for each of them."""
    loops = [loop for turn in turns for loop in turn]
    items = Counter(item for loop in loops for item in loop["items"])
    failed = [loop["failed"] for loop in loops if loop["failed"]]
    notes = [tool.notes["drain"]] if "drain" in tool.notes else []
    notes += [f"{len(failed)} loops failed, first: {failed[0]}"] if failed else []
    return as_row(
        tool.name,
        {
            "per_second": sum(
                sum(1 / items[item] for item in loop["items"]) / loop["seconds"] for loop in loops
            )
            / len(turns),
            "refused": sum(loop["refused"] for loop in loops),
            "duplicates": sum(items.values()) - len(items),
            "lost": gone - len(items),
        },
        note="; ".join(notes) or None,
    )


def loop(name: str, folder: str, bin_folder: str, seconds: str, worker: str) -> None:
    """Take and finish until the time is over; print what was done."""
    (tool,) = (t for n, t in tools(Path(folder), bin_folder or None).items() if n == name)
    items: list[str] = []
    refused, failed = 0, None
    began = time.monotonic()
    end = began + float(seconds)
    try:
        while time.monotonic() < end and (taken := tool.timed("take", worker)[1]) is not None:
            if taken == ANOTHERS:
                refused += 1
                continue
            items.append(taken[0] if isinstance(taken, tuple) else taken)
            tool.timed("done", taken, worker)
    except (Refused, OSError, ValueError, KeyError) as error:
        failed = f"{type(error).__name__}: {error}"[:200]
    took = time.monotonic() - began
    done = {"items": items, "refused": refused, "failed": failed, "seconds": took}
    commands = {step: tool.commands[step] for step in ("take", "done") if step in tool.commands}
    print(json.dumps({**done, "commands": commands}))


if __name__ == "__main__":
    loop(*sys.argv[1:])
