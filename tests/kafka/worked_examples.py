"""Examples from articles, tutorials and Kafka's own documentation, in a compact notation.

Topics are ``"T0:4 T1:4"`` (name and number of partitions), members ``"C0 C1"`` (all subscribe to
all) or ``"C0{T0} C1{T0,T1}"``, assignments ``"C0[T0p0 T1p0] C1[]"``. The expected answers are those
of the real client; numbers that an article counts from one are counted from zero here.
"""

import re
from typing import NamedTuple

from tests.kafka.oracle import Assigned, Group, Member


class Example(NamedTuple):
    name: str
    group: Group
    expected: Assigned


def parse_assignment(text: str) -> Assigned:
    """``"C0[T0p0 T1p0] C1[]"`` as the oracle's form."""
    return {
        member: [(topic, int(number)) for topic, number in re.findall(r"(\S+)p(\d+)", tps)]
        for member, tps in re.findall(r"(\S+?)\[([^\]]*)\]", text)
    }


def parse_group(assignor: str, topics: str, members: str, owned: str = "") -> Group:
    """A group whose members own what ``owned`` says, in generation 1 if it says anything."""
    sizes = {name: int(count) for name, count in re.findall(r"(\S+):(\d+)", topics)}
    claims = parse_assignment(owned)
    return Group(
        sizes,
        [
            Member(
                member_id,
                subscription.split(",") if subscription else list(sizes),
                claims.get(member_id, []),
                1 if owned else None,
            )
            for member_id, subscription in re.findall(r"([^\s{]+)(?:\{([^}]*)\})?", members)
        ],
        assignor,
    )


def _block(member: int, partitions: int) -> str:
    return " ".join(f"tp{p}" for p in range(member * partitions, (member + 1) * partitions))


_DIFFERING = "c0{t0,t1,t2} c1{t0,t1} c2{t2}"
_FOUR_OF_TWO = "C0[T0p0 T1p1 T3p0] C1[T0p1 T2p0 T3p1] C2[T1p0 T2p1]"
_EX_3 = "c0[t0p0 t0p2 t1p0 t1p2] c1[t0p1 t0p3 t1p1] c2[t2p0 t2p1]"

