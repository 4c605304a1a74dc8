"""Keys of known formats are found, wherever they stand in a text, and hardly anything else is."""

import json
import random
import re
import subprocess
import time
import uuid
from collections.abc import Callable
from hashlib import sha1, sha256, sha512
from pathlib import Path

import pytest

from inbox_orch.orch.patches.hiding import KeyStream, covered, hidden, suspects
from inbox_orch.orch.patches.secret_formats import FORMATS, VALUE, hits
from support.keys import KEYS

ROOT = Path(__file__).resolve().parents[2]


def test_every_format_has_a_key_here():
    assert {form.kind for form in FORMATS} == set(KEYS)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("around", ["{}", 'key = "{}"', "a={};b", "<{}>", "TOKEN_{}\n", "x: {}\r"])
def test_a_key_is_found_wherever_it_stands(kind: str, around: str):
    key = KEYS[kind]
    text = around.format(key)

    found = [(text.encode()[start:end], name) for start, end, name in hits(text.encode())]

    assert [name for _, name in found] == [kind]
    first = found[0][0].decode()
    assert first.strip() in key + "\r" or key in first
    assert key.split("\n")[0] not in hidden(text)


def test_one_in_a_json_text_is_found_too():
    text = json.dumps({"private_key": KEYS["private key"]})

    assert [kind for _, _, kind in hits(text.encode())] == ["private key"]


HARMLESS = (
    *(f"{algorithm(str(number).encode()).hexdigest()}" for number in range(300)
      for algorithm in (sha1, sha256, sha512)),
    *(str(uuid.UUID(int=number * 7919**8)) for number in range(300)),
    'integrity "sha512-' + "aB3/" * 21 + '=="',
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "a line about `-----BEGIN PRIVATE KEY-----` headers",
    "class=\"sk-circle sk-folding-cube sk-loading-indicator-with-a-long-name\"",
    "task-sk-learn-something-that-is-long-enough-to-be-one",
    "ghp_short", "npm_config_registry=https://example.org", "pypi-publish", "xoxb-", "AKIA",
    "eyJhbGciOiJIUzI1NiJ9", "SG.a.b", "hf_hub_download", "whsec_",
    "git@example.org:AAAA/BBBB.git", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ",
)  # fmt: skip


def test_hashes_and_names_are_no_keys():
    for text in HARMLESS:
        assert list(hits(text.encode())) == [], text


def test_nothing_of_this_project_looks_like_a_key():
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "*.py", "*.md", "*.toml", "*.json", "*.yaml"]
    listed = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    whole = {path: (ROOT / path).read_bytes() for path in listed if path}

    found = {path: [kind for _, _, kind in hits(text)] for path, text in whole.items()}

    assert len(whole) > 500
    assert {path: kinds for path, kinds in found.items() if kinds} == {}


def test_values_are_found_unless_they_are_short():
    text = b"pass = hunter22\nfirst line of it is long\nand s3 too\n"
    values = ["hunter22", "s3", "first line of it is long\nshort", ""]

    assert [(text[a:b], kind) for a, b, kind in hits(text, values)] == [
        (b"hunter22", VALUE),
        (b"first line of it is long", VALUE),
    ]
    assert hidden("pass = hunter22, s3", values) == "pass = ***, ***"


_BODY = "".join(f"{'aB3/' * 16}\n" for _ in range(30)) + "aB3=\n"
_KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\n"
_END = "-----END RSA " + "PRIVATE KEY-----\n"
_PUTTY = (
    "PuTTY-User-Key" + "-File-3: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 1\n"
    f"{'aB3/' * 16}\nPrivate-Lines: 1\n{'aB3/' * 9}\nPrivate-MAC: {'0af' * 13}\n"
)


