"""Show the rounds of the general pass while they run, and count them."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class RoundCounter(logging.Handler):
    """Counts the rounds that are logged, and shows them on the error stream if asked to."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__(logging.INFO)
        self.rounds = 0
        self._shown = shown

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of one round."""
        self.rounds += 1
        if self._shown:
            print(record.getMessage(), file=sys.stderr, flush=True)


@contextmanager
def rounds_counted(*, shown: bool) -> Iterator[RoundCounter]:
    """Count the rounds that the sticky assignors log meanwhile."""
    log = logging.getLogger("kassign_spark.assignors")
    counter, level = RoundCounter(shown=shown), log.level
    log.addHandler(counter)
    log.setLevel(logging.INFO)
    try:
        yield counter
    finally:
        log.removeHandler(counter)
        log.setLevel(level)
