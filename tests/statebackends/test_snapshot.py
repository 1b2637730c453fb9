"""State files: what is written comes back group by group, and what is damaged is refused."""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statebackends.backend import SnapshotSink
from statebackends.errors import CorruptCheckpointError, StateError
from statebackends.keygroups import KeyGroupRange
from statebackends.operator_state import OperatorStateBackend
from statebackends.operator_state_format import (
    ListStateEntries,
    OperatorStateSnapshot,
    RedistributionMode,
)
from statebackends.snapshot import (
    FORMAT_VERSION,
    RestoredKeyedState,
    SectionWriter,
    SnapshotFile,
    SnapshotFileWriter,
    StateSection,
)

Groups = dict[int, list[bytes]]


def wanted() -> bool:
    return True


@dataclass
class Cut:
    """A keyed snapshot of given chunks: state name -> key group -> chunks."""

    states: dict[str, Groups]
    key_group_range: KeyGroupRange = field(default_factory=lambda: KeyGroupRange(0, 127))
    max_parallelism: int = 128

    @property
    def entries(self) -> int:
        return sum(len(chunks) for groups in self.states.values() for chunks in groups.values())

    def write(self, sink: SnapshotSink, alive: Callable[[], bool]) -> list[StateSection]:
        sections = []
        for name, groups in self.states.items():
            writer = SectionWriter(sink, alive)
            for key_group, chunks in groups.items():
                writer.begin_group(key_group)
                for chunk in chunks:
                    writer.write_chunk(chunk, count=len(chunk))
            sections.append(writer.finish(name, "value", "void", "key/1", "pickle/1"))
        return sections


def list_state(*entries: bytes) -> OperatorStateSnapshot:
    mode = RedistributionMode.SPLIT_DISTRIBUTE
    return OperatorStateSnapshot({"offsets": ListStateEntries(mode, "bytes/1", list(entries))})


def written(cut: Cut | None = None, blob: OperatorStateSnapshot | None = None) -> bytes:
    sink = io.BytesIO()
    writer = SnapshotFileWriter(sink)
    if cut is not None:
        writer.add_keyed("op", cut, wanted)
    if blob is not None:
        writer.add_operator_state("op", blob)
    writer.finish()
    return sink.getvalue()


def read_keyed(file: SnapshotFile) -> dict[str, Groups]:
    keyed = file.keyed("op")
    assert keyed is not None
    return {
        section.name: {group: list(keyed.read_chunks(section, group)) for group in section.groups}
        for section in keyed.sections
    }


def read_all(data: bytes | Path) -> object:
    with SnapshotFile.open(data) as file:
        return [
            (uid, read_keyed(file) if file.keyed(uid) else None, file.operator_state(uid))
            for uid in file.operators
        ]


groups = st.dictionaries(
    st.integers(0, 127), st.lists(st.binary(max_size=40), min_size=1, max_size=3), max_size=5
)


@given(st.dictionaries(st.text(max_size=5), groups, max_size=3))
def test_every_chunk_comes_back_under_its_state_and_key_group(states: dict[str, Groups]) -> None:
    """Names, groups and chunks are those written, empty chunks and strange names included."""
    assert read_keyed(SnapshotFile.open(written(Cut(states)))) == states


def test_the_description_of_a_state_comes_back() -> None:
    """Kind, layout, serializers, counts, key group range and max parallelism are in the file."""
    cut = Cut({"s": {3: [b"abc", b"de"], 5: [b"f"]}}, KeyGroupRange(2, 7), 64)
    keyed = SnapshotFile.open(written(cut)).keyed("op")
    assert keyed is not None
    (section,) = keyed.sections
    assert (keyed.key_groups, keyed.max_parallelism) == (KeyGroupRange(2, 7), 64)
    assert (section.kind, section.layout) == ("value", "void")
    assert (section.key_serializer, section.value_serializer) == ("key/1", "pickle/1")
    assert {group: span.entries for group, span in section.groups.items()} == {3: 5, 5: 1}
    assert section.entries == 6


