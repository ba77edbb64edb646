"""What any input may lead to: a result, or one clear line."""

from collections.abc import Callable
from typing import TypeVar

from kassign_spark.errors import KassignError

T = TypeVar("T")


def result_or_refusal(call: Callable[[], T]) -> T | None:
    """Make a call; None where it is refused. Any other exception goes through, and is a bug."""
    try:
        return call()
    except KassignError as error:
        text = str(error)
        assert text.strip(), "a refusal without words"
        assert len(text.splitlines()) == 1, text
        text.encode("utf-8")
        assert "Traceback" not in text, text
        assert "at org.apache" not in text, text
        return None
