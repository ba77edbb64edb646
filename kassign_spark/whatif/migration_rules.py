"""Decide whether a group can change its protocol, and list the obstacles (kip-848.md, 6 and 8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.client.group_state import INEXACT, OK
from kassign_spark.display import first_names

CLASSIC, CONSUMER = "classic", "consumer"
READY, RISKY, BLOCKED = "ready", "risky", "blocked"
VERDICTS = (READY, RISKY, BLOCKED)
ONLINE, OFFLINE = "online", "offline"
POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
"""``group.consumer.migration.policy``."""
NO_LIMIT = 2**31 - 1

_NAMED = 3
_STREAMS = "stream"
_CONNECT = ("compatible", "sessioned", "default")
_OTHERWISE, _INTERNAL = "otherwise", "internal"
PATTERN_FINDINGS = (_OTHERWISE, _INTERNAL)
"""RE2/J's reading of a client's pattern that it accepts: it may differ, or match more."""


class BrokerRules(NamedTuple):
    """Settings of the broker that decide.

    Attributes:
        policy: ``group.consumer.migration.policy``.
        max_size: ``group.consumer.max.size`` on the way to the new protocol, ``group.max.size`` on
            the way back.
    """

    policy: str = "bidirectional"
    max_size: int = NO_LIMIT


class Judgement(NamedTuple):
    """Columns of the verdicts of ``migrate``."""

    verdict: str
    way: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a group that is to migrate.

    Attributes:
        to: `consumer` or `classic`.
        target_assignor: that it is to have then.
        assignors: of the members, each once; None where one names none.
        member_count: how many they are.
        patterns: a member, its pattern, and one of ``PATTERN_FINDINGS`` or what ``re2j.problem``
            says.
        regexes: members that subscribe by a regex which the broker resolves.
        clients: what is wrong with the settings of the group's clients, a text each.
        lost_locality: how many more partitions are read across racks at the end.
        shared_counts: topics that `range` gives in step, as they have as many partitions.
        failing: of classic rebalances on the way, verdict and detail.
        shared_instances: each ``group.instance.id`` that several members have.
        client_families: the libraries that its members run, ``client_libraries.CLIENTS``.
        is_single: whether it has one member, which leaves it empty when it restarts: an empty
            group takes members of either protocol, whatever it was.
    """

    to: str
    target_assignor: str
    assignors: Sequence[str | None]
    member_count: int
    patterns: Sequence[tuple[str, str, str]] = ()
    regexes: Sequence[str] = ()
    clients: Sequence[str] = ()
    lost_locality: int = 0
    shared_counts: Sequence[str] = ()
    failing: Sequence[tuple[str, str | None]] = ()
    shared_instances: Sequence[str] = ()
    client_families: Sequence[str] = ()
    is_single: bool = False


def judge(facts: Facts, rules: BrokerRules) -> Judgement:
    """Judge whether a group can migrate, how, and what to mind; the gravest reasons first."""
    blocks = _blocks_upgrade if facts.to == CONSUMER else _blocks_downgrade
    for_good, online = blocks(facts, rules)
    if for_good or online:
        return Judgement(BLOCKED, None if for_good else OFFLINE, "; ".join([*for_good, *online]))
    risks = _risks(facts, rules)
    way = OFFLINE if facts.is_single else ONLINE
    return Judgement(RISKY if risks else READY, way, "; ".join(risks) or None)


