"""Shards: what is written is read, what is damaged is named and never read."""

import errno
import os

import numpy
import pytest

from pydlshogi.errors import UserError
from pydlshogi.kifu import mapped_positions, shards
from pydlshogi.kifu.mapped_positions import MappedPositions
from pydlshogi.kifu.shards import Shard, ShardError, write_shard
from pydlshogi.positions import CANDIDATE, POSITION, Visits, join_visits


def positions_of(count, seed=1):
    random = numpy.random.RandomState(seed)
    return random.randint(0, 256, count * POSITION.itemsize).astype(numpy.uint8).view(POSITION)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 1000])
def test_a_shard_holds_what_was_written(tmp_path, count):
    positions = positions_of(count)
    write_shard(tmp_path / "a.shard", positions)
    shard = Shard(tmp_path / "a.shard")
    assert len(shard) == count
    assert shard[:].tobytes() == positions.tobytes()
    rows = numpy.random.RandomState(2).randint(0, count, 50)
    assert shard[rows].tobytes() == positions[rows].tobytes()


def test_a_shard_is_a_copy_that_the_file_does_not_change(tmp_path):
    write_shard(tmp_path / "a.shard", positions_of(40))
    rows = Shard(tmp_path / "a.shard")[numpy.array([3])]
    rows["label"] = 7
    assert Shard(tmp_path / "a.shard")[:].tobytes() == positions_of(40).tobytes()


@pytest.mark.long
def test_every_damaged_byte_is_found_when_its_block_is_read(tmp_path):
    path = tmp_path / "a.shard"
    count = 70
    write_shard(path, positions_of(count))
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        in_zeros = 64 > place >= shards._HEADER.size + 4
        if in_zeros:
            continue
        with pytest.raises(ShardError, match=r"a\.shard"):
            Shard(path)[:]


def test_a_damaged_block_does_not_hide_the_others(tmp_path):
    path = tmp_path / "a.shard"
    positions = positions_of(100)
    write_shard(path, positions)
    content = bytearray(path.read_bytes())
    content[64 + 40 * POSITION.itemsize] ^= 1
    path.write_bytes(content)
    shard = Shard(path)
    good = numpy.array([0, 31, 64, 99])
    assert shard[good].tobytes() == positions[good].tobytes()
    with pytest.raises(ShardError, match="positions 33 to 64 are damaged"):
        shard[numpy.array([63])]


@pytest.mark.parametrize("size", [0, 10, 63, 64, 200, -1])
def test_a_shortened_shard_is_refused(tmp_path, size):
    path = tmp_path / "a.shard"
    write_shard(path, positions_of(100))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ShardError):
        Shard(path)


def test_several_shards_are_one_sequence(tmp_path):
    parts = [positions_of(count, count) for count in (5, 1, 40, 33)]
    for number, part in enumerate(parts[1:]):
        write_shard(tmp_path / f"{number}.shard", part)
    files = [Shard(tmp_path / f"{number}.shard") for number in range(3)]
    mapped, whole = MappedPositions(parts[0], files), numpy.concatenate(parts)
    assert len(mapped) == len(whole)
    assert mapped[:].tobytes() == whole.tobytes()
    assert mapped[4:50].tobytes() == whole[4:50].tobytes()
    rows = numpy.random.RandomState(3).permutation(len(whole))
    assert mapped[rows].tobytes() == whole[rows].tobytes()
    assert b"".join(c.tobytes() for c in mapped_positions.chunks(mapped, 8)) == whole.tobytes()


def test_the_checksum_identifies_the_content_and_the_order(tmp_path):
    def checksum(*parts):
        files = []
        for number, part in enumerate(parts):
            write_shard(tmp_path / f"{number}.shard", part)
            files.append(Shard(tmp_path / f"{number}.shard"))
        return MappedPositions(positions_of(0), files).checksum(lambda array: 0)

    one, other = positions_of(50, 1), positions_of(50, 2)
    changed = one.copy()
    changed["evaluation"][49] += 1
    found = [checksum(one, other), checksum(other, one), checksum(changed, other), checksum(one)]
    assert len(set(found)) == 4
    assert checksum(one, other) == found[0]


def visits_of(count, seed=1):
    """Visits of positions with 0 to 3 candidates each."""
    random = numpy.random.RandomState(seed)
    starts = numpy.cumsum([0, *random.randint(0, 4, count)])
    candidates = random.randint(0, 1 << 32, starts[-1], numpy.uint32).view(CANDIDATE)
    return Visits(starts, candidates)


@pytest.mark.parametrize("count", [1, 32, 33, 200])
def test_a_shard_holds_the_visits_that_were_written(tmp_path, count):
    positions, visits = positions_of(count), visits_of(count)
    write_shard(tmp_path / "a.shard", positions, visits)
    shard = Shard(tmp_path / "a.shard")
    rows = numpy.random.RandomState(2).randint(0, count, 50)
    assert shard[rows].tobytes() == positions[rows].tobytes()
    assert shard.visits_of(rows).checksum() == visits[rows].checksum()
    assert shard.has_visits == (len(visits.candidates) > 0)


def test_every_damaged_byte_of_the_visits_is_found(tmp_path):
    path = tmp_path / "a.shard"
    count = 70
    write_shard(path, positions_of(count), visits_of(count))
    content = path.read_bytes()
    start = shards._HEADER_SIZE + count * POSITION.itemsize
    for place in range(start, len(content), 5):
        damaged = bytearray(content)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        with pytest.raises(ShardError, match=r"a\.shard"):
            Shard(path).visits_of(numpy.arange(count))
    path.write_bytes(content[:start] + b"\1" + content[start + 1 :])
    assert len(Shard(path)[:]) == count  # positions do not need the visits


