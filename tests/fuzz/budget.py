"""How much is tried: the same examples on every run, or many random ones.

The default is fixed: a run says the same every time. ``KASSIGN_FUZZ=20 pytest tests/fuzz`` tries
twenty times as many examples, other ones each time; a failure prints how to see it again.
"""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

_TIMES = int(os.environ.get("KASSIGN_FUZZ", "0"))


def examples(count: int, *, spark: bool = False) -> Callable[[Any], Any]:
    """Settings of a test that tries ``count`` examples by default.

    With Spark an example takes seconds: a failing one is told as it is, not made smaller.
    """
    phases = [Phase.explicit, Phase.generate] + ([] if spark else [Phase.shrink])
    return settings(
        max_examples=count * max(1, _TIMES),
        deadline=None,
        derandomize=not _TIMES,
        database=None,
        print_blob=True,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
