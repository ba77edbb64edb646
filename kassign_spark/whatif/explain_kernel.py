"""Find which assignor explains the observed assignment of each group in a task."""

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import KAFKAS, STICKY, assignors_of
from kassign_spark.client.group_state import UNANSWERED
from kassign_spark.client_libraries import ASSIGNORS, CLIENTS, COORDINATOR_ASSIGNORS, clients_with
from kassign_spark.coordinator.assignor_votes import choose_assignor
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import group_columns, with_nulls
from kassign_spark.groups.leading_clients import SEVERAL
from kassign_spark.groups.numbers import Flags, Longs, key, utf_8_rank
from kassign_spark.groups.read import CLAIM, MEMBER, OBSERVED, read_kinds
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.plans.exact import ClientOutcomes, led_by, predict_batch
from kassign_spark.plans.rebalance_rounds import ASSIGNED, RETAINED, RebalanceSteps
from kassign_spark.results import columns_of
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.whatif.compare_coordinator import follow_coordinator, group_states
from kassign_spark.whatif.explained_variants import NAMES, Variant, conclude, groups_by_lot

EXPLAINED = columns_of("explain")
MOST_STALE = 16
"""Members of a group whose stale claims are tried one by one, the first by member id."""


def explain_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Explain the groups of a task: rows of ``rows.fold``, and of kind OBSERVED: ``EXPLAINED``."""
    tried = _Tried(table)
    is_consumer_group = tried.of_coordinator
    for number in range(len(ASSIGNORS)):
        tried.add(number, ~is_consumer_group & tried.can_run(number))
        for leader in tried.possible_leaders(number):
            tried.add(number, ~is_consumer_group & tried.may_lead(leader), leader=leader)
    tried.add_coordinators(table)
    stale = _stale(tried.batch, tried.claims)
    stale = [
        [] if is_consumer else members
        for members, is_consumer in zip(stale, is_consumer_group.tolist(), strict=True)
    ]
    for place in range(max(map(len, stale), default=0)):
        without = np.array([of_group[place] if place < len(of_group) else -1 for of_group in stale])
        for number in range(STICKY, len(KAFKAS)):
            tried.add(number, without >= 0, without)
    yield tried.table()


def explain_generations_arrow(table: pa.Table) -> pa.Table:
    """Explain groups whose claims all reached the leader, as ``explain_arrow`` does.

    None is left out, and the others are asked only where the assignor that the members name does
    not explain what was seen.
    """
    tried = _Tried(table)
    for number in range(len(KAFKAS)):
        tried.add(number, tried.named == number)
    is_open = np.array([not attempts or attempts[0].is_other for attempts in tried.variants], bool)
    for number in range(len(KAFKAS)):
        tried.add(number, is_open & (tried.named != number))
    return tried.table()


def _stale(batch: Batch, claims: Claims) -> list[list[int]]:
    """Return each group's members with claims of an older generation, first ones by id."""
    latest = np.full(batch.group_count, -1)
    np.maximum.at(latest, batch.member_group, batch.generation)
    claiming = np.zeros(len(batch.member_group), bool)
    claiming[claims.member[claims.member >= 0]] = True
    stale = np.flatnonzero(claiming & (batch.generation < latest[batch.member_group]))
    rank = utf_8_rank(batch.member_names)[batch.member_name[stale] - 1]
    of_group: list[list[int]] = [[] for _ in range(batch.group_count)]
    for member in stale[np.argsort(rank)].tolist():
        of_group[batch.member_group[member]].append(member)
    return [of_group[:MOST_STALE] for of_group in of_group]


