"""Makes docs/pictures/demo.svg: what `orch demo` prints on a terminal, in a real run.

Run through `script/pictures`. Draws nothing itself: rich turns the output into a picture. The frame
around it is ours, since rich's own fetches its font from a server when it is looked at.
"""

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "pictures" / "demo.svg"
COLUMNS = 98
# What follows it (the commits, and what had to hold) would make the picture too high.
LAST_LINE = "Commits:"

FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- Made by script/pictures from a run of `orch demo`. -->
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(picture(shown_part(played())), encoding="utf-8")
    print(TARGET.relative_to(ROOT))


def played() -> str:
    """What `orch demo` prints on a terminal of so many columns."""
    orch = Path(sys.executable).with_name("orch")
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [str(orch), "demo"], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def shown_part(output: str) -> str:
    """The beginning of the output, up to the table of tasks."""
    told, found, _ = output.partition(f"\n{LAST_LINE}\n")
    if not found:
        raise SystemExit(f"the demonstration did not print the line {LAST_LINE!r}")
    return "$ orch demo\n" + told.rstrip()


def picture(output: str) -> str:
    """The output as SVG that needs nothing from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(output))
    made = console.export_svg(title="orch demo", theme=MONOKAI, code_format=FRAME, unique_id="demo")
    return "\n".join(line.strip() for line in made.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    main()