def test_visits_of_several_shards_are_those_of_their_positions(tmp_path):
    counts = (5, 1, 40, 33)
    positions, parts = [positions_of(n, n) for n in counts], [visits_of(n, n) for n in counts]
    parts[2] = Visits.none(40)
    for number in (1, 2, 3):
        write_shard(tmp_path / f"{number}.shard", positions[number], parts[number])
    files = [Shard(tmp_path / f"{number}.shard") for number in (1, 2, 3)]
    rows = numpy.random.RandomState(3).permutation(sum(counts))
    mapped = MappedPositions(positions[0], files, parts[0])
    assert mapped.visits_of(rows).checksum() == join_visits(parts)[rows].checksum()
    mapped = MappedPositions(positions[0], files)
    parts[0] = Visits.none(5)
    assert mapped.visits_of(rows).checksum() == join_visits(parts)[rows].checksum()


@pytest.fixture
def needed(monkeypatch):
    """The ranges of bytes that the system is asked to read: (first, behind the last)."""
    ranges = []
    ask = Shard._will_need

    def recording(self, start, size, rows):
        ranges.append((start + size * rows.start, start + size * rows.stop))
        ask(self, start, size, rows)

    monkeypatch.setattr(Shard, "_will_need", recording)
    return ranges


def covers(ranges, first, end):
    return any(start <= first and end <= stop for start, stop in ranges)


ROWS = numpy.array([0, 31, 3990, 4999])


@pytest.mark.parametrize("with_visits", [False, True])
def test_a_prefetch_asks_for_the_records_and_for_visits_that_are_wanted(
    tmp_path, needed, with_visits
):
    positions, visits = positions_of(5000), visits_of(5000)
    write_shard(tmp_path / "a.shard", positions, visits)
    mapped = MappedPositions(positions[:10], [Shard(tmp_path / "a.shard")])
    mapped.prefetch(numpy.concatenate([[0, 9], 10 + ROWS]), with_visits)
    mapped.prefetch(ROWS[:0], with_visits)
    at_visits = 64 + 5000 * POSITION.itemsize
    at_candidates = at_visits + 8 * 5001
    for row in ROWS.tolist():
        first = 64 + row * POSITION.itemsize
        assert covers(needed, first, first + POSITION.itemsize)
        first = at_visits + 8 * row
        assert covers(needed, first, first + 16) == with_visits
        first, end = at_candidates + CANDIDATE.itemsize * visits.starts[[row, row + 1]]
        assert covers(needed, first, end) == with_visits
    # The blocks of the positions, and nothing else.
    assert len(needed) == 3 * (3 if with_visits else 1)
    assert mapped[10 + ROWS].tobytes() == positions[ROWS].tobytes()
    assert mapped.visits_of(10 + ROWS).checksum() == visits[ROWS].checksum()


def test_a_prefetch_leaves_damaged_visits_to_the_check_of_their_block(tmp_path):
    path = tmp_path / "a.shard"
    write_shard(path, positions_of(70), visits_of(70))
    content = bytearray(path.read_bytes())
    start = 64 + 70 * POSITION.itemsize + 8 * 32
    content[start : start + 8] = b"\xff" * 7 + b"\x7f"
    path.write_bytes(content)
    mapped = MappedPositions(positions_of(0), [Shard(path)])
    mapped.prefetch(numpy.arange(70), True)
    with pytest.raises(ShardError, match="damaged"):
        mapped.visits_of(numpy.arange(70))


def test_more_shards_than_a_process_may_open_at_first_are_mapped(tmp_path):
    resource = pytest.importorskip("resource")
    write_shard(tmp_path / "a.shard", positions_of(1))
    paths = [str(tmp_path / "a.shard")] * 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (150, hard))
        assert len(mapped_positions.with_shards(positions_of(1), paths)) == 201
        # Two lists that the limit allows one by one.
        resource.setrlimit(resource.RLIMIT_NOFILE, (450, hard))
        both = [mapped_positions.with_shards(positions_of(1), paths) for _ in range(2)]
        assert [len(mapped) for mapped in both] == [201, 201]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_shards_than_the_system_allows_are_one_sentence(tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(mapped_positions, "Shard", full)
    with pytest.raises(UserError, match=r"2 shards .* shard_size"):
        mapped_positions.with_shards(positions_of(1), ["a.shard", "b.shard"])


@pytest.mark.skipif(os.name == "nt", reason="Windows does not let others cut an open file")
@pytest.mark.parametrize("size", [0, 64, 1000, -1])
def test_a_shard_that_is_cut_while_it_is_used_is_one_sentence(tmp_path, size):
    path = tmp_path / "a.shard"
    write_shard(path, positions_of(400), visits_of(400))
    shard = Shard(path)
    os.truncate(path, size if size >= 0 else 64 + 400 * POSITION.itemsize)
    rows = numpy.array([0, 399])
    shard.prefetch(rows, True)
    with pytest.raises(ShardError, match=r"a\.shard cannot be used: it was cut while it was read"):
        shard.visits_of(rows)
    if size >= 0:
        with pytest.raises(ShardError, match="it was cut while it was read"):
            shard[rows]


@pytest.mark.skipif(not hasattr(os, "pread"), reason="another function of the system reads")
def test_a_disk_that_fails_while_a_shard_is_used_is_one_sentence(tmp_path, monkeypatch):
    write_shard(tmp_path / "a.shard", positions_of(40))
    shard = Shard(tmp_path / "a.shard")

    def fail(*arguments):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(ShardError, match=r"cannot be read \(Input/output error\)"):
        shard[:]
