"""Breaks the code in one place at a time (mutmut), and counts the breaks that no test notices.

Owns the layout that mutmut needs and the table of what came of it. Which modules are broken, and
which tests have to notice, stands in pyproject.toml under [tool.mutation].
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("inbox", "migrations", "orch", "shared")
MUTMUT = Path(sys.executable).parent / "mutmut"
# What mutmut writes down as the exit code of the tests on one broken copy.
KILLED, TIMED_OUT = (1, 3), (-24, 24, 36, 152, 255)
SURVIVED, NO_TEST, SKIPPED = 0, 33, 34
HEADINGS = f"\n{'module':<30} mutants  tried  letters  killed  timed out  missed      %"
# Of pytest: each would take longer than most of the tests, once more for every mutant.
LEFT_OUT = ("cacheprovider", "threadexception", "unraisableexception", "xdist")


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts: dict[str, dict[str, Any]] = project["tool"]["mutation"]
    options = read_options(list(parts))
    if options.show:
        raise SystemExit(show(options.show, list(parts)))
    totals = Counter[str]()
    for name in options.parts or parts:
        folder = lay_out(name, parts[name], keep=options.resume)
        if options.sample is not None:
            take_sample(folder, parts[name].get("whole", []), options.sample, options.seed)
        command = [str(MUTMUT), "run", "--max-children", str(options.processes)]
        done = subprocess.run(command, cwd=folder)
        if done.returncode:
            raise SystemExit(f"script/mutate: mutmut gave up on {name}: exit {done.returncode}")
        totals += report(name, folder)
    print_row("all", totals)


def read_options(parts: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/mutate", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(parts)}")
    parser.add_argument("--processes", type=int, default=2, help="at once (default 2)")
    parser.add_argument("--resume", action="store_true", help="keep what an earlier run found out")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of each part, by chance")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default 1)")
    parser.add_argument("--show", metavar="MUTANT", help="print what this one breaks, and stop")
    options = parser.parse_args()
    if unknown := [name for name in options.parts if name not in parts]:
        parser.error(f"no part {unknown[0]}; there are {', '.join(parts)}")
    return options


def lay_out(name: str, part: dict[str, Any], *, keep: bool) -> Path:
    """A copy in which the package has its place; mutmut works beside it, in `mutants`."""
    folder = ROOT / "build" / "mutation" / name
    if folder.exists() and not keep:
        shutil.rmtree(folder)
    shutil.rmtree(folder / "tests", ignore_errors=True)
    shutil.rmtree(folder / "mutants" / "tests", ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for source in SOURCES:
        # Times are kept: mutmut makes anew only what has changed since.
        shutil.copytree(
            ROOT / source, folder / "inbox_orch" / source, ignore=ignored, dirs_exist_ok=True
        )
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignored)
    settings = {
        "source_paths": ["inbox_orch"],
        "only_mutate": [f"inbox_orch/{module}" for module in part["modules"]],
        "pytest_add_cli_args": [f"-pno:{plugin}" for plugin in LEFT_OUT] + part.get("options", []),
        "pytest_add_cli_args_test_selection": part["tests"],
        "use_git_change_detection": False,
    }
    written = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(f"{text}\n[tool.mutmut]\n{written}", encoding="utf-8")
    return folder


def take_sample(folder: Path, whole: list[str], number: int, seed: int) -> None:
    """Skip all mutants but `number` of them, and those of the modules that are taken whole."""
    # It makes the mutants, looks which tests meet them, and stops, since it has none of that name.
    subprocess.run([str(MUTMUT), "run", "none-of-this-name"], cwd=folder, capture_output=True)
    found = {m: names for m, names in results(folder) if m not in whole}
    every = sorted(name for names in found.values() for name in names)
    chosen = set(random.Random(seed).sample(every, min(number, len(every))))
    for module, names in found.items():
        path = meta_path(folder, module)
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored["exit_code_by_key"] = {
            name: code if name in chosen else SKIPPED for name, code in names.items()
        }
        path.write_text(json.dumps(stored), encoding="utf-8")


def meta_path(folder: Path, module: str) -> Path:
    return folder / "mutants" / "inbox_orch" / f"{module}.meta"


def report(name: str, folder: Path) -> Counter[str]:
    """Print a row for each module, and every mutant that was not noticed."""
    totals = Counter[str]()
    missed: list[str] = []
    print(HEADINGS)
    for module, found in results(folder):
        counts = Counter({"mutants": len(found)})
        for mutant, code in found.items():
            outcome = outcome_of(code)
            if outcome == "survived" and changes_letters_alone(folder, mutant):
                outcome = "letters"
            counts[outcome] += 1
            if outcome in ("letters", "survived", "no test", "unknown"):
                missed.append(f"{mutant}: {outcome}")
        print_row(module, counts)
        totals += counts
    print_row(name, totals)
    (folder / "survivors.txt").write_text("".join(f"{line}\n" for line in missed))
    print(f"those that nothing noticed: {(folder / 'survivors.txt').relative_to(ROOT)}\n")
    return totals


def results(folder: Path) -> Iterator[tuple[str, dict[str, int | None]]]:
    top = folder / "mutants" / "inbox_orch"
    for path in sorted(top.rglob("*.py.meta")):
        found = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        if found:
            yield path.relative_to(top).as_posix().removesuffix(".meta"), found


def outcome_of(code: int | None) -> str:
    if code in KILLED:
        return "killed"
    if code in TIMED_OUT:
        return "timed out"
    return {SURVIVED: "survived", NO_TEST: "no test", SKIPPED: "skipped"}.get(code, "unknown")


def changes_letters_alone(folder: Path, mutant: str) -> bool:
    """Whether it writes a text in capitals or in small letters: where no test notices that, SQL or
    a codec was meant, which are the same in both."""
    done = subprocess.run(
        [str(MUTMUT), "show", mutant], cwd=folder, capture_output=True, text=True, check=True
    )
    lines = [x for x in done.stdout.splitlines() if not x.startswith(("---", "+++"))]
    before, after = ([x[1:] for x in lines if x.startswith(sign)] for sign in "-+")
    return before != after and list(map(str.casefold, before)) == list(map(str.casefold, after))


def print_row(name: str, counts: Counter[str]) -> None:
    """The share is that of the mutants which break something: not of those in other letters."""
    tried = counts["mutants"] - counts["skipped"]
    breaking = tried - counts["letters"]
    noticed = counts["killed"] + counts["timed out"]
    share = f"{100 * noticed / breaking:>7.1f}" if breaking else f"{'':>7}"
    print(
        f"{name:<30}{counts['mutants']:>8}{tried:>7}{counts['letters']:>9}{counts['killed']:>8}"
        f"{counts['timed out']:>11}{breaking - noticed:>8}{share}"
    )


def show(mutant: str, parts: list[str]) -> int:
    for name in parts:
        folder = ROOT / "build" / "mutation" / name
        if folder.exists() and any(mutant in found for _, found in results(folder)):
            return subprocess.run([str(MUTMUT), "show", mutant], cwd=folder).returncode
    print(f"no run knows a mutant {mutant}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
