"""SHA-256 of what is in memory, without the 3 ms that loading OpenSSL takes.

`hashlib` loads OpenSSL, whose SHA-256 is some times faster but pays for its loading only from
about a megabyte on. Files are digested by `artifacts`, which uses it.
"""

import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any

_SMALL_BYTES = 1024 * 1024
# Python's own implementation, which `random` takes in the same way.
_OWN_MODULE = "_sha256" if sys.version_info < (3, 12) else "_sha2"


def sha256_hex(content: bytes) -> str:
    """The digest in hexadecimal."""
    if len(content) <= _SMALL_BYTES:
        try:
            own = importlib.import_module(_OWN_MODULE)
        except ImportError:
            pass  # a Python that was built without it
        else:
            return str(own.sha256(content).hexdigest())
    import hashlib

    return hashlib.sha256(content).hexdigest()


def digest_of(request: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form of a request."""
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return sha256_hex(canonical.encode())
