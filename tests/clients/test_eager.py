"""`range` and `roundrobin` of every client, beside the library itself."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from kassign_spark.client_libraries import ASSIGNORS_OF_CLIENT, KAFKA_GO, SARAMA
from kassign_spark.plans.exact import predict_arrow
from tests.clients.libraries import Answer, answers
from tests.kafka.oracle import Group
from tests.random_groups import random_groups
from tests.task_rows import SCHEMA, name_of, rows_of

COUNT = 150
_MAY_THROW = (("kafka-python", "roundrobin"), ("sarama", "roundrobin"))
_CASES = [
    (client, assignor)
    for client, assignors in ASSIGNORS_OF_CLIENT.items()
    for assignor in ("range", "roundrobin")
    if client not in ("java", "librdkafka") and assignor in assignors
]


def predicted(
    client: str, groups: Sequence[Group], *, has_positions: bool = False
) -> list[tuple[str, Answer]]:
    """Return each group's verdict, and what each member gets or the detail."""
    rows = [
        row
        for n, group in enumerate(groups)
        for row in rows_of(group, name_of(n), client, has_positions=has_positions)
    ]
    table = pa.Table.from_pylist(rows, SCHEMA)
    verdicts: list[tuple[str, str | None]] = [("", None)] * len(groups)
    predicted_answer = [
        {member.member_id: set[tuple[str, int]]() for member in g.members} for g in groups
    ]
    for piece in predict_arrow(table):
        for row in piece.to_pylist():
            number = int(row["group_id"][1:])
            if row["member_id"] is None:
                verdicts[number] = row["verdict"], row["detail"]
            else:
                of_member = predicted_answer[number][row["member_id"]]
                of_member |= {(row["topic"], partition) for partition in row["partitions"]}
    return [
        (verdict, of_group if verdict in ("ok", "inexact") else detail or "")
        for (verdict, detail), of_group in zip(verdicts, predicted_answer, strict=True)
    ]


def _groups(client: str, assignor: str, count: int = COUNT) -> list[Group]:
    """Random groups as this client may have them."""
    groups = []
    for group in random_groups(count, seed=len(client), assignors=[assignor]):
        known = {*group.topics}
        if client not in (KAFKA_GO, SARAMA):  # their groups starve or fail where one is missing
            known |= {"not.in.metadata"}
        members = [
            replace(
                member, topics=[t for t in dict.fromkeys(member.topics) if t in known], rack_id=None
            )
            for member in group.members
        ]
        topics = {name: n if isinstance(n, int) else len(n) for name, n in group.topics.items()}
        groups.append(replace(group, members=members, topics=topics))
    return groups


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(("client", "assignor"), _CASES)
def test_answers_are_those_of_the_library(client: str, assignor: str) -> None:
    groups = _groups(client, assignor)
    compared = zip(groups, answers(client, groups), predicted(client, groups), strict=True)
    throwing = 0
    for group, answer, (verdict, predicted_answer) in compared:
        if isinstance(answer, str):
            throwing += 1
            assert verdict == "throws", group
        else:
            assert (verdict, predicted_answer) == ("ok", answer), group
    assert throwing == 0 or (client, assignor) in _MAY_THROW