class _Tried:
    """The groups of a task: what assignors give them, beside what was seen.

    Attributes:
        batch: the groups.
        claims: what their members say that they own.
        named: of each group the number of its own assignor in ``NAMES``; -1: none of Kafka's.
        of_coordinator: which of them are of the new protocol.
        variants: of each group what was tried.
    """

    def __init__(self, table: pa.Table) -> None:
        batch, (self.claims, self._observed), _ = read_kinds(table, (CLAIM, OBSERVED))
        self.batch, self.named = batch, assignors_of(batch, ASSIGNORS)
        self.of_coordinator = _is_coordinated(table, batch)
        self._is_open = batch.leading_client == SEVERAL
        self.variants: list[list[Variant]] = [[] for _ in range(batch.group_count)]
        self._members = batch.member_names.to_pylist()
        self._topics = batch.topic_names.to_pylist()
        self._member_rank = np.append(0, utf_8_rank(batch.member_names))
        self._topic_rank = np.append(0, batch.topic_order)

    def can_run(self, number: int) -> Flags:
        """Return which groups may be led by a library that has an assignor; all may by Java's."""
        name = ASSIGNORS[number]
        flags: Flags = np.isin(self.batch.leading_client, clients_with(name)) | (name in KAFKAS)
        return flags

    def possible_leaders(self, number: int) -> list[int]:
        """Return the libraries with an assignor that may lead groups whose leader is not known."""
        leaders = np.unique(self.batch.client_number[self._is_open[self.batch.member_group]])
        having = clients_with(ASSIGNORS[number])
        return [leader for leader in leaders.tolist() if leader in having]

    def may_lead(self, leader: int) -> Flags:
        """Return the groups whose leader is not known and may be this library."""
        runs = np.zeros(self.batch.group_count, bool)
        runs[self.batch.member_group[self.batch.client_number == leader]] = True
        may_lead: Flags = runs & self._is_open
        return may_lead

    def add(
        self,
        number: int,
        groups: Flags,
        without: Longs | None = None,
        leader: int | None = None,
    ) -> None:
        """Predict some groups by an assignor, without the claims of a member of each, or as led."""
        if not groups.any():
            return
        batch, claims = self.batch, self.claims
        if leader is not None:
            batch = led_by(batch, leader)
        if without is not None:
            claims = claims.where(claims.member != without[claims.group])
        assignor = np.full(batch.group_count, number)
        judged = predict_batch(batch, claims, batch.generation, assignor, groups)
        by_lot = groups_by_lot(batch, claims, self._observed, judged, ASSIGNORS[number])
        name = "" if leader is None else CLIENTS[leader]
        self._note(number, groups, judged, without, by_lot, name)

    def add_coordinators(self, table: pa.Table) -> None:
        """Add the answers of the coordinator's assignors for groups of the new protocol."""
        groups = self.of_coordinator
        if not groups.any():
            return
        batch = self.batch
        states = [
            of_group if is_theirs else None
            for of_group, is_theirs in zip(
                group_states(table, batch, self.claims), groups.tolist(), strict=True
            )
        ]
        for number, name in enumerate(COORDINATOR_ASSIGNORS, start=len(ASSIGNORS)):
            judged = follow_coordinator(batch, self.claims, states, name)
            self._note(
                number, groups, judged._replace(steps=_settle_steps(batch, judged.steps, groups))
            )
        for group in np.flatnonzero(groups).tolist():
            (state, _) = states[group] or (None, None)
            if state is not None:
                self.named[group] = NAMES.index(
                    choose_assignor(state.votes).assignor, len(ASSIGNORS)
                )

    def _note(
        self,
        number: int,
        groups: Flags,
        judged: ClientOutcomes,
        without: Longs | None = None,
        by_lot: Collection[int] = (),
        leader: str = "",
    ) -> None:
        """Record an answer beside what was observed, which ``by_lot`` groups may have drawn."""
        batch = self.batch
        differing, first = self._compare(judged.steps, groups)
        for group in np.flatnonzero(groups).tolist():
            verdict = judged.verdicts[group][0]
            is_by_lot = group in by_lot
            left_out = (
                "" if without is None else self._members[batch.member_name[without[group]] - 1]
            )
            self.variants[group].append(
                Variant(
                    not is_by_lot and (differing[group] > 0 or verdict in UNANSWERED),
                    without is not None,
                    0 if is_by_lot else int(differing[group]),
                    self.named[group] != number,
                    is_by_lot,
                    number,
                    leader,
                    left_out,
                    verdict,
                    first.get(group),
                )
            )

    def _compare(self, steps: RebalanceSteps, groups: Flags) -> tuple[Longs, dict[int, str]]:
        """Count partitions that are with others than were seen, and find each group's first."""
        batch, seen = self.batch, self._observed.where(groups[self._observed.group])
        group = np.concatenate((seen.group, batch.member_group[steps.member]))
        topic = np.concatenate((seen.topic, steps.topic))
        number = np.concatenate((seen.partition, steps.partition))
        name = np.concatenate((seen.name, batch.member_name[steps.member]))
        sign = np.repeat([1, -1], [len(seen.group), len(steps.member)])
        by_topic = np.unique(key(group, self._topic_rank[topic]), return_inverse=True)[1]
        keys, first, partition = np.unique(
            key(by_topic, number), return_index=True, return_inverse=True
        )
        owners, of_row = np.unique(key(partition, name), return_inverse=True)
        balance = np.bincount(of_row, sign, len(owners))
        differs = np.zeros(len(keys), bool)
        differs[(owners >> 32)[balance != 0]] = True
        differing = np.flatnonzero(differs)
        of_group = group[first[differing]]
        count = np.bincount(of_group, minlength=batch.group_count)
        first_difference: dict[int, str] = {}
        begins = np.flatnonzero(np.diff(of_group, prepend=-1))
        order = np.argsort(partition, kind="stable")
        ends = np.searchsorted(partition[order], differing[begins], side="right")
        starts = np.searchsorted(partition[order], differing[begins])
        for place_in_group, start, end in zip(
            begins.tolist(), starts.tolist(), ends.tolist(), strict=True
        ):
            rows = order[start:end]
            observed, expected = (self._names(name[rows[sign[rows] == side]]) for side in (1, -1))
            place = f"{self._topics[topic[rows[0]] - 1]}-{number[rows[0]]}"
            first_difference[int(of_group[place_in_group])] = (
                f"{place} is with {observed}, not with {expected}"
            )
        return count, first_difference

    def _names(self, codes: Longs) -> str:
        codes = codes[np.argsort(self._member_rank[codes])]
        return ", ".join(self._members[code - 1] for code in codes) or "nobody"

    def table(self) -> pa.Table:
        """Return the explanation of each group: ``EXPLAINED``."""
        own_assignors = self.named.tolist()
        best = [
            conclude(sorted(of_group), number)
            for of_group, number in zip(self.variants, own_assignors, strict=True)
        ]
        columns = group_columns(self.batch, np.arange(self.batch.group_count))
        columns["own_assignor"] = [
            None if number < 0 else NAMES[number] for number in own_assignors
        ]
        columns["assignor"] = [assignor for assignor, _, _ in best]
        columns["differing_count"] = [count for _, count, _ in best]
        columns["detail"] = [detail for _, _, detail in best]
        return with_nulls(EXPLAINED, columns)


def _is_coordinated(table: pa.Table, batch: Batch) -> Flags:
    """Return which groups use the new protocol."""
    consumer_rows = table.filter(
        pc.and_(pc.equal(table["kind"], MEMBER), pc.equal(table["topic"], CONSUMER))
    )
    keys = set(zip(*(consumer_rows[name].to_pylist() for name in GROUP_KEY), strict=True))
    groups = group_columns(batch, np.arange(batch.group_count))
    names = zip(*(groups[name].to_pylist() for name in GROUP_KEY), strict=True)
    return np.array([name in keys for name in names], bool)


def _settle_steps(batch: Batch, steps: RebalanceSteps, groups: Flags) -> RebalanceSteps:
    """Return what members of some groups have when the last round is over."""
    group = batch.member_group[steps.member]
    last = np.zeros(batch.group_count, np.int64)
    np.maximum.at(last, group, steps.round)
    has = (steps.action == RETAINED) | (steps.action == ASSIGNED)
    rows = groups[group] & has & (steps.round == last[group])
    return steps.where(rows)