@pytest.mark.parametrize(
    "key",
    [_KEY + _BODY + _END, _KEY + _BODY, _KEY + "Proc-Type: 4,ENCRYPTED\n\n" + _BODY, _PUTTY],
    ids=["whole", "cut", "encrypted", "putty"],
)
@pytest.mark.parametrize(
    "made",
    [
        str,
        lambda text: "".join(f"+{line}\n" for line in text.splitlines()),
        lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
        lambda text: text.replace("\n", "\r\n"),
        json.dumps,
    ],
    ids=["plain", "diff", "indented", "crlf", "json"],
)
def test_a_key_of_several_lines_is_hidden_to_its_end(key: str, made: Callable[[str], str]):
    shown = hidden(made(f"before\n{key}after it\n"))

    assert "before" in shown and "after it" in shown and "***" in shown
    assert "aB3" not in shown and "0af" not in shown and len(shown) < 40


def test_half_characters_are_no_trouble():
    key = KEYS["GitHub token"]

    assert hidden(f"\ud800 gr\u00fcn {key}\udcff") == "\ud800 gr\u00fcn ***\udcff"
    assert covered({"a": [f"x {key}", 1], key: None}) == {"a": ["x ***", 1], "***": None}


class _Small(KeyStream):
    STEP_BYTES, OVERLAP_BYTES = 3000, 1200


@pytest.mark.parametrize("sign", [sign.decode() for form in FORMATS for sign in form.signs])
def test_whatever_is_found_is_suspected_first(sign: str):
    tails = [
        *("a1" * 150, "A2" * 150, "A1B2" * 4, "a1" * 16, "a" * 34, "A" * 35, "f" * 64),
        *(f"_KEY='{'aB3/' * 10}'", f": {'aB3/' * 10}", f"{'a1' * 11}.{'B2' * 20}", "3: "),
        *(f"T1234567/B{'a1' * 20}", "-----\nabc"),
    ]
    texts = [f"{before}{sign}{tail}" for tail in tails for before in ("", "12345678", "abc")]
    texts += [key for key in KEYS.values() if sign in key]
    found = [text for text in texts if list(hits(text.encode()))]

    assert all(map(suspects, found))
    assert all(hidden(text) != text for text in found)
    assert found


@pytest.mark.parametrize("most", [4000, 1_000_000])
def test_a_stream_hides_what_the_whole_has_whatever_the_pieces(most: int):
    class Small(_Small):
        MOST_HELD_BYTES = most

    keys = [key for kind, key in KEYS.items() if kind != "PyPI token"]
    chance = random.Random(most)
    for _ in range(8):
        parts = [
            chance.choice([*keys, _KEY + _BODY + _END, _KEY + _BODY, "a value", "x" * 4000])
            if chance.random() < 0.3
            else "".join(chance.choice("ab \n+") for _ in range(chance.randrange(400)))
            for _ in range(40)
        ]
        text = "\n".join(parts).encode()
        stream, told, at = Small(["a value"]), b"", 0
        while at < len(text):
            size = chance.randrange(1, 2500)
            told += stream.add(text[at : at + size])
            at += size
        told += stream.finish()
        assert b"a value" not in told and b"aB3" not in told
        assert not [key for key in keys if key.split("\n")[-1].encode() in told]
        assert re.sub(rb"(\*\*\*\s*)+", b"*", told) == re.sub(
            rb"(\*\*\*\s*)+", b"*", hidden(text.decode(), ["a value"]).encode()
        )


def test_a_stream_without_keys_is_the_same_to_the_byte():
    text = bytes(range(256)) * 2000 + b"\n-----BEGIN \n" + b"ghp_short\n" * 9000
    stream = KeyStream()

    assert b"".join([stream.add(text[:100_000]), stream.add(text[100_000:]), stream.finish()]) == (
        text
    )


@pytest.mark.parametrize(
    "piece",
    [form.signs[0].decode() for form in FORMATS]
    + ["eyJa-", "eyJaaaaaaaaaaaa.", "xoxb-", "glpat-", "-----BEGIN A ", "sk-", "a" * 50 + ":AA"],
)
def test_no_text_takes_long(piece: str):
    content = (piece * (300_000 // len(piece))).encode()
    began = time.process_time()

    list(hits(content))
    hidden(content.decode())

    assert time.process_time() - began < 2
