"""All jobs beside what one would use instead, in one command: `script/bench` without a part.

Installs the peers into an environment of their own, runs each job in a process of its own that
may be stopped, and writes docs/benchmarks.md, its pictures and the raw figures. A job that fails
or takes too long leaves its part of the page as it was, and the exit code says so.
"""

import argparse
import contextlib
import datetime
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pages
import peers
from common import ROOT, machine, say, scratch
from results import Result
from worktrees import git_version


class Job(NamedTuple):
    """A function `act` of a module that returns results; seconds after which it is stopped."""

    module: str
    act: str
    limit_seconds: float


# The limits are for what hangs: on two cores no job takes a third of its own.
JOBS = {
    "startup": Job("job_commands", "startup", 300),
    "commands": Job("job_commands", "cycle", 300),
    "drain-commands": Job("job_commands", "drain", 400),
    "drain": Job("job_drain", "drain", 400),
    "stored": Job("job_stored", "stored", 600),
    "wake-up": Job("job_waits", "wakeup", 400),
    "idle": Job("job_waits", "idle", 500),
    "dispatch": Job("job_git", "dispatch", 500),
    "plan-import": Job("job_plans", "plans", 300),
    "tally": Job("job_tally", "tally", 300),
}


def main() -> None:
    """Do all the jobs, or those that are asked for; or be one of them."""
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; figures mean nothing")
    parser.add_argument("--only", nargs="+", choices=list(JOBS), metavar="JOB", default=list(JOBS))
    parser.add_argument("--no-peers", action="store_true", help="install and run nobody else")
    parser.add_argument("--pages", type=Path, help="write there instead of docs/")
    parser.add_argument("--be", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be:
        be(*options.be, quick=options.quick)
        return
    if options.quick and options.pages is None:
        options.pages = ROOT / "build" / "bench" / "pages"
    sys.exit(compare(options))


def compare(options: argparse.Namespace) -> int:
    """Returns the exit code: 1 when a job has no result."""
    began, failed = time.monotonic(), []
    folder = options.pages or ROOT / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    facts = facts_of(options)
    bin_folder = None if options.no_peers else peers.bin_folder()
    facts["releases"] = named_releases() if bin_folder else {}
    fence = peers.fence()
    facts["network"] = fence.said
    for number, name in enumerate(options.only, 1):
        say(f"[{number}/{len(options.only)}] {name}, {time.monotonic() - began:.0f} s so far")
        found = done(name, fence, bin_folder, quick=options.quick)
        if not found:
            failed.append(name)
        for result in found:
            pages.write(folder, result, facts)
            say(f"    {result['title']}: {pages.said(result)}")
    facts["minutes"] = (time.monotonic() - began) / 60
    if set(options.only) == set(JOBS):
        pages.replace(folder, "machine", pages.facts_text(facts))
    number, minutes = len(options.only) - len(failed), facts["minutes"]
    print(f"{folder / pages.PAGE}: {number} jobs in {minutes:.1f} minutes")
    if failed:
        print(f"no result: {', '.join(failed)}")
    return 1 if failed else 0


def facts_of(options: argparse.Namespace) -> dict[str, Any]:
    """What every file of figures says about its making."""
    words = ["script/bench", *(["--quick"] if options.quick else [])]
    return {
        "machine": machine() | {"git": git_version()},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": " ".join(words),
    }


def named_releases() -> dict[str, str]:
    """Those of the peers, without what they brought along."""
    installed = peers.releases()
    wanted = [release.split("==")[0] for release in peers.RELEASES]
    return {name: installed.get(name, "could not be installed") for name in wanted}


def done(name: str, fence: peers.Fence, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """The results of a job, done behind the fence in a process group that ends with it."""
    job = JOBS[name]
    with scratch() as folder:
        output = folder / "results.json"
        command = [*fence.words, sys.executable, __file__, *(["--quick"] if quick else [])]
        process = subprocess.Popen(
            [*command, "--be", name, bin_folder or "", str(output)],
            env={**os.environ, **fence.variables},
            stdout=sys.stderr,
            start_new_session=True,
        )
        try:
            process.wait(job.limit_seconds)
        except subprocess.TimeoutExpired:
            say(f"{name} is not done after {job.limit_seconds:g} s, and is stopped")
        finally:
            # Also what a failed job has left running.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not output.exists():
            return []
        found: list[Result] = json.loads(output.read_text(encoding="utf-8"))
        return found


def be(name: str, bin_folder: str, output: str, *, quick: bool) -> None:
    """Do a job, and store its results."""
    job = JOBS[name]
    act = getattr(importlib.import_module(job.module), job.act)
    place = Path(output).parent / "place"
    place.mkdir()
    found = act(place, bin_folder or None, quick=quick)
    unfinished = Path(f"{output}.new")
    unfinished.write_text(json.dumps(found), encoding="utf-8")
    unfinished.rename(output)


if __name__ == "__main__":
    main()
