"""Changes handed in as text, most of them hostile: the files that they are for, and the texts that
are too long to be written down. The table is tests/data/patches.toml."""

import base64
import os
import subprocess
import tomllib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.patches import given
from inbox_orch.orch.patches.given import Given
from support.runs import git, make_repository

TABLE = Path(__file__).resolve().parents[1] / "data" / "patches.toml"
LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
FILES: Mapping[str, bytes] = {
    "f": LINES.encode(),
    "crlf": b"a\r\nb\r\nc\r\n",
    "mixed": b"a\r\nb\nc\r\n",
    "no-end": b"x\ny",
    "gap": b"up\n\ndown\n\n",
    "sql": b"select 1;\n- \n",
    "twice": b"same\naaa\nsame\n",
    "latin": "café\n".encode("latin-1"),
    "long": "".join(f"line {number}\n" for number in range(1, 61)).encode(),
    "dir/inner": b"inner\n",
    "docs/排查.md": b"eins\n",
    "a b.txt": b"blank\n",
    "bin": b"\0\1\2",
}


def cases() -> list[dict[str, Any]]:
    """Every case of the table, each with the title of its group."""
    groups = tomllib.loads(TABLE.read_text("utf-8"))["group"]
    return [{**case, "group": group["title"]} for group in groups for case in group["cases"]]


def repository(folder: Path) -> tuple[Repository, str]:
    """A repository with the files that the table is about, and its commit."""
    make_repository(folder)
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    os.symlink("f", folder / "link")
    os.symlink("dir", folder / "dirlink")
    git(folder, "add", "--all")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git(folder, "commit", "--quiet", "--message", "All kinds of files")
    return Repository.at(str(folder)), git(folder, "rev-parse", "HEAD")


def given_by(case: Mapping[str, Any]) -> Given:
    """What a case hands in, as a worker would. Raises `Refused`."""
    if "edits" in case:
        edits = case["edits"]
        if case.get("made") == "half_character":
            edits = [{**edits[0], "new": "\ud800"}]
        return given.of_payload({"edits": edits})
    if "made" in case:
        return Given(MADE[case["made"]]())
    return Given(case["text"].encode(case.get("encoding", "utf-8")))


# -- texts that are made ---------------------------------------------------------------------


def blob_name(content: bytes) -> str:
    """The name that git gives a content."""
    asked = ["git", "hash-object", "--stdin"]
    return subprocess.run(asked, input=content, capture_output=True, check=True).stdout.decode()[
        :40
    ]


def _lines85(data: bytes) -> str:
    found = []
    for start in range(0, len(data), 52):
        part = data[start : start + 52]
        length = chr(64 + len(part)) if len(part) <= 26 else chr(70 + len(part))
        found.append(length + base64.b85encode(part + b"\0" * (-len(part) % 4)).decode())
    return "\n".join(found)


def binary(
    name: str, content: bytes, *, size: int | None = None, stands_for: bytes | None = None
) -> bytes:
    """A new binary file, as `git diff --binary` writes it."""
    whole = blob_name(content if stands_for is None else stands_for)
    data = _lines85(zlib.compress(content, 9))
    return (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex {'0' * 40}..{whole}\n"
        f"GIT binary patch\nliteral {len(content) if size is None else size}\n{data}\n\n"
        "literal 0\nHcmV?d00001\n\n"
    ).encode()


def _number(value: int) -> bytes:
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)


def delta_bomb() -> bytes:
    """A delta of the three bytes of `bin` that says it makes four gigabytes."""
    delta = _number(3) + _number(1 << 32) + b"\x90\x03" * 20
    data = _lines85(zlib.compress(delta))
    return (
        f"diff --git a/bin b/bin\nindex {blob_name(FILES['bin'])}..{'1' * 40} 100644\n"
        f"GIT binary patch\ndelta {len(delta)}\n{data}\n\n"
    ).encode()


def _new(name: str, content: str) -> str:
    lines = content.splitlines(keepends=True)
    body = "".join(f"+{line}" for line in lines)
    return f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n{body}"


MADE = {
    "long_name": lambda: _new(f"{'n' * 300}", "x\n").encode(),
    "small_binary": lambda: binary("new", bytes(range(256))),
    "binary_bomb": lambda: binary("new", b"\0" * (51 << 20)),
    "delta_bomb": delta_bomb,
    "wrong_size": lambda: binary("new", b"\0" * 300, size=299),
    "ten_thousand_files": lambda: "".join(
        _new(f"many/{number // 100}/{number}", "x\n") for number in range(10_000)
    ).encode(),
    "hundred_megabytes": lambda: _new("new", "x" * (100 << 20) + "\n").encode(),
    "much_text": lambda: _new("new", "0123456789\n" * 100_000).encode(),
    # In two parts, so that no scanner takes this file for one with a key in it.
    "a_key": lambda: _new("new", "key = " + "AKIA" + "IOSFODNN7EXAMPLE" + "\n").encode(),
}
