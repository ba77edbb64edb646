"""Why a group rebalanced, in a word and in a sentence."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.groups.numbers import Flags, Longs, starts
from kassign_spark.history import rebalance_columns as c
from kassign_spark.history.absences import Absences, Turnover
from kassign_spark.history.log_arrays import View

_TYPES = pa.array(["classic", "consumer"])
_MOST_NAMED = 5
"""Names that a sentence lists; of more it says how many."""


def explain_heads(
    view: View,
    turnover: Turnover,
    absences: Absences,
    heads: Longs,
    grown: tuple[Longs, Longs],
    handed_over: Longs,
) -> tuple[pa.Array, pa.Array]:
    """Choose the reason of each head (see ``rebalance_columns.REASONS``), and say more about it.

    ``grown`` are records and the topics that grew at them, ``handed_over`` counts partitions by
    record.
    """
    records, handed_over = view.records, handed_over[heads]
    size = len(records.group)
    before = np.maximum(records.previous[heads], 0)

    def count(record: Longs, weights: Flags | None = None) -> Longs:
        return np.bincount(record, weights, size).astype(np.int64)[heads]

    joined, left = count(turnover.joined_at), count(turnover.left_at)
    # A static member that is back joins under another id; it is no other.
    returned = count(turnover.returned_at)
    # Of the new protocol its return makes no epoch: it came to one that something else made.
    epochs_of_returns = np.where(records.is_consumer[heads], 0, returned)
    restarted = count(turnover.joined_at, absences.away >= 0)
    changed, growing = count(turnover.changed_at), count(grown[0])
    crashed, slow = (
        count(turnover.left_at, absences.kind == c.LEFT_KINDS.index(kind))
        for kind in (c.CRASHED, c.TOO_SLOW)
    )
    first = records.is_first[heads]
    generation, previous = records.generation[heads], records.generation[before]
    converted = ~first & (records.is_consumer[heads] != records.is_consumer[before])
    gap = ~first & ~converted & (generation != previous + 1)
    assignor, had = records.assignor[heads], records.assignor[before]
    other = ~first & ~converted & (assignor != had) & (assignor > 0) & (had > 0)
    tests = {
        c.FIRST: first,
        c.GAP: gap,
        c.PROTOCOL_CHANGED: converted,
        c.MEMBER_CRASHED: crashed > 0,
        c.MEMBER_TOO_SLOW: slow > 0,
        c.MEMBER_RESTARTED: (joined + epochs_of_returns > 0)
        & (joined == restarted)
        & (left <= restarted),
        c.MEMBERS_CHANGED: (joined > 0) & (left > 0),
        c.MEMBER_JOINED: joined > 0,
        c.MEMBER_LEFT: left > 0,
        c.ASSIGNOR_CHANGED: other,
        c.SUBSCRIPTION_CHANGED: changed > 0,
        c.PARTITIONS_ADDED: growing > 0,
        c.HANDOVER: handed_over > 0,
    }
    number = np.select(list(tests.values()), range(len(tests)), len(tests))
    reason = pa.array([*tests, c.UNKNOWN]).take(pa.array(number))
    clients = _Sentence(view, heads)
    worst = np.flatnonzero(absences.kind > 0)
    parts = [
        _when(first & (generation > 1), "the log begins with generation ", _to_text(generation)),
        _when(
            gap & (generation > previous + 1),
            "generations ", _to_text(previous + 1), " to ", _to_text(generation - 1),
            " are not in the log",
        ),
        _when(gap & (generation <= previous), "after generation ", _to_text(previous)),
        _when(converted, "to the protocol ", _TYPES.take(pa.array(records.is_consumer[heads] * 1))),
        clients.of("joined ", turnover.joined, turnover.joined_at),
        clients.longest("away for ", absences.away, turnover.joined_at),
        clients.of("left ", turnover.left, turnover.left_at),
        clients.silence(absences, worst, turnover.left_at),
        clients.of("subscription changed of ", turnover.changed, turnover.changed_at),
        _when(other, "assignor ", view.texts.take(had), " -> ", view.texts.take(assignor)),
        clients.listed("grown: ", grown[0], view.topics.take(grown[1]), " topics"),
        _when(
            number == list(tests).index(c.HANDOVER),
            _to_text(handed_over), " partitions handed over",
        ),
        _when(returned > 0, _to_text(returned), " static members came back"),
    ]  # fmt: skip
    # Arrow gives nothing for rows that are null altogether: each begins with a text.
    begun = pa.repeat("", len(heads))
    joint = pc.binary_join_element_wise(begun, *parts, "; ", null_handling="skip")
    detail = pc.utf8_slice_codeunits(joint, start=len("; "))
    return reason, pc.if_else(pc.equal(detail, ""), pa.scalar(None, pa.string()), detail)


def _to_text(numbers: Longs) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _when(rows: Flags, *parts: pa.Array | str) -> pa.Array:
    """Join texts where a condition holds; null elsewhere."""
    text = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="?")
    if isinstance(text, pa.Scalar):
        text = pa.repeat(text, len(rows))
    return pc.if_else(pa.array(rows), text, pa.scalar(None, pa.string()))


class _Sentence:
    """Parts of sentences about the members and topics of heads."""

    def __init__(self, view: View, heads: Longs) -> None:
        self._view = view
        self._count = len(heads)
        self._place = np.full(len(view.records.group), -1)
        self._place[heads] = np.arange(len(heads))

    def of(self, prefix: str, rows: Longs, record: Longs) -> pa.Array:
        """Name the clients of rows of ``View.present``, or their members where they have none."""
        view, present = self._view, self._view.present
        client, member = present.client[rows], present.member[rows]
        names = pc.coalesce(view.texts.take(client), view.people.take(member))
        return self.listed(prefix, record, names, " members")

    def longest(self, prefix: str, span: Longs, record: Longs) -> pa.Array:
        """Name the longest of spans, in seconds; -1 is none."""
        longest = self._most(span, record)
        return _when(longest >= 0, prefix, _seconds(longest), " s")

    def silence(self, absences: Absences, rows: Longs, record: Longs) -> pa.Array:
        """Name the longest silence of members that did not close."""
        silence, limit = (
            self._most(duration[rows], record[rows])
            for duration in (absences.silence, absences.limit)
        )
        sentence = _when(
            silence >= 0, "silent for ", _seconds(silence), " s, allowed ", _seconds(limit), " s"
        )
        return pc.coalesce(sentence, _when(limit >= 0, "static, allowed ", _seconds(limit), " s"))

    def _most(self, values: Longs, record: Longs) -> Longs:
        most = np.full(len(self._place), -1)
        np.maximum.at(most, record, values)
        return most[self._place >= 0]

    def listed(self, prefix: str, record: Longs, names: pa.Array, noun: str) -> pa.Array:
        """Name some in the order of their names, or say how many they are."""
        place = self._place[record]
        order = np.lexsort((np.asarray(pc.rank(names, tiebreaker="first")), place))
        order = order[place[order] >= 0]
        count = np.bincount(place[order], minlength=self._count)
        few = count <= _MOST_NAMED
        order = order[few[place[order]]]
        lists = pa.ListArray.from_arrays(
            pa.array(starts(np.where(few, count, 0)).astype(np.int32)), names.take(pa.array(order))
        )
        text = pc.if_else(
            pa.array(few),
            pc.binary_join(lists, ", "),
            pc.binary_join_element_wise(_to_text(count), noun, ""),
        )
        return _when(count > 0, prefix, text)


def _seconds(micros: Longs) -> pa.Array:
    tenths = np.maximum(micros, 0) // 100_000
    return pc.binary_join_element_wise(_to_text(tenths // 10), _to_text(tenths % 10), ".")
