"""Games of HCPE3 files with the visits of their candidates, judged by cshogi."""

import io
import itertools
import struct

import cshogi
import numpy
import pytest
import shogi
from packed_files import EMBEDDED, write_games

from pydlshogi.features import make_output_label
from pydlshogi.kifu.hcpe3 import blocks, decode_games
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.sources import KifuError
from pydlshogi.positions import DRAW, LOSS, PLACEMENT_SIZE, WIN, placement_of, raw_bytes

COUNT = 8
HEAD = 36


@pytest.fixture(scope="module")
def written():
    return write_games(EMBEDDED[:COUNT])


@pytest.fixture(scope="module")
def content(written):
    return written[0]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    kifu_list = tmp_path_factory.mktemp("list") / "list.txt"
    kifu_list.write_text("".join(f"{path}\n" for path in EMBEDDED[:COUNT]))
    return read_positions(kifu_list)[0]


@pytest.fixture(scope="module")
def starts(expected):
    """Index of each game's first position, and the number of all."""
    return [*numpy.flatnonzero(expected["ply"] == 1).tolist(), len(expected)]


def game_starts(content):
    """Walks through a file independently: the index of each game and of each of its moves."""
    at, games = 0, []
    while at < len(content):
        start, moves = at, []
        (count,) = struct.unpack_from("<H", content, at + 32)
        at += HEAD
        for _ in range(count):
            moves.append(at)
            (candidates,) = struct.unpack_from("<H", content, at + 4)
            at += 6 + 4 * candidates
        games.append((start, moves))
    return games


def test_positions_equal_those_of_the_records_where_moves_were_searched(written, content, expected):
    decoded = decode_games(content)
    searched = numpy.array([bool(candidates) for candidates in written[1]])
    assert not decoded.left_out
    assert decoded.not_searched == (~searched).sum() > 0
    assert decoded.lengths.sum() == len(decoded.positions) == searched.sum()
    for name in ("board", "hands", "result", "label", "ply"):
        assert (decoded.positions[name] == expected[name][searched]).all(), name
    assert (decoded.positions["evaluation"] == expected["ply"][searched]).all()


def test_visits_belong_to_the_labels_of_their_candidates(written, content):
    decoded = decode_games(content)
    visits = decoded.visits
    searched = [candidates for candidates in written[1] if candidates]
    assert len(visits.starts) == len(searched) + 1
    for row, candidates in enumerate(searched):
        part = slice(visits.starts[row], visits.starts[row + 1])
        turn = int(decoded.turns[row])
        labels = [make_output_label(shogi.Move.from_usi(usi), turn) for usi, _ in candidates]
        assert visits.labels[part].tolist() == labels
        assert visits.counts[part].tolist() == [count for _, count in candidates]


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_blocks_of_any_size_give_the_same_games(content, size):
    found = list(blocks(io.BytesIO(content), size))
    assert b"".join(data for _, _, data in found) == content
    sizes = itertools.accumulate((len(data) for _, _, data in found), initial=0)
    assert [offset for offset, _, _ in found] == list(sizes)[:-1]
    numbers = [number for _, number, _ in found]
    starts = [start for start, _ in game_starts(content)]
    assert [starts[number] for number in numbers] == [offset for offset, _, _ in found]
    parts = [decode_games(data) for _, _, data in found]
    whole = decode_games(content)
    positions = numpy.concatenate([part.positions for part in parts])
    assert positions.tobytes() == whole.positions.tobytes()


@pytest.mark.parametrize("missing", [1, 30, 2000])
def test_a_file_that_ends_within_a_game_loses_only_this_game(content, missing):
    cut = content[:-missing]
    decoded = decode_games(cut)
    (left_out,) = decoded.left_out
    assert left_out.number == COUNT - 1
    assert left_out.start == game_starts(content)[-1][0]
    assert left_out.reason.startswith("the file ends ")
    assert len(decoded.lengths) == COUNT - 1


def changed(content, at, new):
    return content[:at] + new + content[at + len(new) :]


