"""What is said of JSON from outside that the library cannot read, in words of our own.

Python's own speak of its settings, which whoever wrote the text knows nothing of.
"""


def whole_number(text: str) -> int:
    """For `parse_int` of `json`: raises ValueError for more digits than Python reads."""
    try:
        return int(text)
    except ValueError as error:
        raise ValueError("a number has too many digits") from error


def words_of(error: ValueError | RecursionError) -> str:
    """Why the text cannot be read."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
