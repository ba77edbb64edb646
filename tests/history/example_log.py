"""Makes examples/group-log: a night of three groups, as a broker would have written it.

``python -m tests.history.example_log`` writes it.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kassign_spark.log.log_schemas import RECORDS
from kassign_spark.spark.spark_versions import arrow_schema
from tests.history.logs import Client, Made, Partition
from tests.history.raw import records

FOLDER = Path(__file__).parents[2] / "examples" / "group-log"
_EVERY = 20


def example() -> Made:
    made = Made()
    _restarting(made)
    _deployed(made)
    _grown(made)
    return made


def table() -> pa.Table:
    rows = [dict(zip(RECORDS.columns.names, row, strict=True)) for row in records(example())]
    return pa.Table.from_pylist(rows, arrow_schema(RECORDS.columns))


def _parts(topic: str, *numbers: int) -> list[Partition]:
    return [(topic, number) for number in numbers]


def _commit(made: Made, group: str, topic: str, count: int, begin: float, end: float) -> None:
    for seconds in range(int(begin) + 4, int(end), _EVERY):
        for number in range(count):
            made.commit(group, topic, number, seconds)


def _restarting(made: Made) -> None:
    """billing: one pod of three that is killed and comes back, at three in the morning.

    Its leader is no Java client: what it calls `range` deals the partitions of three members out.
    """
    topics = ("orders",)
    a, b = (
        Client(topics, _parts("orders", n, n + 3), f"billing-{n}", f"/10.2.0.{n}") for n in (1, 2)
    )
    made.classic("billing", 0, 0, {})
    now, number = 3.0, 1
    for turn, away in enumerate([12, 25, 14, 80, 11]):
        c = Client(topics, _parts("orders", 0, 3), "billing-3", "/10.2.0.9")
        made.classic("billing", number, now, {"pod-a-1": a, "pod-b-1": b, f"pod-c-{turn}": c})
        _commit(made, "billing", "orders", 6, now, now + 60)
        now += 60
        both = [
            Client(topics, _parts("orders", *of), f"billing-{n}", f"/10.2.0.{n}")
            for n, of in ((1, (0, 1, 2)), (2, (3, 4, 5)))
        ]
        made.classic("billing", number + 1, now, {"pod-a-1": both[0], "pod-b-1": both[1]})
        _commit(made, "billing", "orders", 6, now, now + away)
        now, number = now + away, number + 2


def _deployed(made: Made) -> None:
    """audit: static members, deployed without a rebalance; later one never returns."""
    topics = ("payments",)
    people = {
        f"audit-{n}": Client(
            topics, _parts("payments", 2 * n, 2 * n + 1), client="audit", instance=f"a{n}"
        )
        for n in range(2)
    }
    made.classic("audit", 4, 0, {f"{name}-old": who for name, who in people.items()}, "range")
    _commit(made, "audit", "payments", 4, 0, 600)
    now = dict.fromkeys(people, "old")
    for name in people:
        now[name] = "new"
        made.classic("audit", 4, 620, {f"{n}-{now[n]}": who for n, who in people.items()}, "range")
    _commit(made, "audit", "payments", 4, 620, 1200)
    alone = Client(topics, _parts("payments", 0, 1, 2, 3), client="audit", instance="a0")
    made.classic("audit", 5, 1265, {"audit-0-new": alone}, "range")
    _commit(made, "audit", "payments", 4, 1266, 1500)


def _grown(made: Made) -> None:
    """search: a cooperative group; its topic gets two partitions, then a second member joins."""
    topics = ("catalogue",)
    none, half, whole, rest = (_parts("catalogue", *of) for of in ((), (0, 1), range(4), (2, 3)))

    def clients(
        number: int, **members: tuple[list[Partition], list[Partition]]
    ) -> dict[str, Client]:
        """Members with what they get and what they had in the generation before."""
        return {
            name.replace("_", "-"): Client(topics, gets, claims=had, claimed_in=number - 1)
            for name, (gets, had) in members.items()
        }

    assignor = "cooperative-sticky"
    made.classic("search", 1, 3700, clients(1, index_1=(half, none)), assignor)
    _commit(made, "search", "catalogue", 2, 3700, 3900)
    made.classic("search", 2, 3901, clients(2, index_1=(whole, half)), assignor)
    _commit(made, "search", "catalogue", 4, 3901, 4100)
    both = {"index_1": (half, whole), "indexer_2": (none, none)}
    made.classic("search", 3, 4101, clients(3, **both), assignor)
    both = {"index_1": (half, half), "indexer_2": (rest, none)}
    made.classic("search", 4, 4102, clients(4, **both), assignor)
    _commit(made, "search", "catalogue", 4, 4102, 4300)


if __name__ == "__main__":
    (FOLDER / "records").mkdir(parents=True, exist_ok=True)
    pq.write_table(table(), FOLDER / "records" / "records.parquet")