def _blocks_upgrade(facts: Facts, rules: BrokerRules) -> tuple[list[str], list[str]]:
    """Return what the broker or new client refuses: always, or while members are online.

    The second goes away when all members are stopped first.
    """
    reasons, online = [], []
    if _STREAMS in facts.assignors:
        reasons.append(
            "assignor stream is that of Kafka Streams, whose assignments carry user data: the "
            "broker refuses the first new member (GROUP_ID_NOT_FOUND); Streams has a protocol of "
            "its own (KIP-1071)"
        )
    if any(name in _CONNECT for name in facts.assignors):
        reasons.append("a group of Kafka Connect, which has no consumers that could go over")
    if facts.member_count > rules.max_size:
        reasons.append(
            f"{facts.member_count} members, more than the {rules.max_size} of "
            "group.consumer.max.size: the broker refuses to convert it (GROUP_ID_NOT_FOUND), and "
            "the last ones also when they come one by one (GROUP_MAX_SIZE_REACHED)"
        )
    if facts.shared_instances:
        reasons.append(
            f"group.instance.id {first_names(facts.shared_instances, _NAMED)} is used by several "
            "members: the broker refuses all but the oldest in the new protocol "
            "(UNRELEASED_INSTANCE_ID); give each member its own"
        )
    reasons += facts.clients
    if rules.policy not in ("bidirectional", "upgrade") and not facts.is_single:
        online.append(
            f"group.consumer.migration.policy is {rules.policy}: the broker refuses a new member "
            "as long as a classic one is there (GROUP_ID_NOT_FOUND); stop all members first"
        )
    return reasons, online


def _blocks_downgrade(facts: Facts, rules: BrokerRules) -> tuple[list[str], list[str]]:
    reasons, online = [], []
    if facts.regexes:
        reasons.append(
            f"member {facts.regexes[0]} subscribes by a SubscriptionPattern, which a classic "
            "consumer refuses (UnsupportedOperationException): give it a java.util.regex.Pattern"
        )
    if facts.member_count > rules.max_size:
        reasons.append(
            f"{facts.member_count} members, more than the {rules.max_size} of group.max.size"
        )
    if rules.policy == "upgrade" and not facts.is_single:
        online.append(
            "group.consumer.migration.policy is upgrade: when the last new member leaves, the "
            "group stays one of the new protocol with classic members only, in which nobody "
            "computes a target: its partitions stay unread until somebody joins; stop all members "
            "first"
        )
    if rules.policy == "disabled" and not facts.is_single:
        online.append(
            "group.consumer.migration.policy is disabled: the broker refuses a classic member as "
            "long as a new one is there (INCONSISTENT_GROUP_PROTOCOL); stop all members first"
        )
    return reasons, online


def _risks(facts: Facts, rules: BrokerRules) -> list[str]:
    risks = []
    if facts.to == CONSUMER:
        for name in () if facts.is_single else facts.assignors:
            if name is None:
                risks.append("a member names no assignor, so what its assignments carry is unknown")
            elif name not in KAFKAS:
                risks.append(
                    f"assignor {name} is none of Kafka's own: if its assignments carry user data, "
                    "the broker refuses the first new member (GROUP_ID_NOT_FOUND)"
                )
        if rules.policy == "upgrade" and not facts.is_single:
            risks.append(
                "group.consumer.migration.policy is upgrade, so there is no way back online: if "
                "all new members leave while classic ones are there, the new ones' partitions stay "
                "unread until somebody joins"
            )
        risks += [_describe_finding(*pattern) for pattern in facts.patterns]
        if facts.shared_counts and facts.target_assignor != "range":
            risks.append(
                "range gives one member the same partitions of "
                f"{first_names(facts.shared_counts, _NAMED)}, {facts.target_assignor} "
                "does not: where records are joined, let members name range as "
                "group.remote.assignor"
            )
    if facts.lost_locality > 0:
        count = facts.lost_locality
        risks.append(
            f"{count} more partition{'s' if count > 1 else ''} read across racks in the end, as no "
            "assignor of the coordinator looks at racks"
        )
    if len(facts.client_families) > 1:
        risks.append(
            f"members run {first_names(facts.client_families, _NAMED)}: each rebalance of the "
            "classic protocol follows the rules of the one that leads then"
        )
    for verdict, detail in facts.failing:
        if verdict not in (OK, INEXACT):
            reason = f", {detail}" if detail else ""
            risks.append(f"a rebalance of the classic protocol on the way: {verdict}{reason}")
    return risks


def _describe_finding(member: str, pattern: str, finding: str) -> str:
    meaning = {
        _OTHERWISE: "the broker may read it in another way",
        _INTERNAL: "it finds internal topics too",
    }.get(finding, finding if finding.startswith("the broker") else f"it {finding}")
    return (
        f'pattern "{pattern}" of member {member}: as a SubscriptionPattern {meaning}; as a '
        "java.util.regex.Pattern it stays what it is"
    )
