"""Keys that look real and open nothing, one of each format: put together, so that no scanner of
this repository takes them for some."""

import random
import string

_ANY = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def _some(number: int, letters: str = _ANY) -> str:
    return "".join(random.Random(number).choice(letters) for _ in range(number))


KEYS = {
    "AWS access key": "AKI" + "A" + _some(16, string.ascii_uppercase + "234567"),
    "AWS secret key": "aws_secret" + "_access_key = " + _some(40),
    "GitHub token": "ghp" + "_" + _some(36),
    "GitHub fine-grained token": "github" + "_pat_" + _some(22) + "_" + _some(59),
    "GitLab token": "glpat" + "-" + _some(20),
    "Slack token": "xox" + "b-" + _some(12, string.digits) + "-" + _some(24),
    "Slack webhook": "https://hooks.slack" + ".com/services/T" + _some(8) + "/B" + _some(30),
    "Stripe key": "sk" + "_live_" + _some(24),
    "Stripe webhook secret": "whsec" + "_" + _some(32),
    "Google API key": "AI" + "za" + _some(35),
    "Google client secret": "GOC" + "SPX-" + _some(28),
    "Anthropic key": "sk" + "-ant-api03-" + _some(80),
    "OpenAI key": "sk" + "-proj-" + _some(48),
    "npm token": "np" + "m_" + _some(36),
    "PyPI token": "pypi" + "-AgEIcHlwaS5vcmc" + _some(70),
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + _some(64),
    "PuTTY private key": "PuTTY-User-Key" + "-File-3: ssh-rsa",
    "JSON web token": ".".join(("ey" + "J" + _some(20), "ey" + "J" + _some(40), _some(43))),
    "Azure storage key": "Account" + "Key=" + _some(86) + "==",
    "Azure client secret": "abc" + "8Q" + "~" + _some(34),
    "Twilio key": "S" + "K" + _some(32, _HEX),
    "SendGrid key": "S" + "G." + _some(22) + "." + _some(43),
    "Hugging Face token": "h" + "f_" + _some(34),
    "DigitalOcean token": "dop" + "_v1_" + _some(64, _HEX),
    "Shopify token": "shpat" + "_" + _some(32, _HEX),
    "Telegram bot token": "123456789" + ":AA" + _some(33),
    "Discord webhook": "https://discord" + ".com/api/webhooks/" + "1" * 18 + "/" + _some(68),
    "Databricks token": "dap" + "i" + _some(32, _HEX),
    "Docker Hub token": "dckr" + "_pat_" + _some(27),
    "Vault token": "hv" + "s." + _some(90),
    "age secret key": "AGE-SECRET" + "-KEY-1" + _some(58, string.ascii_uppercase + "234567"),
}