def test_what_was_not_written_is_none_or_empty() -> None:
    """Unknown operators, parts that an operator has not, and empty key groups are no errors."""
    file = SnapshotFile.open(written(Cut({"s": {1: [b"x"]}})))
    keyed = file.keyed("op")
    assert keyed is not None
    assert file.operator_state("op") is None
    assert (file.keyed("other"), file.operator_state("other")) == (None, None)
    assert keyed.read_group(keyed.sections[0], 2) == b""


def test_a_group_begun_without_chunks_is_not_recorded() -> None:
    """Empty key groups cost nothing in the index."""
    keyed = SnapshotFile.open(written(Cut({"s": {1: [], 2: [b"x"]}}))).keyed("op")
    assert keyed is not None
    assert list(keyed.sections[0].groups) == [2]


def test_several_operators_share_a_file() -> None:
    """Each operator of a chain finds its own parts."""
    sink = io.BytesIO()
    writer = SnapshotFileWriter(sink)
    writer.add_operator_state("source", list_state(b"1"))
    writer.add_keyed("window", Cut({"w": {0: [b"2"]}}), wanted)
    writer.add_operator_state("window", list_state(b"3"))
    writer.finish()
    file = SnapshotFile.open(sink.getvalue())
    source, window = file.operator_state("source"), file.operator_state("window")
    assert source is not None
    assert window is not None
    assert sorted(file.operators) == ["source", "window"]
    assert [s.states["offsets"].entries for s in (source, window)] == [[b"1"], [b"3"]]
    assert file.keyed("source") is None


def test_the_footer_identifies_the_bytes() -> None:
    """Size and checksum that the writer returns are those of what the sink got."""
    sink = io.BytesIO()
    writer = SnapshotFileWriter(sink)
    writer.add_operator_state("op", list_state(b"x" * 700_000))
    footer = writer.finish()
    assert footer == (len(sink.getvalue()), crc32(sink.getvalue()))


def test_a_file_without_operators_can_be_read() -> None:
    """A subtask without state writes a valid file too."""
    assert SnapshotFile.open(written()).operators == []


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_changed_byte_anywhere_is_noticed(data: st.DataObject) -> None:
    """No flipped byte lets the whole file be read without an error."""
    whole = bytearray(written(Cut({"s": {1: [b"abc"], 9: [b"de", b"f"]}}), list_state(b"x", b"y")))
    position = data.draw(st.integers(0, len(whole) - 1))
    whole[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptCheckpointError):
        read_all(bytes(whole))


