"""Many lines of JSON at once: whole, in order, and up to an error that comes in between."""

import json

import pytest

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.output import Output


def numbered(count, error=None):
    for number in range(count):
        yield {"number": number, "text": "x" * 1000}
    if error is not None:
        raise error


def numbers(text):
    return [json.loads(line)["number"] for line in text.splitlines()]


@pytest.mark.parametrize("count", [0, 1, 500])
def test_every_line_is_written_in_order(capfd, count):
    Output("inbox/1", as_json=True).lines(numbered(count))

    assert numbers(capfd.readouterr().out) == list(range(count))


def test_what_came_before_an_error_is_written(capfd):
    with pytest.raises(InboxOrchError, match="it is gone"):
        Output("inbox/1", as_json=True).lines(
            numbered(100, InboxOrchError("io_error", "it is gone"))
        )

    assert numbers(capfd.readouterr().out) == list(range(100))


def test_many_lines_are_written_a_piece_at_a_time(capfd):
    seen = []

    def watched():
        for value in numbered(500):
            seen.append(capfd.readouterr().out)
            yield value

    Output("inbox/1", as_json=True).lines(watched())
    written = [text for text in seen if text]

    assert 1 < len(written) < 20
    assert numbers("".join(written) + capfd.readouterr().out) == list(range(500))