_CASES = [
    (
        "two topics of four, three members",
        ("range", "T0:4 T1:4", "C0 C1 C2"),
        "C0[T0p0 T0p1 T1p0 T1p1] C1[T0p2 T1p2] C2[T0p3 T1p3]",
    ),
    (
        "nested subscriptions",
        ("roundrobin", "T0:1 T1:2 T2:3", "C0{T0} C1{T0,T1} C2{T0,T1,T2}"),
        "C0[T0p0] C1[T1p0] C2[T1p1 T2p0 T2p1 T2p2]",
    ),
    (
        "nested subscriptions",
        ("sticky", "T0:1 T1:2 T2:3", "C0{T0} C1{T0,T1} C2{T0,T1,T2}"),
        "C0[T0p0] C1[T1p0 T1p1] C2[T2p0 T2p1 T2p2]",
    ),
    (
        "nested subscriptions, the first leaves",
        ("roundrobin", "T0:1 T1:2 T2:3", "C1{T0,T1} C2{T0,T1,T2}"),
        "C1[T0p0 T1p1] C2[T1p0 T2p0 T2p1 T2p2]",
    ),
    (
        "nested subscriptions, the first leaves",
        (
            "sticky",
            "T0:1 T1:2 T2:3",
            "C1{T0,T1} C2{T0,T1,T2}",
            "C1[T1p0 T1p1] C2[T2p0 T2p1 T2p2]",
        ),
        "C1[T1p0 T1p1 T0p0] C2[T2p0 T2p1 T2p2]",
    ),
    ("four topics of two", ("sticky", "T0:2 T1:2 T2:2 T3:2", "C0 C1 C2"), _FOUR_OF_TWO),
    ("four topics of two", ("roundrobin", "T0:2 T1:2 T2:2 T3:2", "C0 C1 C2"), _FOUR_OF_TWO),
    (
        "four topics of two, the second leaves",
        ("sticky", "T0:2 T1:2 T2:2 T3:2", "C0 C2", _FOUR_OF_TWO),
        "C0[T0p0 T1p1 T3p0 T0p1] C2[T1p0 T2p1 T2p0 T3p1]",
    ),
    (
        "four topics of two, the second leaves",
        ("roundrobin", "T0:2 T1:2 T2:2 T3:2", "C0 C2"),
        "C0[T0p0 T1p0 T2p0 T3p0] C2[T0p1 T1p1 T2p1 T3p1]",
    ),
    ("seven by three", ("range", "t:7", "c0 c1 c2"), "c0[tp0 tp1 tp2] c1[tp3 tp4] c2[tp5 tp6]"),
    (
        "differing, sizes 3 2 1",
        ("range", "t0:3 t1:2 t2:1", _DIFFERING),
        "c0[t0p0 t0p1 t1p0 t2p0] c1[t0p2 t1p1] c2[]",
    ),
    (
        "differing, sizes 3 2 1",
        ("roundrobin", "t0:3 t1:2 t2:1", _DIFFERING),
        "c0[t0p0 t0p2 t1p1] c1[t0p1 t1p0] c2[t2p0]",
    ),
    (
        "differing, sizes 4 3 2",
        ("roundrobin", "t0:4 t1:3 t2:2", _DIFFERING),
        "c0[t0p0 t0p2 t1p0 t1p2 t2p1] c1[t0p1 t0p3 t1p1] c2[t2p0]",
    ),
    ("differing, sizes 4 3 2", ("sticky", "t0:4 t1:3 t2:2", _DIFFERING), _EX_3),
    (
        "differing, a fourth joins",
        ("sticky", "t0:4 t1:3 t2:2", _DIFFERING + " c3{t0}", _EX_3),
        "c0[t0p2 t1p0 t1p2] c1[t0p3 t1p1] c2[t2p0 t2p1] c3[t0p0 t0p1]",
    ),
    (
        "differing, a fourth joins, first round",
        ("cooperative-sticky", "t0:4 t1:3 t2:2", _DIFFERING + " c3{t0}", _EX_3),
        "c0[t0p2 t1p0 t1p2] c1[t0p3 t1p1] c2[t2p0 t2p1] c3[]",
    ),
    (
        "differing, a fourth joins, second round",
        (
            "cooperative-sticky",
            "t0:4 t1:3 t2:2",
            _DIFFERING + " c3{t0}",
            "c0[t0p2 t1p0 t1p2] c1[t0p3 t1p1] c2[t2p0 t2p1] c3[]",
        ),
        "c0[t0p2 t1p0 t1p2] c1[t0p3 t1p1] c2[t2p0 t2p1] c3[t0p0 t0p1]",
    ),
    ("five by three", ("range", "t:5", "c0 c1 c2"), "c0[tp0 tp1] c1[tp2 tp3] c2[tp4]"),
    ("five by three", ("roundrobin", "t:5", "c0 c1 c2"), "c0[tp0 tp3] c1[tp1 tp4] c2[tp2]"),
    (
        "a hundred by twenty",
        ("range", "t:100", " ".join(f"c{m:02}" for m in range(20))),
        " ".join(f"c{m:02}[{_block(m, 5)}]" for m in range(20)),
    ),
    (
        "a hundred by twenty",
        ("roundrobin", "t:100", " ".join(f"c{m:02}" for m in range(20))),
        " ".join(f"c{m:02}[{' '.join(f'tp{p}' for p in range(m, 100, 20))}]" for m in range(20)),
    ),
    (
        "ten by three",
        ("range", "P:10", "c1 c2 c3"),
        "c1[Pp0 Pp1 Pp2 Pp3] c2[Pp4 Pp5 Pp6] c3[Pp7 Pp8 Pp9]",
    ),
    (
        "ten by four",
        ("range", "P:10", "c1 c2 c3 c4"),
        "c1[Pp0 Pp1 Pp2] c2[Pp3 Pp4 Pp5] c3[Pp6 Pp7] c4[Pp8 Pp9]",
    ),
    (
        "one shared member of two topics",
        ("roundrobin", "T1:4 T2:6", "C1{T1} C2{T1,T2} C3{T2}"),
        "C1[T1p0 T1p2] C2[T1p1 T1p3 T2p1 T2p3 T2p5] C3[T2p0 T2p2 T2p4]",
    ),
    (
        "two topics of three, two members",
        ("range", "t1:3 t2:3", "c1 c2"),
        "c1[t1p0 t1p1 t2p0 t2p1] c2[t1p2 t2p2]",
    ),
    (
        "two topics of three, two members",
        ("roundrobin", "t1:3 t2:3", "c1 c2"),
        "c1[t1p0 t1p2 t2p1] c2[t1p1 t2p0 t2p2]",
    ),
    (
        "nested, sizes 1 2 2",
        ("roundrobin", "t1:1 t2:2 t3:2", "c1{t1} c2{t1,t2} c3{t1,t2,t3}"),
        "c1[t1p0] c2[t2p0] c3[t2p1 t3p0 t3p1]",
    ),
    (
        "nested, sizes 1 2 2",
        ("sticky", "t1:1 t2:2 t3:2", "c1{t1} c2{t1,t2} c3{t1,t2,t3}"),
        "c1[t1p0] c2[t2p0 t2p1] c3[t3p0 t3p1]",
    ),
    (
        "four topics of two, the first leaves",
        ("roundrobin", "t1:2 t2:2 t3:2 t4:2", "c2 c3"),
        "c2[t1p0 t2p0 t3p0 t4p0] c3[t1p1 t2p1 t3p1 t4p1]",
    ),
    (
        "four topics of two, the first leaves",
        (
            "sticky",
            "t1:2 t2:2 t3:2 t4:2",
            "c2 c3",
            "c2[t1p1 t3p0 t4p1] c3[t2p0 t3p1]",
        ),
        "c2[t1p1 t3p0 t4p1 t1p0] c3[t2p0 t3p1 t2p1 t4p0]",
    ),
    (
        "one topic of three, a third joins, first round",
        ("cooperative-sticky", "t:3", "c1 c2 c3", "c1[tp0 tp1] c2[tp2]"),
        "c1[tp0] c2[tp2] c3[]",
    ),
    (
        "one topic of three, a third joins, second round",
        ("cooperative-sticky", "t:3", "c1 c2 c3", "c1[tp0] c2[tp2]"),
        "c1[tp0] c2[tp2] c3[tp1]",
    ),
    ("one topic of three", ("sticky", "t:3", "c1 c2"), "c1[tp0 tp2] c2[tp1]"),
    ("one topic of three", ("cooperative-sticky", "t:3", "c1 c2"), "c1[tp0 tp2] c2[tp1]"),
]

EXAMPLES = [
    Example(f"{group[0]}: {name}", parse_group(*group), parse_assignment(expected))
    for name, group, expected in _CASES
]
