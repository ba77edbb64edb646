"""The broker's own group coordinator of the pinned jar, run on the Spark session's JVM.

A script is one group's life; thousands are run in one call through py4j::

    script = Script()
    script.topics({"t": (random_topic_id(rng), 3)})
    script.heartbeat("m1", topics=["t"])
    answer = script.describe()
    run(spark, [script])
    assert script.answers[answer]["members"][0]["member_id"] == "m1"
"""

import base64
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pyspark.sql import SparkSession

from tests.kafka.oracle import new_java_object

ASSIGNMENT_INTERVAL_MS = 1000
"""Within it a change raises the group's epoch, and nothing is computed."""


@dataclass
class Script:
    """Steps of one group with a coordinator of its own, whose time stands still.

    Every method adds a step and gives its index, under which ``answers`` has what came of it.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def topics(self, topics: Mapping[str, Sequence[Any]]) -> int:
        """The cluster's topics from now on by name: id, number of partitions, perhaps racks."""
        return self._add("topics", topics=dict(topics))

    def heartbeat(self, member: str, **fields: Any) -> int:
        """One of a member; the first joins. ``topics``, ``instance``, ``assignor``: see Java."""
        return self._add("heartbeat", member=member, **fields)

    def leave(self, member: str, epoch: int = -1) -> int:
        return self._add("leave", member=member, epoch=epoch)

    def round(self, members: Sequence[str], *, confirm: bool = False) -> int:
        """Heartbeats in this order; ``confirm``: of those only that have something to confirm."""
        return self._add("round", members=list(members), confirm=confirm)

    def silence(self, member: str) -> int:
        """A member says nothing any more; ``sleep`` past its session and it is fenced."""
        return self._add("silence", member=member)

    def change_settings(self, **settings: str) -> int:
        """The group's own settings from now on."""
        return self._add("settings", settings=settings)

    def sleep(self, ms: int = 2 * ASSIGNMENT_INTERVAL_MS) -> int:
        return self._add("sleep", ms=ms)

    def describe(self) -> int:
        return self._add("describe")

    def _add(self, step: str, **of: Any) -> int:
        self.steps.append({"step": step, **of})
        return len(self.steps) - 1


def run(spark: SparkSession, scripts: Iterable[Script]) -> None:
    """Run all scripts in one call; each gets its ``answers``."""
    listed = list(scripts)
    lines = [
        json.dumps({"group": "g", "settings": dict(s.settings), "steps": s.steps}) for s in listed
    ]
    answers = _coordinator(spark).run("\n".join(lines))
    for script, line in zip(listed, answers.splitlines(), strict=True):
        script.answers = json.loads(line)


def random_topic_id(rng: random.Random) -> str:
    return base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")


def random_member_id(rng: random.Random) -> str:
    """As the Java client makes them: a version-4 UUID in 22 characters."""
    drawn = bytearray(rng.randbytes(16))
    drawn[6], drawn[8] = drawn[6] & 0x0F | 0x40, drawn[8] & 0x3F | 0x80
    return base64.urlsafe_b64encode(bytes(drawn)).decode().rstrip("=")


@cache
def _coordinator(spark: SparkSession) -> Any:
    return new_java_object(spark, "Coordinator")
