"""Formats by which keys are known, and where they stand in a text. Pure, and linear in time: each
begins with letters of its own, which are looked for first, and no pattern can go back.

What is found is never told, only its kind and its place.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

MIN_VALUE_CHARS = 6
"""Values of a run's secrets that are shorter are not looked for: they stand everywhere."""
MIN_LINE_CHARS = 16
"""So long a line of a secret of several lines has to be to be looked for by itself."""
VALUE = "a secret of the run"


class Format(NamedTuple):
    """A kind of key: one of `signs` is in every one of them; `pattern` is the whole."""

    kind: str
    signs: tuple[bytes, ...]
    pattern: bytes


_AFTER = rb"(?![A-Za-z0-9])"
_BEFORE = rb"(?<![A-Za-z0-9])"


def _key(kind: str, signs: str, rest: str) -> Format:
    """What begins with one of the signs, and is no part of a longer word."""
    words = tuple(sign.encode() for sign in signs.split())
    begin = b"|".join(re.escape(word) for word in words)
    return Format(kind, words, _BEFORE + rb"(?:" + begin + rb")" + rest.encode() + _AFTER)


FORMATS = (
    _key("AWS access key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    Format(
        "AWS secret key",
        (b"aws_secret", b"AWS_SECRET", b"secretAccessKey", b"SecretAccessKey"),
        rb"(?i:aws_secret(?:_access)?_key|secretAccessKey)[\"']?\s{0,8}[:=]\s{0,8}[\"']?"
        rb"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
    _key("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,255}+"),
    _key("GitHub fine-grained token", "github_pat_", r"[A-Za-z0-9_]{22,255}+"),
    _key(
        "GitLab token",
        "glpat- gldt- glptt- glrt- glcbt- glft- glsoat- glimt- glagent- gloas-",
        r"[A-Za-z0-9_-]{20,255}+",
    ),
    _key("Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp-",
         r"[A-Za-z0-9.-]{20,255}+"),
    Format(
        "Slack webhook",
        (b"hooks.slack.com/",),
        rb"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}+",
    ),
    _key("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,255}+"),
    _key("Stripe webhook secret", "whsec_", r"[A-Za-z0-9+/]{32,255}+"),
    _key("Google API key", "AIza", r"[A-Za-z0-9_-]{35}"),
    _key("Google client secret", "GOCSPX-", r"[A-Za-z0-9_-]{28}"),
    _key("Anthropic key", "sk-ant-", r"[A-Za-z0-9_-]{20,255}+"),
    _key("OpenAI key", "sk-proj- sk-svcacct- sk-admin- sk-None- sk-or-v1-",
         r"[A-Za-z0-9_-]{20,255}+"),
    _key("OpenAI key", "sk-", r"[A-Za-z0-9]{32,255}+"),
    _key("npm token", "npm_", r"[A-Za-z0-9]{36}"),
    _key("PyPI token", "pypi-AgE", r"[A-Za-z0-9_-]{50,1000}+"),
    Format(
        "private key",
        (b"PRIVATE KEY",),
        rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        rb"(?:[ \t]{0,8}\r?(?:\n|\Z)|\\[nr]|[ \t]{0,8}[A-Za-z0-9+/=]{16})",
    ),
    Format("PuTTY private key", (b"PuTTY-User-Key-File-",), rb"PuTTY-User-Key-File-[23]: "),
    Format(
        "JSON web token",
        (b"eyJ",),
        _BEFORE + rb"eyJ[A-Za-z0-9_-]{10,1000}+\.eyJ[A-Za-z0-9_-]{10,9000}+\.[A-Za-z0-9_-]{10,}+",
    ),
    Format("Azure storage key", (b"AccountKey=",), rb"AccountKey=[A-Za-z0-9+/]{86}=="),
    Format(
        "Azure client secret",
        (b"7Q~", b"8Q~"),
        rb"(?<![A-Za-z0-9~.-])[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])",
    ),
    _key("Twilio key", "SK", r"[0-9a-f]{32}"),
    _key("SendGrid key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}+"),
    _key("Hugging Face token", "hf_", r"[A-Za-z0-9]{34}"),
    _key("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{64}"),
    _key("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{32}"),
    Format("Telegram bot token", (b":AA",), rb"(?<![0-9A-Za-z])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"
           + _AFTER),
    Format(
        "Discord webhook",
        (b"/api/webhooks/",),
        rb"discord(?:app)?\.com/api/webhooks/[0-9]{15,22}/[A-Za-z0-9_-]{60,}+",
    ),
    _key("Databricks token", "dapi", r"[0-9a-f]{32}"),
    _key("Docker Hub token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{27,32}"),
    _key("Vault token", "hvs. hvb.", r"[A-Za-z0-9_-]{24,300}+"),
    _key("age secret key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
)  # fmt: skip
"""What is looked for. docs/reference/policy.md is made of it."""


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


Hit = tuple[int, int, str]
"""Where something begins and ends in a text, and what it is."""


def hits(content: bytes, values: Iterable[str] = ()) -> Iterator[Hit]:
    """What looks like a key in a text, or is one of the `values` (see `parts`)."""
    for form in FORMATS:
        if any(sign in content for sign in form.signs):
            for found in _compiled(form.pattern).finditer(content):
                yield found.start(), found.end(), form.kind
    for part in parts(values):
        at = content.find(part)
        while at >= 0:
            yield at, at + len(part), VALUE
            at = content.find(part, at + len(part))


def parts(values: Iterable[str]) -> tuple[bytes, ...]:
    """What is looked for of the values of secrets: those that are long enough, and of those with
    several lines each that is."""
    found: dict[str, None] = {}
    for value in values:
        if len(value.strip()) >= MIN_VALUE_CHARS:
            lines = [line.strip() for line in value.splitlines()]
            found |= dict.fromkeys([value.strip()] if len(lines) < 2 else [])
            found |= dict.fromkeys(line for line in lines if len(line) >= MIN_LINE_CHARS)
    return tuple(each.encode("utf-8", "surrogatepass") for each in found)
