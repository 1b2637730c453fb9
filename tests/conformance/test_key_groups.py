"""Key groups and operator state are dealt out as Flink deals them, by the tables it printed."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import mmh3
import pytest

from connectors.kafka.topic_partition import split_owner
from statebackends.descriptors import ListStateDescriptor
from statebackends.keygroups import (
    java_string_hash,
    key_group_of,
    key_group_range,
    murmur_hash,
    subtask_of,
)
from statebackends.operator_state import (
    OperatorStateBackend,
    RestoredOperatorState,
    broadcast,
    split_distribute,
    union,
)
from tests.conformance.case_files import load_tables

MAX_PARALLELISMS = (128, 1, 3, 4096, 32768)
"""Those of the columns of `string_keys`."""

Tables = dict[str, Any]
Parts = list[list[str]]
DEAL: dict[str, Callable[[Parts, int], Parts]] = {
    "split": split_distribute,
    "union": union,
    "broadcast": broadcast,
}


@pytest.fixture
def tables(request: pytest.FixtureRequest) -> Tables:
    found = load_tables(request.config.getoption("--cases"), "h_key_groups")
    if found is None:
        pytest.skip("the folder of --cases has no h_key_groups.json")
    return found


def entries(sizes: list[int]) -> Parts:
    return [[f"{subtask}.{n}" for n in range(size)] for subtask, size in enumerate(sizes)]


def restored(before: dict[str, Parts], parallelism: int) -> dict[str, Parts]:
    """What each new subtask finds in its states, by name, when backends write and restore them."""
    snapshots: list[RestoredOperatorState | None] = []
    for entries_by_state in zip(*before.values(), strict=True):
        written = OperatorStateBackend()
        for name, values in zip(before, entries_by_state, strict=True):
            written.get_list_state(ListStateDescriptor[str](name)).update(values)
        data = bytes(written.snapshot())
        snapshots.append(RestoredOperatorState.parse(data, "the former subtask"))
    found: dict[str, Parts] = {name: [] for name in before}
    for subtask in range(parallelism):
        backend = OperatorStateBackend()
        backend.restore(snapshots, len(snapshots), parallelism, subtask)
        for name, parts in found.items():
            parts.append(list(backend.get_list_state(ListStateDescriptor[str](name)).get()))
    return found


def flat(parts: Parts) -> Counter[str]:
    return Counter(entry for part in parts for entry in part)


def test_murmur_hash(tables: Tables) -> None:
    """Every listed integer is scrambled as Flink scrambles it."""
    rows = tables["murmur_hash"]
    assert [[n, murmur_hash(n)] for n, _ in rows] == rows


def test_java_string_hash(tables: Tables) -> None:
    """Strings hash as in Java, surrogate pairs and the empty string included."""
    rows = tables["string_keys"]
    assert [java_string_hash(row[0]) for row in rows] == [row[1] for row in rows]


def test_key_groups_of_string_hashes(tables: Tables) -> None:
    """Murmur of a Java hash modulo the max parallelism is the key group that Flink gives it."""
    rows = tables["string_keys"]
    ours = [
        [murmur_hash(row[1]), *(murmur_hash(row[1]) % m for m in MAX_PARALLELISMS)] for row in rows
    ]
    assert ours == [row[2:] for row in rows]


def test_key_groups_of_other_hashes(tables: Tables) -> None:
    """The same for the hashes of other Java types, the smallest integer included."""
    rows = tables["other_java_keys"]
    assert [murmur_hash(hash_) % 128 for _, _, hash_, _ in rows] == [row[3] for row in rows]


def test_key_groups_and_subtasks_of_integer_hashes(tables: Tables) -> None:
    """From hash to key group to the subtask at each of several parallelisms."""
    rows = tables["key_group_of_int_key"]
    for hash_, max_parallelism, key_group, subtasks in rows:
        assert murmur_hash(hash_) % max_parallelism == key_group
        owners = [subtask_of(key_group, max_parallelism, p) for p in tables["parallelisms"]]
        assert owners == subtasks


def test_a_key_goes_to_the_group_of_its_scrambled_hash(tables: Tables) -> None:
    """Our own keys go the same way, with the hash of their bytes in place of Java's."""
    for text, *_ in tables["string_keys"]:
        data = text.encode("utf-8")
        for max_parallelism in MAX_PARALLELISMS:
            expected = murmur_hash(mmh3.hash(data)) % max_parallelism
            assert key_group_of(data, max_parallelism) == expected


def test_key_group_ranges(tables: Tables) -> None:
    """Each subtask owns the range that Flink gives it."""
    for max_parallelism, parallelism, ranges in tables["key_group_ranges"]:
        ours = [key_group_range(max_parallelism, parallelism, i) for i in range(parallelism)]
        assert [[r.start, r.end] for r in ours] == ranges


def test_operator_index_of_each_key_group(tables: Tables) -> None:
    """Each key group belongs to the subtask that Flink gives it to."""
    for max_parallelism, parallelism, owners in tables["operator_index_for_key_group"]:
        ours = [subtask_of(group, max_parallelism, parallelism) for group in range(max_parallelism)]
        assert ours == owners


def test_ranges_out_of_bounds_are_refused(tables: Tables) -> None:
    """What Flink refuses is refused."""
    for call, max_parallelism, parallelism, *_ in tables["invalid_calls"]:
        if call == "range":
            with pytest.raises(ValueError, match="parallelism"):
                key_group_range(max_parallelism, parallelism, 0)


@pytest.mark.parametrize("mode", DEAL)
def test_operator_state_of_one_state(mode: str, tables: Tables) -> None:
    """Each new subtask gets the entries that Flink gives it, in whatever order."""
    for case in tables["operator_state_repartition"]:
        if case["mode"] == mode:
            dealt = DEAL[mode](entries(case["before"]), case["new_parallelism"])
            assert list(map(Counter, dealt)) == list(map(Counter, case["after"])), case


def test_operator_state_of_two_states(tables: Tables) -> None:
    """At unchanged parallelism each keeps its own; else none is lost or doubled, sizes are even."""
    for case in tables["operator_state_repartition_two_states"]:
        parallelism = case["new_parallelism"]
        before = {"s0": entries(case["before"]), "s1": entries([3] * len(case["before"]))}
        for name, dealt in restored(before, parallelism).items():
            after = [subtask.get(name, []) for subtask in case["after"]]
            if parallelism == len(case["before"]):
                assert list(map(Counter, dealt)) == list(map(Counter, after)), case
            else:
                assert flat(dealt) == flat(after), case
                assert max(map(len, dealt)) - min(map(len, dealt)) <= 1, case


def test_owner_of_a_kafka_partition(tables: Tables) -> None:
    """A partition of a topic goes to the subtask that Flink's Kafka source gives it to."""
    for topic, _, parallelism, owners in tables["kafka_split_owner"]:
        ours = [split_owner(topic, partition, parallelism) for partition in range(len(owners))]
        assert ours == owners
