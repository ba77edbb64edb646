"""One group as the rows of a task, names and all: what planning it takes of processor and memory.

    python -m tests.benchmarks.weighted_task [PARTITIONS] [MEMBERS]

Every tenth member has a half more than its share, so that there is something to move.
"""

import argparse
import json
import resource
import time

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.assignors.weighted.small import PlanOptions
from kassign_spark.groups.read import CLAIM, MEMBER, SUBSCRIPTION, TOPIC
from kassign_spark.plans.weight_rows import WEIGHT
from kassign_spark.plans.weighted_groups import WeightOptions
from kassign_spark.plans.weighted_tasks import plan_arrow

_PARTITIONS_A_TOPIC = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("partitions", nargs="?", type=int, default=10_000_000)
    parser.add_argument("members", nargs="?", type=int, default=3_000)
    args = parser.parse_args()
    table = one_group(args.partitions, args.members)
    before = peak_gb()
    start = time.process_time()
    plan_options = PlanOptions(Limit(), Bounds(), "default")
    weight_options = WeightOptions(False, None, 0.0, {})
    count, verdict = 0, {}
    for piece in plan_arrow(table, options=plan_options, weights=weight_options):
        count += len(piece) - piece["member_id"].null_count
        verdict = piece.slice(len(piece) - 1).to_pylist()[0]
    print(
        f"{count:,} partitions, {args.members:,} members: {time.process_time() - start:.1f} s of "
        f"processor, {peak_gb() - before:.1f} GB beside {table.nbytes / 1e9:.1f} GB of rows; "
        f"{verdict['verdict']}, {verdict['moves']:,} moves (bound {verdict['moves_bound']:,}), "
        f"load {verdict['max_load'] / verdict['load_bound']:.4f} x bound"
    )


def one_group(partitions: int, members: int) -> pa.Table:
    names = [f"member-{m:05d}" for m in range(members)]
    sizes = [_PARTITIONS_A_TOPIC] * (partitions // _PARTITIONS_A_TOPIC)
    sizes += [partitions % _PARTITIONS_A_TOPIC] if partitions % _PARTITIONS_A_TOPIC else []
    topics = [f"topic-{t:05d}" for t in range(len(sizes))]
    random = np.random.default_rng(1)
    share = np.where(np.arange(members) % 10 == 0, 1.5, 1.0)
    owner = random.choice(members, partitions, p=share / share.sum())
    topic = np.repeat(np.arange(len(sizes)), sizes)
    number = np.concatenate([np.arange(size) for size in sizes])
    weight = np.exp(random.normal(0, 1, partitions)) * 100
    by_name = pa.array(topics).take(pa.array(topic))
    texts = json.dumps([None, None, None])
    parts = [
        _kind(SUBSCRIPTION, 1, texts=pa.array([json.dumps(topics)])),
        _kind(
            MEMBER,
            members,
            member_id=pa.array(names),
            number=pa.array([-1] * members),
            place=pa.array([-1] * members),
            texts=pa.array([texts] * members),
        ),
        _kind(TOPIC, len(sizes), topic=pa.array(topics), number=pa.array(sizes)),
        _kind(
            CLAIM,
            partitions,
            member_id=pa.array(names).take(pa.array(owner)),
            topic=by_name,
            number=pa.array(number),
        ),
        _kind(WEIGHT, partitions, topic=by_name, number=pa.array(number), value=pa.array(weight)),
    ]
    return pa.concat_tables(parts)


def _kind(kind: int, size: int, **more: pa.Array) -> pa.Table:
    zeros = pa.array(np.zeros(size, np.int64))
    columns = {
        "cluster_id": pa.array([""] * size),
        "group_id": pa.array(["g"] * size),
        "kind": pa.array(np.full(size, kind, np.int8)),
        "member_id": pa.nulls(size, pa.string()),
        "topic": pa.nulls(size, pa.string()),
        "number": zeros,
        "place": zeros,
        "list_number": zeros,
        "texts": pa.nulls(size, pa.string()),
        "value": pa.nulls(size, pa.float64()),
        "cost": pa.nulls(size, pa.float64()),
    }
    return pa.table({**columns, **more})


def peak_gb() -> float:
    """The greatest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
