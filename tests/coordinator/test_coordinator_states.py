"""Groups of a task as the coordinator sees them: every name is of its own group and member."""

import numpy as np
import pyarrow as pa

from kassign_spark.groups.coordinator_states import GroupStates
from kassign_spark.groups.group_names import group_columns
from kassign_spark.groups.read import TOPIC, read_batch
from tests.kafka.oracle import Group, Member
from tests.task_rows import SCHEMA, name_of, table_of

_IDS = {"t": "J6V0K9wQRmmjVk2nq0Y1zA", "u": "b1Xw2dQeT0u3s5gqk7Yp8g", "v": None}
_GROUPS = [
    Group({"t": 3, "u": 2}, [Member("b", ["t", "u"]), Member("a", ["u"])]),
    Group({"v": 1, "u": 4}, [Member("c", ["v", "u"], group_instance_id="one")], "sticky"),
]


def test_names_and_ids_are_those_of_the_rows() -> None:
    rows = table_of(_GROUPS).to_pylist()
    for row in rows:
        if row["kind"] == TOPIC:
            row["member_id"] = _IDS[row["topic"]]
    table = pa.Table.from_pylist(rows, SCHEMA)
    batch, _ = read_batch(table)
    states = GroupStates(table, batch)
    names = group_columns(batch, np.arange(2))["group_id"].to_pylist()
    topics, members = {}, {}
    for group, name in enumerate(names):
        # Against the order of the batch.
        places = np.arange(*batch.first_member[group : group + 2])[::-1]
        state = states.of(group, places)
        of_topics = zip(state.topics, state.topic_ids, state.num_partitions, strict=True)
        topics[name] = sorted(of_topics)
        of_members = (state.member_ids, state.subscriptions, state.instance_ids)
        members[name] = [*zip(*of_members, states.votes(places), strict=True)]
    first, second = name_of(0), name_of(1)
    assert topics == {
        first: [("t", _IDS["t"], 3), ("u", _IDS["u"], 2)],
        second: [("u", _IDS["u"], 4), ("v", None, 1)],
    }
    in_batch = [("b", ("t", "u"), None, "range"), ("a", ("u",), None, "range")]
    assert members[first] in (in_batch, in_batch[::-1])
    assert members[second] == [("c", ("v", "u"), "one", "sticky")]
    asked = np.arange(*batch.first_member[names.index(first) : names.index(first) + 2])
    state = states.of(names.index(first), asked)
    assert list(state.member_ids) == [of[0] for of in members[first]][::-1]
