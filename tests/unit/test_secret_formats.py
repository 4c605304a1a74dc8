"""Keys of known formats are found, wherever they stand in a text, and hardly anything else is."""

import json
import subprocess
import time
import uuid
from hashlib import sha1, sha256, sha512
from pathlib import Path

import pytest

from inbox_orch.orch.patches.hiding import hidden
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


@pytest.mark.parametrize(
    "piece",
    [form.signs[0].decode() for form in FORMATS]
    + ["eyJa-", "eyJaaaaaaaaaaaa.", "xoxb-", "glpat-", "-----BEGIN A ", "sk-", "a" * 50 + ":AA"],
)
def test_no_text_takes_long(piece: str):
    content = (piece * (300_000 // len(piece))).encode()
    began = time.process_time()

    list(hits(content))

    assert time.process_time() - began < 2
