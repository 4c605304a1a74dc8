"""A scene played again and again, with what is done in it killed each time at another step: before
each that changes something, before and after each call of git. In the short form at some of these.

`sweep` takes functions apart (see `killing`), so that it runs in a process of its own (`apart`).
"""

import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from pathlib import Path

from support import killing
from support.scenes import Scene, killing_git

MOMENTS = ("step", "before", "after")
MOST_TOLD = 10


def sweep(scene: Scene, act: Callable[[], None], some: int, *, name: str = "") -> int:
    """Kill `act` at every step, or in the short form at `some`, by chance; the scene judges what
    each leaves. How many plays there were; a line on standard error says so. All failures of the
    long form are told at its end."""
    begun = time.monotonic()
    scene.prepare()
    killing.settle()
    ways, failed, killed = _ways(scene, act), [], 0
    chosen = ways if killing.KILL_EVERY == 1 else _some(ways, random.Random(name), some)
    for moment, number in chosen:
        scene.put_back()
        try:
            killed += _dies(scene, act, moment, number)
            scene.untouched()
            scene.check()
            scene.untouched()
        except Exception as error:
            error.add_note(f"{name}: {moment} {number}")
            failed.append(error)
            if killing.KILL_EVERY != 1:
                raise
    counts = [sum(moment == each for moment, _ in chosen) for each in MOMENTS]
    of_each = ", ".join(f"{count} {each}" for count, each in zip(counts, MOMENTS, strict=True))
    told = f"{name}: {len(chosen)} of {len(ways)} plays ({of_each}), {killed} killed"
    _tell(f"{told}, {len(failed)} failed, {time.monotonic() - begun:.0f} s")
    for error in failed[:MOST_TOLD]:
        traceback.print_exception(error)
    assert killed > len(chosen) * 0.9, f"{name}: {killed} of {len(chosen)} were killed"
    assert not failed, f"{name}: {len(failed)} of {len(chosen)} plays failed"
    return len(chosen)


def _some(ways: list[tuple[str, int]], chance: random.Random, some: int) -> list[tuple[str, int]]:
    """As many of each kind as there are, in turns."""
    mixed = chance.sample(ways, len(ways))
    turns = zip_longest(*([way for way in mixed if way[0] == each] for each in MOMENTS))
    return [way for turn in turns for way in turn if way is not None][:some]


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    path = os.environ.get("KILL_LOG")
    if path:
        with open(path, "a") as log:
            log.write(f"{line}\n")


def _ways(scene: Scene, act: Callable[[], None]) -> list[tuple[str, int]]:
    """Every way to die in it; it is played to its end to find them."""
    scene.put_back()
    folder = _git(scene)
    killing_git(folder, 0, "never")
    steps = killing.steps_of(partial(_with_git, act, folder))
    calls = len((folder / "count").read_text()) if (folder / "count").exists() else 0
    scene.untouched()
    scene.check()
    scene.untouched()
    found = [("step", number) for number in range(1, steps + 1)]
    return found + [(each, number) for each in MOMENTS[1:] for number in range(1, calls + 1)]


def _dies(scene: Scene, act: Callable[[], None], moment: str, number: int) -> bool:
    """Whether it was killed: what it tidies up at its end depends on what others have left."""
    step = number if moment == "step" else 0
    if not step:
        killing_git(_git(scene), number, moment)
        act = partial(_with_git, act, _git(scene))
    return killing.killed_before(step, act, changes=True)


def _git(scene: Scene) -> Path:
    return scene.folder.parent / "bin"


def _with_git(act: Callable[[], None], folder: Path) -> None:
    """In a process that was forked."""
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    try:
        act()
    except BaseException:
        traceback.print_exc()
        raise
