"""What Kafka's assignors answer to fleets of seeded groups, recorded: to ask them needs a JVM.

The kernels' tests compare with it, in ``make unit`` as well; ``test_recorded`` asks the jar again,
each time, about these groups and about others. After a change of the groups, or of the pinned
version, ``python -m tests.kafka.recorded`` writes the file anew.
"""

import gzip
import hashlib
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from tests.kafka import oracle
from tests.kafka.jars import KAFKA_VERSION
from tests.kafka.oracle import Assigned, Group
from tests.random_claims import claiming_groups, differing_groups, undisputed
from tests.random_groups import random_groups
from tests.random_states import exact_racked_states, random_states
from tests.spark_session import start_session

_FILE = Path(__file__).with_name("recorded-answers.json.gz")
_SECONDS = 2
NOT_VALID = "not-valid"
_IN_THE_MODEL = ("range", "sticky", "cooperative-sticky")

FLEETS: dict[str, Callable[[int, int], list[Group]]] = {
    # Equal subscriptions: the constrained pass.
    "equal": lambda count, seed: claiming_groups(count, seed=seed),
    # Differing ones: the general pass, which finds a better answer than Kafka's.
    "differing": lambda count, seed: [
        undisputed(group) for group in differing_groups(count, seed=seed)
    ],
    # The assignors that know no claims.
    "blocks": lambda count, seed: random_groups(
        count, seed=seed, assignors=("range", "roundrobin")
    ),
    # With racks, the groups for which ``assign`` promises the client's own answer.
    "racks": lambda count, seed: exact_racked_states(count, seed=seed),
    # Anything, with racks and hostile claims: the model of the client.
    "states": lambda count, seed: random_states(
        count, seed=seed, assignors=_IN_THE_MODEL, user_data=True
    ),
}
_RECORDED = {
    "equal": (4000, 20261121),
    "differing": (3000, 7),
    "blocks": (3000, 20261121),
    "racks": (9000, 20261202),  # tried: a third of them
    "states": (6000, 20261122),
}


@cache
def fleet(name: str) -> list[Group]:
    """The groups whose answers are recorded."""
    return FLEETS[name](*_RECORDED[name])


@cache
def answers(name: str) -> list[str]:
    """Of each group of ``fleet(name)`` what ``told`` gives for Kafka's answer."""
    recorded = json.loads(gzip.decompress(_FILE.read_bytes()))
    assert recorded["kafka"] == KAFKA_VERSION, "record the answers of the pinned version"
    result: list[str] = recorded[name].split()
    return result


def digest(answer: Assigned | str) -> str:
    """A digest of an assignment, or the name of the exception, or ``TimeLimit``."""
    if isinstance(answer, str):
        return answer
    owners = sorted((member, sorted(tps)) for member, tps in answer.items())
    return hashlib.sha256(json.dumps(owners).encode()).hexdigest()[:12]


def measured(group: Group, answer: Assigned | str) -> str:
    """Sum of squared loads and partitions that do not stay, of a group with one owner each.

    ``NOT_VALID`` where a member has what it does not subscribe to: to Kafka subscriptions are equal
    although the first member's is empty.
    """
    assert isinstance(answer, dict), (group, answer)
    topics = {m.member_id: m.topics for m in group.members}
    if any(topic not in topics[m] for m, tps in answer.items() for topic, _ in tps):
        return NOT_VALID
    owned = {m.member_id: set(m.owned) for m in group.members}
    squares = sum(len(tps) ** 2 for tps in answer.values())
    return f"{squares}/{sum(len(set(tps) - owned[m]) for m, tps in answer.items())}"


def ask(spark: SparkSession, name: str, groups: list[Group]) -> list[str]:
    """The jar's answers, as they are recorded for the fleet of this name."""
    result = oracle.assign(spark, groups, seconds=_SECONDS)
    if name == "differing":
        return [measured(group, answer) for group, answer in zip(groups, result, strict=True)]
    return [digest(answer) for answer in result]


def _record() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(Path(scratch))
        lines = {name: " ".join(ask(spark, name, fleet(name))) for name in FLEETS}
        spark.stop()
    text = json.dumps({"kafka": KAFKA_VERSION, **lines})
    _FILE.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    _record()
