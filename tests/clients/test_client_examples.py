"""Examples of what other clients do, from runs of the libraries that are not run here."""

import pytest

from kassign_spark.client_libraries import KAFKA_PYTHON, LIBRDKAFKA
from tests.clients.test_eager import predicted
from tests.kafka.oracle import Group, Member

_COOPERATIVE = "cooperative-sticky"


def _partitions(text: str) -> set[tuple[str, int]]:
    """Read such as "t 0 1, u 2"."""
    lists = (part.split() for part in text.split(",") if part.strip())
    return {(topic, int(number)) for topic, *numbers in lists for number in numbers}


def _member(name: str, topics: str, owned: str = "", **more: str) -> Member:
    claims = sorted(_partitions(owned))
    return Member(name, topics.split(), claims, 3 if claims else None, **more)


_CASES = {
    "librdkafka compares a static and a dynamic member by their ids": (
        LIBRDKAFKA,
        Group({"t": 3}, [_member("b-1", "t"), _member("c-1", "t", group_instance_id="c")], "range"),
        {"b-1": "t 0 1", "c-1": "t 2"},
    ),
    "in co-partitioned topics librdkafka gives a member without a rack what is left": (
        LIBRDKAFKA,
        Group(
            {"a": [["r1"]] * 3, "b": [["r1"]] * 3},
            [_member("m1", "a b"), _member("m2", "a b", rack_id="r1")],
            "range",
        ),
        {"m1": "a 2, b 2", "m2": "a 0 1, b 0 1"},
    ),
    "librdkafka gives away the first partitions to a newcomer": (
        LIBRDKAFKA,
        Group(
            {"t": 10},
            [_member("m1", "t", "t 0 1 2 3 4 5 6 7 8 9"), _member("m2", "t")],
            _COOPERATIVE,
        ),
        {"m1": "t 5 6 7 8 9", "m2": ""},
    ),
    "and takes turns": (
        LIBRDKAFKA,
        Group(
            {"t": 10},
            [
                _member("m1", "t", "t 0 2 4 6 8"),
                _member("m2", "t", "t 1 3 5 7 9"),
                _member("m3", "t"),
            ],
            _COOPERATIVE,
        ),
        {"m1": "t 2 4 6 8", "m2": "t 5 7 9", "m3": ""},
    ),
    "kafka-python leaves out a static member before a dynamic one": (
        KAFKA_PYTHON,
        Group(
            {"t": 4},
            [
                _member("a-1", "t", group_instance_id="a"),
                _member("m2", "t"),
                _member("c-1", "t", group_instance_id="c"),
            ],
            "range",
        ),
        {"a-1": "", "c-1": "t 0 1", "m2": "t 2 3"},
    ),
    "kafka-python takes lists in the same order for equal": (
        KAFKA_PYTHON,
        Group(
            {"t": 2, "u": 2}, [_member("m1", "t u", "t 0 1, u 0 1"), _member("m2", "t u")], "sticky"
        ),
        {"m1": "t 0 1", "m2": "u 0 1"},
    ),
    "and those in another order for differing": (
        KAFKA_PYTHON,
        Group(
            {"t": 2, "u": 2}, [_member("m1", "t u", "t 0 1, u 0 1"), _member("m2", "u t")], "sticky"
        ),
        {"m1": "u 0 1", "m2": "t 0 1"},
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_what_libraries_did(case: str) -> None:
    client, group, expected = _CASES[case]
    ((verdict, answer),) = predicted(client, [group])
    assert (verdict, answer) == ("ok", {name: _partitions(text) for name, text in expected.items()})


def test_a_leader_that_crashes() -> None:
    members = [
        _member("m0", "t", "t 0 1"),
        _member("m1", "u", "u 0 1 2 3 4 5"),
        _member("m2", "t u"),
    ]
    ((verdict, detail),) = predicted(LIBRDKAFKA, [Group({"t": 2, "u": 6}, members, _COOPERATIVE)])
    assert verdict == "undefined"
    assert "crashes" in detail
