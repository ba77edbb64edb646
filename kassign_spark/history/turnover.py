"""Who came, went, or changed what it subscribes to, from one generation to the next."""

from typing import NamedTuple

import numpy as np

from kassign_spark.groups.numbers import Longs
from kassign_spark.history.log_arrays import View


class Turnover(NamedTuple):
    """Rows of ``View.present`` that came, went or changed, and at which record.

    Of one that went the row is of the record before.
    """

    joined: Longs
    joined_at: Longs
    left: Longs
    left_at: Longs
    changed: Longs
    changed_at: Longs
    returned_at: Longs
    """Records at which a static member was back under another member id."""


def turnover(seen: View) -> Turnover:
    """See who is in a record and not in the one before, and the other way round."""
    present, records = seen.present, seen.records
    group = records.group[present.record]
    order = np.lexsort((present.record, present.identity, group))
    record, identity = present.record[order], present.identity[order]
    group = group[order]
    same = (group[1:] == group[:-1]) & (identity[1:] == identity[:-1])
    follows = np.zeros(len(order), bool)
    follows[1:] = same & (record[1:] == record[:-1] + 1) & ~records.is_first[record[1:]]
    stays = np.append(follows[1:], False)[: len(order)]
    joins = ~follows & ~records.is_first[record]
    after = np.minimum(record + 1, len(records.group) - 1)
    goes = ~stays & (after > record) & (records.group[after] == group) & ~records.is_first[after]
    before = np.flatnonzero(follows) - 1
    now = before + 1
    changes = present.subscription[order[now]] != present.subscription[order[before]]
    renamed = present.member[order[now]] != present.member[order[before]]
    return Turnover(
        order[joins],
        record[joins],
        order[goes],
        record[goes] + 1,
        order[now[changes]],
        record[now[changes]],
        record[now[renamed]],
    )
