"""What one task takes of processor and memory to answer a whole group, without Spark.

    python -m tests.benchmarks.giant_task {balance,violations,rebalance} [PARTITIONS] [MEMBERS]

Each topic has 10,000 partitions; all members subscribe to all. `balance` and `violations` are of
an assignment in which a tenth of all partitions has another owner than before; `rebalance` follows
the cooperative rebalance of a group in which every tenth member has a half more than its share.
"""

import argparse
import json
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY
from kassign_spark.client.protocols import COOPERATIVE
from kassign_spark.groups.task_rows import ASSIGNED, MEMBER, OWNED, SUBSCRIBED
from kassign_spark.measures.balance_tasks import measure_arrow
from kassign_spark.measures.violations_tasks import broken_arrow
from kassign_spark.plans.rebalance import _follow_arrow
from kassign_spark.plans.weight_rows import CAPACITY
from kassign_spark.settings.computing import Settings
from tests.benchmarks.weighted_task import one_group, peak_gb

_PARTITIONS_A_TOPIC = 10_000
_KERNELS = {"balance": measure_arrow, "violations": broken_arrow}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("question", choices=[*_KERNELS, "rebalance"])
    parser.add_argument("partitions", nargs="?", type=int, default=10_000_000)
    parser.add_argument("members", nargs="?", type=int, default=3_000)
    args = parser.parse_args()
    if args.question == "rebalance":
        rows = one_group(args.partitions, args.members)
        rows = rows.filter(pc.less(rows["kind"], CAPACITY)).drop_columns(["value", "cost"])
    else:
        rows = _assigned(args.partitions // _PARTITIONS_A_TOPIC, args.members)
    before, start = peak_gb(), time.process_time()
    if args.question == "rebalance":
        steps = _follow_arrow(
            rows, assignor=COOPERATIVE_STICKY, protocol=COOPERATIVE, settings=Settings()
        )
        count = sum(map(len, steps))
    else:
        count = len(_KERNELS[args.question](rows))
    print(
        f"{args.question} of {args.partitions:,} partitions, {args.members:,} members: "
        f"{time.process_time() - start:.1f} s of processor, {peak_gb():.1f} GB, of which "
        f"{peak_gb() - before:.1f} beside {rows.nbytes / 1e9:.1f} GB of rows; {count:,} rows out"
    )


def _assigned(topic_count: int, member_count: int) -> pa.Table:
    """A group as the rows of ``task_rows.rows``: who has what, and who had it before."""
    random = np.random.default_rng(1)
    count = topic_count * _PARTITIONS_A_TOPIC
    members = pa.array([f"member-{m:05d}" for m in range(member_count)])
    topics = pa.array([f"topic-{t:05d}" for t in range(topic_count)])
    topic = topics.take(pa.array(np.repeat(np.arange(topic_count), _PARTITIONS_A_TOPIC)))
    partition = pa.array(np.tile(np.arange(_PARTITIONS_A_TOPIC), topic_count))
    before = random.integers(0, member_count, count)
    moves = random.random(count) < 0.1
    after = np.where(moves, random.integers(0, member_count, count), before)
    subscription = pa.array([json.dumps(topics.to_pylist())] * member_count)

    def size(of: int) -> pa.Array:
        return pa.array(np.full(of, _PARTITIONS_A_TOPIC))

    return pa.concat_tables(
        [
            _kind(MEMBER, member_count, member_id=members, texts=subscription),
            _kind(
                ASSIGNED,
                count,
                member_id=members.take(pa.array(after)),
                topic=topic,
                partition=partition,
                size=size(count),
            ),
            _kind(
                OWNED,
                count,
                member_id=members.take(pa.array(before)),
                topic=topic,
                partition=partition,
            ),
            _kind(SUBSCRIBED, topic_count, topic=topics, size=size(topic_count)),
        ]
    )


def _kind(kind: int, count: int, /, **columns: pa.Array) -> pa.Table:
    first = pa.array(np.zeros(count, np.int64))
    nothing = {
        "cluster_id": pa.array([""]).take(first),
        "group_id": pa.array(["g"]).take(first),
        "kind": pa.array(np.full(count, kind, np.int8)),
        **dict.fromkeys(("member_id", "topic"), pa.nulls(count, pa.string())),
        "partition": pa.nulls(count, pa.int64()),
        **dict.fromkeys(("rack_id", "texts"), pa.nulls(count, pa.string())),
        "size": pa.nulls(count, pa.int64()),
    }
    return pa.table(nothing | columns)


if __name__ == "__main__":
    main()
