"""Taking down what a command says, beside what is kept of it. Pure."""

from inbox_orch.shared.processes.kept import Kept

MOST_HEARD_BYTES = 16 * 1024 * 1024


class Ear:
    """What a stream goes through on its way to `kept`: it is taken down whole, as long as it is
    not more than `MOST_HEARD_BYTES`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._heard: bytearray | None = bytearray()

    def add(self, chunk: bytes) -> bytes:
        """Take down the next bytes and hand them on; none are left over."""
        self._kept.add(chunk)
        if self._heard is not None:
            self._heard += chunk
            if len(self._heard) > MOST_HEARD_BYTES:
                self._heard = None
        return b""

    def finish(self) -> bytes:
        """Nothing is held back."""
        return b""

    @property
    def heard(self) -> bytes | None:
        """All that was said, None when it was too much."""
        return None if self._heard is None else bytes(self._heard)