def test_a_wrong_game_is_left_out_and_the_others_are_used(content, starts, expected):
    (start, moves), (second, _) = game_starts(content)[2:4]
    whole = decode_games(content)
    cases = {
        "the bits do not form a board and hands": (start + 2, b"\xff" * 30),
        "its result is not one of the format": (start + 34, b"\x03"),
        "move 5 is not possible": (moves[4], b"\x00\x00"),
        "move 1 is not possible": (moves[0], b"\xff\xff"),
        "a candidate of move 2 is not possible there": (moves[1] + 6, b"\x00\x00"),
    }
    kept = numpy.ones(len(whole.lengths), bool)
    kept[2] = False
    for reason, (at, new) in cases.items():
        decoded = decode_games(changed(content, at, new))
        (left_out,) = decoded.left_out
        assert (left_out.number, left_out.start) == (2, start)
        assert left_out.reason.startswith(reason)
        assert (decoded.lengths == whole.lengths[kept]).all()
        assert len(decoded.visits.starts) == len(decoded.positions) + 1
        assert decoded.visits.starts[-1] == len(decoded.visits.labels)


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_after_an_impossible_number_of_candidates_nothing_is_read(content, size):
    start, moves = game_starts(content)[3]
    broken = changed(content, moves[6] + 4, b"\xff\xff")
    decoded = [decode_games(data) for _, _, data in blocks(io.BytesIO(broken), size)]
    assert sum(len(part.lengths) for part in decoded) == 3
    assert not any(part.left_out for part in decoded[:-1])
    (left_out,) = decoded[-1].left_out
    assert "move 7 has 65535 candidates" in left_out.reason
    offsets = [offset for offset, _, _ in blocks(io.BytesIO(broken), size)]
    assert offsets[-1] + left_out.start == start


def test_a_game_without_moves_is_left_out(content):
    head = content[:32] + struct.pack("<HBB", 0, 1, 0)
    decoded = decode_games(head + content)
    (left_out,) = decoded.left_out
    assert left_out == (0, 0, "it has no move")
    assert len(decoded.lengths) == COUNT


def test_marks_of_the_ending_do_not_change_the_result(content):
    plain = decode_games(content)
    start = game_starts(content)[1][0]
    marked = decode_games(changed(content, start + 34, bytes([content[start + 34] | 12])))
    assert marked.positions.tobytes() == plain.positions.tobytes()
    drawn = decode_games(changed(content, start + 34, b"\x04"))
    assert drawn.results[1] == DRAW


def test_a_game_with_too_many_moves_is_a_draw(content):
    """dlshogi's mark is 0x16, which has the bits of a win of White."""
    start = game_starts(content)[1][0]
    marked = decode_games(changed(content, start + 34, b"\x16"))
    drawn = decode_games(changed(content, start + 34, b"\x00"))
    assert marked.positions.tobytes() == drawn.positions.tobytes()


def test_no_games_give_no_positions():
    decoded = decode_games(b"")
    assert len(decoded.positions) == len(decoded.lengths) == len(decoded.left_out) == 0
    assert decoded.visits.starts.tolist() == [0]


def one_drop_game(sfen, square):
    """Makes a game that Black wins by one searched move: a pawn drop on a square of cshogi."""
    board = cshogi.Board(sfen)
    packed = numpy.zeros(32, numpy.uint8)
    board.to_hcp(packed)
    move = 81 << 7 | square
    return packed.tobytes() + struct.pack("<HBBHhHHH", 1, 1, 0, move, 0, 1, move, 1)


def test_strict_leaves_out_games_with_an_illegal_move(content):
    in_check = one_drop_game("4k4/9/9/9/9/9/9/4r4/4K4 b P 1", cshogi.E1)
    data = content + in_check
    assert not decode_games(data).left_out
    (left_out,) = decode_games(data, strict=True).left_out
    assert left_out == (COUNT, len(content), "move 1 is not legal")


def test_a_second_pawn_on_a_file_is_not_possible():
    (left_out,) = decode_games(one_drop_game("4k4/9/9/9/4P4/9/9/9/4K4 b P 1", cshogi.C5)).left_out
    assert left_out.reason == "move 1 is not possible: it drops a second pawn on a file"


def label_of(board, move16):
    """Reads a move by cshogi; gives its label."""
    plain = shogi.Board(board.sfen())
    move = shogi.Move.from_usi(cshogi.move_to_usi(board.move_from_move16(move16)))
    assert plain.is_pseudo_legal(move), (board.sfen(), move)
    return make_output_label(move, plain.turn)