@given(st.data())
def test_a_file_cut_short_anywhere_is_noticed(data: st.DataObject) -> None:
    """No beginning of a file passes for the file."""
    whole = written(Cut({"s": {1: [b"abc"]}}), list_state(b"x"))
    with pytest.raises(CorruptCheckpointError):
        SnapshotFile.open(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_a_damaged_group_is_named_and_the_others_can_be_read() -> None:
    """The error says file, state and key group; the damage stays where it is."""
    whole = written(Cut({"counts": {1: [b"aaaa"], 2: [b"bbbb"]}})).replace(b"aaaa", b"aXaa")
    keyed = SnapshotFile.open(whole, "chk-7/op-0").keyed("op")
    assert keyed is not None
    (section,) = keyed.sections
    with pytest.raises(CorruptCheckpointError, match=r"chk-7/op-0: key group 1 .*'counts'"):
        keyed.read_group(section, 1)
    assert list(keyed.read_chunks(section, 2)) == [b"bbbb"]


def test_a_newer_format_is_refused_by_its_number() -> None:
    """A file of a later version is not damaged, it is too new, and the message says so."""
    whole = bytearray(written())
    newer = FORMAT_VERSION + 1
    struct.pack_into("<I", whole, 8, newer)
    struct.pack_into("<I", whole, 12, crc32(struct.pack("<8sII", bytes(whole[:8]), newer, 0)))
    with pytest.raises(StateError, match=f"version {newer}") as raised:
        SnapshotFile.open(bytes(whole))
    assert not isinstance(raised.value, CorruptCheckpointError)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path without a file is a corrupt checkpoint whose message has the path."""
    with pytest.raises(CorruptCheckpointError, match="nothing-here"):
        SnapshotFile.open(tmp_path / "nothing-here")


def test_a_file_is_read_where_it_is_asked_for_only(tmp_path: Path) -> None:
    """Damage in groups of other subtasks does not keep a subtask from its own."""
    path = tmp_path / "state"
    path.write_bytes(
        written(Cut({"s": {1: [b"mine"], 2: [b"theirs"]}})).replace(b"theirs", b"XXXXXX")
    )
    with SnapshotFile.open(path) as file:
        keyed = file.keyed("op")
        assert keyed is not None
        assert list(keyed.read_chunks(keyed.sections[0], 1)) == [b"mine"]


def test_writing_without_a_buffer_gives_the_same_file(tmp_path: Path) -> None:
    """What a child process writes to its file is what would have been written inline."""
    path = tmp_path / "state"
    cut = Cut({"s": {group: [bytes([group]) * 3000] for group in range(128)}})
    with path.open("wb", buffering=0) as file:
        writer = SnapshotFileWriter(file)
        writer.add_keyed("op", cut, wanted)
        writer.finish()
    assert path.read_bytes() == written(cut)


def test_a_snapshot_that_is_no_longer_wanted_stops_at_the_next_chunk() -> None:
    """`alive` turning false ends the writing before anything more is written."""
    sink = io.BytesIO()
    answers = iter([True, False, True])
    writer = SnapshotFileWriter(sink)
    with pytest.raises(InterruptedError):
        writer.add_keyed("op", Cut({"s": {1: [b"a", b"b", b"c"]}}), lambda: next(answers))
    assert next(answers) is True


def test_the_writer_holds_a_bounded_part_of_what_it_writes() -> None:
    """Bytes reach the sink while the file is written, not at its end."""
    sink = io.BytesIO()
    writer = SnapshotFileWriter(sink)
    behind = 0
    for _ in range(100):
        writer.write(b"x" * 50_000)
        behind = max(behind, writer.tell() - sink.tell())
    assert behind < 1_000_000


@pytest.mark.parametrize("part", ["keyed", "operator state"])
def test_an_operator_writes_each_part_once(part: str) -> None:
    """A second part of one uid would hide the first, so it is refused."""
    writer = SnapshotFileWriter(io.BytesIO())

    def add() -> None:
        if part == "keyed":
            writer.add_keyed("op", Cut({}), wanted)
        else:
            writer.add_operator_state("op", list_state())

    add()
    with pytest.raises(StateError, match="op"):
        add()


def test_two_states_of_one_name_are_refused() -> None:
    """Names tell the states of an operator apart."""

    class Doubled(Cut):
        def write(self, sink: SnapshotSink, alive: Callable[[], bool]) -> list[StateSection]:
            return [*super().write(sink, alive), *super().write(sink, alive)]

    with pytest.raises(StateError, match="one name"):
        written(Doubled({"s": {1: [b"x"]}}))


def test_a_key_group_is_written_once() -> None:
    """Writing a group in two runs would lose the first."""
    writer = SectionWriter(SnapshotFileWriter(io.BytesIO()), wanted)
    writer.begin_group(1)
    writer.write_chunk(b"x", 1)
    writer.begin_group(2)
    with pytest.raises(StateError, match="key group 1"):
        writer.begin_group(1)


def test_what_was_read_outlives_the_closed_file(tmp_path: Path) -> None:
    """Closing twice is fine, and closing takes nothing back."""
    path = tmp_path / "state"
    path.write_bytes(written(blob=list_state(b"x")))
    file = SnapshotFile.open(path)
    state = file.operator_state("op")
    file.close()
    file.close()
    assert state is not None
    assert state.states["offsets"].entries == [b"x"]


def test_an_empty_operator_state_says_so() -> None:
    """A backend without states has nothing to write, and can be written all the same."""
    snapshot = OperatorStateBackend().snapshot()
    assert snapshot.empty
    state = SnapshotFile.open(written(blob=snapshot)).operator_state("op")
    assert state is not None
    assert state.states == {}


def test_the_concrete_restored_state_is_the_one_of_the_contract() -> None:
    """What `keyed` returns carries the former range, so that a restore can skip foreign files."""
    keyed = SnapshotFile.open(written(Cut({}, KeyGroupRange(5, 9)))).keyed("op")
    assert isinstance(keyed, RestoredKeyedState)
    assert list(keyed.key_groups) == [5, 6, 7, 8, 9]
