"""Plans by weight: what the kernels take of a processor, and how near to the bounds they come.

    python -m tests.benchmarks.weighted [SHAPE ...] [--fleet GROUPS] [--size PARTITIONS]

Without Spark: a task does nothing else. The bars are those of large groups and of fleets.
"""

import argparse
import time

from kassign_spark.assignors.weighted import large
from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.assignors.weighted.planner import plan_groups
from kassign_spark.assignors.weighted.small import PlanOptions
from tests.assignors.weighted.drawn_groups import as_group, draw
from tests.assignors.weighted.large_groups import LARGE, make, with_owners

BARS = {"million": (3.0, 10.0), "ten-classes": (5.0, None)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shapes", nargs="*", help=" ".join(LARGE))
    parser.add_argument("--fleet", type=int, default=10_000, metavar="GROUPS")
    parser.add_argument(
        "--size", type=int, metavar="PARTITIONS", help="of each group (default: 5 to 60)"
    )
    args = parser.parse_args()
    for name in args.shapes or LARGE:
        _large(name)
    if args.fleet and not args.shapes:
        groups = [as_group(draw(seed, args.size)) for seed in range(args.fleet)]
        for effort in ("fast", "default"):
            start = time.process_time()
            answers = plan_groups(groups, PlanOptions(Limit(), Bounds(), effort))
            spent = time.process_time() - start
            moves = sum(answer.moves for answer in answers)
            print(f"{len(groups):,} groups, {effort}: {spent:.1f} s of processor, {moves:,} moves")


def _large(name: str) -> None:
    group = make(LARGE[name])
    start = time.process_time()
    seen = large.group_bounds(group)
    fresh = time.process_time() - start
    ratio = float((seen.load / group.capacity).max()) / seen.bound
    owned = with_owners(group)
    start = time.process_time()
    (answer,) = plan_groups([owned], PlanOptions(Limit(), Bounds(), "default"))
    planned = time.process_time() - start
    start = time.process_time()
    points = large.curve_large(owned, large.group_bounds(owned))
    traced = time.process_time() - start
    plan_bar, curve_bar = BARS.get(name, (None, None))
    print(
        f"{name}: fresh {ratio:.4f} x bound in {fresh:.2f} s; plan {planned:.2f} s"
        f"{f' (bar {plan_bar:g} s)' if plan_bar else ''}, {answer.verdict}, {answer.moves:,} moves "
        f"(bound {answer.moves_bound:,}); {len(points)} points in {traced:.2f} s"
        f"{f' (bar {curve_bar:g} s)' if curve_bar else ''}"
    )


if __name__ == "__main__":
    main()