def judge(data, start):
    """Reads a game by cshogi: the placement, result, label and visits of searched positions."""
    board = cshogi.Board()
    board.set_hcp(numpy.frombuffer(data[start : start + 32], numpy.uint8).copy())
    count, result = struct.unpack_from("<HB", data, start + 32)
    at = start + HEAD
    for _ in range(count):
        move, evaluation, candidates = struct.unpack_from("<HhH", data, at)
        visits = struct.unpack_from(f"<{2 * candidates}H", data, at + 6)
        at += 6 + 4 * candidates
        if candidates:
            won = {0: DRAW, 1 + board.turn: WIN}.get(result & 3, LOSS)
            yield (
                placement_of(shogi.Board(board.sfen())),
                (won, label_of(board, move), evaluation),
                [(label_of(board, move16), n) for move16, n in zip(visits[::2], visits[1::2])],
            )
        else:
            label_of(board, move)
        board.push(board.move_from_move16(move))


def check_mutations(content, count, seed):
    """Flips bits; every changed game is left out or read as cshogi reads it."""
    random = numpy.random.RandomState(seed)
    judged = 0
    for _ in range(count):
        data = bytearray(content)
        for _ in range(random.randint(1, 4)):
            data[random.randint(len(data))] ^= 1 << random.randint(8)
        data = bytes(data)
        decoded = decode_games(data)
        assert all(game.reason for game in decoded.left_out)
        judged += check_changed_games(data, content, decoded)
    assert judged > count // 4


def check_changed_games(data, content, decoded):
    """Compares the games that differ from ``content`` with cshogi; returns their number."""
    unused = {game.number for game in decoded.left_out}
    ends = iter(numpy.cumsum(decoded.lengths).tolist())
    end = judged = 0
    at = 0
    number = 0
    while next_game := game_at(data, at):
        if number not in unused:
            row, end = end, next(ends)
            if data[at:next_game] != content[at:next_game]:
                expected = list(judge(data, at))
                assert len(expected) == end - row
                for place, game in zip(range(row, end), expected):
                    check_position(decoded, place, *game)
                judged += 1
        at, number = next_game, number + 1
    assert next(ends, None) is None
    return judged


def game_at(data, at):
    """Index of the byte behind the game at an index; None if the file ends before."""
    if at + HEAD > len(data):
        return None
    (count,) = struct.unpack_from("<H", data, at + 32)
    at += HEAD
    for _ in range(count):
        if at + 6 > len(data):
            return None
        (candidates,) = struct.unpack_from("<H", data, at + 4)
        at += 6 + 4 * candidates
        if candidates > 593:
            return None
    return at if at <= len(data) else None


def check_position(decoded, row, placement, numbers, visits):
    position = decoded.positions[row]
    assert raw_bytes(position[None])[0, :PLACEMENT_SIZE].tobytes() == placement
    assert (position["result"], position["label"], position["evaluation"]) == numbers
    part = decoded.visits[numpy.array([row])]
    assert list(zip(part.labels.tolist(), part.counts.tolist())) == visits


@pytest.mark.long
def test_mutated_files_are_read_right_or_left_out(content):
    check_mutations(content, 40, 1)


@pytest.mark.slow
def test_five_thousand_mutated_files_are_read_right_or_left_out(content):
    check_mutations(content, 5000, 2)


def test_a_list_names_such_files(content, tmp_path):
    (tmp_path / "a.hcpe3").write_bytes(content)
    start = game_starts(content)[3][0]
    (tmp_path / "b.hcpe3").write_bytes(changed(content, start + 34, b"\x03"))
    (tmp_path / "list.txt").write_text("a.hcpe3\nb.hcpe3\n")
    positions, report = read_positions(tmp_path / "list.txt")
    decoded = decode_games(content)
    assert (positions["label"][: len(decoded.positions)] == decoded.positions["label"]).all()
    assert (report.records, report.games) == (2 * COUNT, 2 * COUNT - 1)
    reasons = [str(note) for note in report.excluded]
    assert f"b.hcpe3, record 4: at byte {start}: its result is not one of the format" in reasons
    assert f"a.hcpe3: {decoded.not_searched} moves without candidates are left out" in reasons


def test_an_empty_file_is_named(tmp_path):
    (tmp_path / "a.hcpe3").write_bytes(b"")
    (tmp_path / "list.txt").write_text("a.hcpe3\n")
    with pytest.raises(KifuError, match="it is empty"):
        read_positions(tmp_path / "list.txt")
