"""Sorting and numbering rows: by counting and packing what numpy does by sorting columns."""

import numpy as np
import pyarrow as pa
import pytest

from kassign_spark.client.hash_order import java_hash, java_hash_codes
from kassign_spark.groups.numbers import dense, rows_by

_MANY = 1 << 40


@pytest.mark.parametrize("count", [0, 1, 2, 1_000])
@pytest.mark.parametrize("least", [-3, 0, _MANY])
@pytest.mark.parametrize("most", [3, 5_000, 4 * _MANY, 1 << 62])
def test_rows_are_sorted_as_by_columns(count: int, least: int, most: int) -> None:
    random = np.random.default_rng(count)
    flags = random.integers(0, 2, count).astype(bool)
    numbers = random.integers(least, least + most, count)
    few = random.integers(0, 4, count)
    assert rows_by(few, numbers, flags).tolist() == np.lexsort((flags, numbers, few)).tolist()
    # Stable: rows that are equal in all columns stay as they are.
    assert rows_by(few).tolist() == np.argsort(few, kind="stable").tolist()


@pytest.mark.parametrize("most", [2, 40, _MANY])
def test_pairs_are_numbered_in_their_order(most: int) -> None:
    random = np.random.default_rng(most)
    high, low = random.integers(0, 3, 500), random.integers(-2, most, 500) % (1 << 31) - 2
    pairs = list(zip(high.tolist(), low.tolist(), strict=True))
    different = sorted(set(pairs))
    first, number = dense(high, low)
    assert first.tolist() == [pairs.index(pair) for pair in different]
    assert number.tolist() == [different.index(pair) for pair in pairs]
    assert [len(part) for part in dense(high[:0], low[:0])] == [0, 0]


@pytest.mark.parametrize("ids", [["a", "consumer-1-0f"], ["é", "日本", "a𝄞b"], []])
def test_strings_are_hashed_as_in_java(ids: list[str]) -> None:
    assert java_hash_codes(pa.array(ids, pa.string())).tolist() == [*map(java_hash, ids)]
