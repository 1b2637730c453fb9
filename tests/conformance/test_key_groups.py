"""Key groups and operator state are dealt out as Flink deals them, by the tables it printed."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mmh3
import pytest

from statebackends.keygroups import (
    java_string_hash,
    key_group_of,
    key_group_range,
    murmur_hash,
    subtask_of,
)
from statebackends.operator_state import broadcast, split_distribute, union

TABLES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "cases" / "h_key_groups.json").read_text(encoding="utf-8")
)
MAX_PARALLELISMS = (128, 1, 3, 4096, 32768)
"""Those of the columns of `string_keys`."""

Parts = list[list[str]]
DEAL: dict[str, Callable[[Parts, int], Parts]] = {
    "split": split_distribute,
    "union": union,
    "broadcast": broadcast,
}


def entries(sizes: list[int]) -> Parts:
    return [[f"{subtask}.{n}" for n in range(size)] for subtask, size in enumerate(sizes)]


def flat(parts: Parts) -> Counter[str]:
    return Counter(entry for part in parts for entry in part)


def test_murmur_hash() -> None:
    """Every listed integer is scrambled as Flink scrambles it."""
    rows = TABLES["murmur_hash"]
    assert [[n, murmur_hash(n)] for n, _ in rows] == rows


def test_java_string_hash() -> None:
    """Strings hash as in Java, surrogate pairs and the empty string included."""
    rows = TABLES["string_keys"]
    assert [java_string_hash(row[0]) for row in rows] == [row[1] for row in rows]


def test_key_groups_of_string_hashes() -> None:
    """Murmur of a Java hash modulo the max parallelism is the key group that Flink gives it."""
    rows = TABLES["string_keys"]
    ours = [
        [murmur_hash(row[1]), *(murmur_hash(row[1]) % m for m in MAX_PARALLELISMS)] for row in rows
    ]
    assert ours == [row[2:] for row in rows]


def test_key_groups_of_other_hashes() -> None:
    """The same for the hashes of other Java types, the smallest integer included."""
    rows = TABLES["other_java_keys"]
    assert [murmur_hash(hash_) % 128 for _, _, hash_, _ in rows] == [row[3] for row in rows]


def test_key_groups_and_subtasks_of_integer_hashes() -> None:
    """From hash to key group to the subtask at each of several parallelisms."""
    rows = TABLES["key_group_of_int_key"]
    for hash_, max_parallelism, key_group, subtasks in rows:
        assert murmur_hash(hash_) % max_parallelism == key_group
        owners = [subtask_of(key_group, max_parallelism, p) for p in TABLES["parallelisms"]]
        assert owners == subtasks


def test_a_key_goes_to_the_group_of_its_scrambled_hash() -> None:
    """Our own keys go the same way, with the hash of their bytes in place of Java's."""
    for text, *_ in TABLES["string_keys"]:
        data = text.encode("utf-8")
        for max_parallelism in MAX_PARALLELISMS:
            expected = murmur_hash(mmh3.hash(data)) % max_parallelism
            assert key_group_of(data, max_parallelism) == expected


def test_key_group_ranges() -> None:
    """Each subtask owns the range that Flink gives it."""
    for max_parallelism, parallelism, ranges in TABLES["key_group_ranges"]:
        ours = [key_group_range(max_parallelism, parallelism, i) for i in range(parallelism)]
        assert [[r.start, r.end] for r in ours] == ranges


def test_operator_index_of_each_key_group() -> None:
    """Each key group belongs to the subtask that Flink gives it to."""
    for max_parallelism, parallelism, owners in TABLES["operator_index_for_key_group"]:
        ours = [subtask_of(group, max_parallelism, parallelism) for group in range(max_parallelism)]
        assert ours == owners


@pytest.mark.parametrize("call", [call for call in TABLES["invalid_calls"] if call[0] == "range"])
def test_ranges_out_of_bounds_are_refused(call: list[Any]) -> None:
    """What Flink refuses is refused."""
    _, max_parallelism, parallelism, _ = call
    with pytest.raises(ValueError, match="parallelism"):
        key_group_range(max_parallelism, parallelism, 0)


@pytest.mark.parametrize("mode", DEAL)
def test_operator_state_of_one_state(mode: str) -> None:
    """Each new subtask gets the entries that Flink gives it, in whatever order."""
    for case in TABLES["operator_state_repartition"]:
        if case["mode"] == mode:
            dealt = DEAL[mode](entries(case["before"]), case["new_parallelism"])
            assert list(map(Counter, dealt)) == list(map(Counter, case["after"])), case


def test_operator_state_of_two_states() -> None:
    """Of each state nothing is lost or doubled, and its parts are as even as Flink's."""
    for case in TABLES["operator_state_repartition_two_states"]:
        parallelism = case["new_parallelism"]
        first = 0
        for name, sizes in (("s0", case["before"]), ("s1", [3] * len(case["before"]))):
            before = entries(sizes)
            dealt = split_distribute(before, parallelism, first)
            first = (first + sum(sizes)) % parallelism
            assert flat(dealt) == flat(
                [subtask[name] for subtask in case["after"] if name in subtask]
            )
            if parallelism != len(sizes):
                assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
