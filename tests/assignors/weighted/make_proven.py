"""Writes proven.jsonl: what CP-SAT proves about the groups of ``groups.draw``.

    python -m tests.assignors.weighted.make_proven FIRST LAST SECONDS >> proven.jsonl

A line a group whose optimum was proven in time: seed, opt (a fraction), moves (the fewest within
1.05 x opt, where somebody owns something), points (for k moves the least load) for every third.
"""

import json
import sys
from fractions import Fraction

from tests.assignors.weighted.drawn_groups import draw
from tests.oracles.exact_weights import least_load, least_moves

POINTS = (0, 1, 2, 3, 5, 8)


def main() -> None:
    first, last, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    for seed in range(first, last):
        group = draw(seed)
        opt = least_load(group, seconds=seconds)
        if opt is None:
            print(f"{seed}: not proven", file=sys.stderr, flush=True)
            continue
        result: dict[str, object] = {"seed": seed, "opt": str(opt)}
        if any(home >= 0 for home in group["home"]):
            result["moves"] = least_moves(group, opt * Fraction(21, 20), seconds=seconds)
            if seed % 3 == 1:
                points = {k: least_load(group, moves=k, seconds=seconds) for k in POINTS}
                result["points"] = {k: str(v) for k, v in points.items() if v is not None}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
