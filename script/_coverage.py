"""Prints the share of branches that the tests have taken, by folder, from coverage's report."""

import json
import sys
from collections import Counter
from pathlib import Path


def main(report: Path) -> None:
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    folders: dict[str, Counter[str]] = {}
    total = Counter[str]()
    for path, found in files.items():
        folder = folders.setdefault(Path(path).parent.as_posix(), Counter())
        for counts in (folder, total):
            counts.update(
                lines=found["summary"]["num_statements"],
                lines_run=found["summary"]["covered_lines"],
                branches=found["summary"]["num_branches"],
                branches_taken=found["summary"]["covered_branches"],
            )
    print(f"{'folder':<20}{'lines':>8}{'run %':>8}{'branches':>10}{'taken %':>9}")
    for name, counts in sorted(folders.items()):
        print_row(name, counts)
    print_row("all", total)


def print_row(name: str, counts: Counter[str]) -> None:
    run = 100 * counts["lines_run"] / counts["lines"] if counts["lines"] else 100.0
    taken = 100 * counts["branches_taken"] / counts["branches"] if counts["branches"] else 100.0
    print(f"{name:<20}{counts['lines']:>8}{run:>8.1f}{counts['branches']:>10}{taken:>9.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
