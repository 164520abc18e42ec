"""Records of HCPE and PSV files, judged by cshogi and python-shogi."""

import tarfile

import cshogi
import numpy
import pytest
import shogi
from packed_files import EMBEDDED, FLOODGATE, write_records

from pydlshogi.features import make_output_label
from pydlshogi.kifu.fixed import HCPE, PSV, decode_records, encode_records
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.sources import KifuError
from pydlshogi.positions import (
    DRAW,
    EVALUATION_MAX,
    LOSS,
    NO_EVALUATION,
    PLACEMENT_SIZE,
    UNKNOWN,
    WIN,
    placement_of,
    raw_bytes,
)

FORMATS = pytest.mark.parametrize("format_", [HCPE, PSV], ids=lambda format_: format_.name)
# Names of the fields of both formats.
FIELDS = {
    HCPE.name: ("hcp", "eval", "bestMove16", "gameResult"),
    PSV.name: ("sfen", "score", "move", "game_result"),
}


@pytest.fixture(scope="module")
def games():
    """The records of some games by format, written by cshogi."""
    return dict(zip((HCPE.name, PSV.name), write_records(EMBEDDED[:20])))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The positions that our own reader finds in the same games."""
    return positions_of_records(EMBEDDED[:20], tmp_path_factory.mktemp("list"))


def positions_of_records(paths, folder):
    kifu_list = folder / "records.txt"
    kifu_list.write_text("".join(f"{path}\n" for path in paths))
    return read_positions(kifu_list)[0]


def assert_equals_records(records, format_, expected):
    """Compares decoded records with the records' positions, and encoded ones with cshogi's."""
    decoded = decode_records(records.tobytes(), format_)
    assert not decoded.left_out
    for name in ("board", "hands", "result", "label"):
        assert (decoded.positions[name] == expected[name]).all(), name
    assert (decoded.positions["ply"] == (expected["ply"] if format_ is PSV else 0)).all()
    assert (decoded.positions["evaluation"] == records[FIELDS[format_.name][1]]).all()
    again, left_out = encode_records(decoded.positions, decoded.turns, format_)
    assert not left_out
    assert again.tobytes() == records.tobytes()


def judge(record, format_):
    """Reads a record by cshogi: board, result for the mover, label; None for no such move."""
    packed, _, move, result = (record[name] for name in FIELDS[format_.name])
    board = cshogi.Board()
    row = numpy.array(packed)
    if format_ is HCPE:
        board.set_hcp(row)
        won = {0: DRAW, 1 + board.turn: WIN}.get(int(result) & 3, LOSS)
        usi = cshogi.move_to_usi(board.move_from_move16(int(move)))
    else:
        board.set_psfen(row)
        won = {0: DRAW, 1: WIN}.get(int(result), LOSS)
        usi = cshogi.move_to_usi(board.move_from_psv(int(move)))
    plain = shogi.Board(board.sfen())
    played = shogi.Move.from_usi(usi)
    assert plain.is_pseudo_legal(played), (board.sfen(), usi)
    return placement_of(plain), won, make_output_label(played, plain.turn)


def check_mutations(records, format_, count, seed):
    """Flips bits of records; asserts that each is read as cshogi does, or left out."""
    random = numpy.random.RandomState(seed)
    records = records[random.randint(0, len(records), count)].copy()
    raw = records.view(numpy.uint8).reshape(count, -1)
    for row in raw:
        # The last byte is not used.
        for _ in range(random.randint(1, 4)):
            row[random.randint(len(row) - 1)] ^= 1 << random.randint(8)
    decoded = decode_records(raw.tobytes(), format_)
    left_out = {record.number for record in decoded.left_out}
    assert all(record.reason for record in decoded.left_out)
    kept = [number for number in range(count) if number not in left_out]
    assert len(kept) == len(decoded.positions) > count // 20
    for number, position in zip(kept, decoded.positions):
        placement, result, label = judge(records[number], format_)
        assert raw_bytes(position[None])[0, :PLACEMENT_SIZE].tobytes() == placement
        assert (position["result"], position["label"]) == (result, label)
        assert position["evaluation"] == records[number][FIELDS[format_.name][1]]


@FORMATS
def test_positions_of_real_games_equal_the_records_and_are_written_as_cshogi_does(
    format_, games, expected
):
    assert_equals_records(games[format_.name], format_, expected)


@FORMATS
def test_mutated_records_are_read_right_or_left_out(format_, games):
    check_mutations(games[format_.name], format_, 500, 1)


@FORMATS
@pytest.mark.slow
def test_five_thousand_mutated_records_are_read_right_or_left_out(format_, games):
    check_mutations(games[format_.name], format_, 5000, 2)


@pytest.mark.slow
@pytest.mark.skipif(not FLOODGATE.exists(), reason="the floodgate games are not here")
def test_a_hundred_thousand_positions_of_floodgate_equal_cshogi_each_way(tmp_path):
    with tarfile.open(FLOODGATE) as archive:
        archive.extractall(tmp_path)
    paths = sorted((tmp_path / "floodgate2016").glob("*.csa"))[::40]
    positions = positions_of_records(paths, tmp_path)
    assert len(positions) > 100_000
    for records, format_ in zip(write_records(paths), (HCPE, PSV)):
        assert_equals_records(records, format_, positions)


@FORMATS
def test_each_kind_of_wrong_record_is_left_out_with_its_reason(format_, games):
    packed, _, move, result = FIELDS[format_.name]
    records = games[format_.name][:12].copy()
    records[1][packed][2:] = 255
    records[2][move] = 0
    records[3][move] = 127
    records[4][move] = records[5][move]
    records[6][result] = 3
    records[7][move] = records[7][move] | 1 << 15 if format_ is HCPE else 3 << 14
    decoded = decode_records(records.tobytes(), format_)
    size = format_.record.itemsize
    reasons = {record.number: record.reason for record in decoded.left_out}
    assert [record.start for record in decoded.left_out] == [size * n for n in reasons]
    assert len(decoded.positions) == len(decoded.turns) == 12 - len(reasons)
    assert list(reasons) == [1, 2, 3, 4, 6, 7]
    assert reasons[1] == "the bits do not form a board and hands"
    assert reasons[2] == "it has no move"
    assert reasons[3] == "its move, 0x007f, is not one of the format"
    assert reasons[4].startswith("its move is not possible: ")
    assert reasons[6] == "its result is not one of the format"
    assert "is not one of the format" in reasons[7]


def hcpe_of(sfen, usi):
    """Packs one position by cshogi, and a move that cshogi would not make."""
    board = cshogi.Board(sfen)
    record = numpy.zeros(1, HCPE.record)
    packed = numpy.zeros(32, numpy.uint8)
    board.to_hcp(packed)
    record["hcp"] = packed
    squares = {
        f"{file}{rank}": "abcdefghi".index(rank) + file * 9 - 9
        for file in range(1, 10)
        for rank in "abcdefghi"
    }
    origin = 81 if usi.startswith("P*") else squares[usi[:2]]
    record["bestMove16"] = squares[usi[2:4]] | origin << 7
    return record


@pytest.mark.parametrize(
    ("sfen", "usi", "reason"),
    [
        ("k8/9/9/9/4P4/9/9/9/K8 b P 1", "P*5c", "it drops a second pawn on a file"),
        ("k8/9/9/9/4P4/9/9/9/K8 b - 1", "5e5c", "the piece does not move that way"),
        ("k8/9/9/4P4/9/9/9/4R4/K8 b - 1", "5h5c", "a piece stands in between"),
        ("k8/9/9/4P4/4R4/9/9/9/K8 b - 1", "5e5d", "an own piece is on the square it goes to"),
        ("9/9/9/9/9/9/9/1k7/K8 b - 1", "9i8h", "it captures the king"),
    ],
)
def test_the_move_is_checked_on_its_board(sfen, usi, reason):
    (left_out,) = decode_records(hcpe_of(sfen, usi).tobytes(), HCPE).left_out
    assert left_out.reason == f"its move is not possible: {reason}"


def test_strict_leaves_out_moves_into_check():
    record = hcpe_of("k8/9/9/9/r8/9/9/9/K7G b - 1", "1i1h").tobytes()
    assert len(decode_records(record, HCPE).positions) == 1
    (left_out,) = decode_records(record, HCPE, strict=True).left_out
    assert left_out.reason == "its move is not legal"


@FORMATS
def test_strict_leaves_out_nothing_of_real_games(format_, games):
    records = games[format_.name][:200].tobytes()
    assert not decode_records(records, format_, strict=True).left_out


def test_bits_that_say_how_a_game_ended_do_not_change_its_result(games):
    records = games[HCPE.name][:8].copy()
    plain = decode_records(records.tobytes(), HCPE).positions
    records["gameResult"] += numpy.array([0, 4, 8, 16, 4, 8, 12, 28], numpy.uint8)
    marked = decode_records(records.tobytes(), HCPE)
    assert not marked.left_out
    assert (marked.positions["result"] == plain["result"]).all()


@FORMATS
def test_all_results_survive_for_both_sides_to_move(format_, games):
    decoded = decode_records(games[format_.name][:6].tobytes(), format_)
    decoded.positions["result"] = [WIN, WIN, LOSS, LOSS, DRAW, DRAW]
    records, _ = encode_records(decoded.positions, decoded.turns, format_)
    again = decode_records(records.tobytes(), format_)
    assert (again.positions["result"] == decoded.positions["result"]).all()
    assert again.turns.tolist() == [0, 1, 0, 1, 0, 1]


@FORMATS
def test_what_the_format_cannot_hold_is_not_written(format_, games):
    decoded = decode_records(games[format_.name][:4].tobytes(), format_)
    decoded.positions["result"][1] = UNKNOWN
    decoded.positions["hands"][2] = 9
    decoded.positions["evaluation"][3] = NO_EVALUATION
    records, left_out = encode_records(decoded.positions, decoded.turns, format_)
    assert len(records) == 2
    assert [record.number for record in left_out] == [1, 2]
    assert left_out[0].reason == "its result is not known"
    assert left_out[1].reason == "there are more pieces of a kind than in a set"
    assert records[FIELDS[format_.name][1]][1] == 0


# --- files in lists -----------------------------------------------------------------


def write_list(folder, **files):
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    kifu_list = folder / "list.txt"
    kifu_list.write_text("".join(f"{name.replace('__', '.')}\n" for name in files))
    return kifu_list


@FORMATS
def test_a_list_names_such_files_beside_records(format_, games, expected, tmp_path):
    records = games[format_.name]
    suffix = format_.suffixes[0][1:]
    files = {f"a__{suffix}": records.tobytes(), "b__csa": EMBEDDED[20].read_bytes()}
    positions, report = read_positions(write_list(tmp_path, **files))
    assert (positions["label"][: len(records)] == expected["label"]).all()
    csa = positions[len(records) :]
    assert csa["ply"].tolist() == list(range(1, len(csa) + 1))
    assert report.games == report.records == len(records) + 1
    black = (records["gameResult"] == 1).sum() if format_ is HCPE else None
    if black is not None:
        assert report.black_wins - (csa["result"][0] == WIN) == black


@FORMATS
def test_parts_of_a_file_give_what_the_whole_file_gives(format_, games, tmp_path, monkeypatch):
    monkeypatch.setattr("pydlshogi.kifu.record_batch.parts_of.__defaults__", (100,))
    records = games[format_.name][:50].copy()
    records[30][FIELDS[format_.name][2]] = 0
    kifu_list = write_list(tmp_path, **{f"a__{format_.suffixes[0][1:]}": records.tobytes()})
    positions, report = read_positions(kifu_list)
    whole = decode_records(records.tobytes(), format_)
    assert (positions["label"] == whole.positions["label"]).all()
    (note,) = report.excluded
    assert note.record == 31
    assert note.reason == f"at byte {30 * format_.record.itemsize}: it has no move"


def test_evaluations_beyond_the_limit_mean_a_decided_game(games, tmp_path):
    records = games[HCPE.name][:4].copy()
    records["eval"] = 32000, -32000, 5, NO_EVALUATION
    positions, _ = read_positions(write_list(tmp_path, a__hcpe=records.tobytes()))
    limited = [EVALUATION_MAX, -EVALUATION_MAX, 5, NO_EVALUATION]
    assert positions["evaluation"].tolist() == limited


@FORMATS
def test_a_truncated_file_loses_its_last_record_and_says_so(format_, games, tmp_path):
    content = games[format_.name][:5].tobytes()[:-3]
    kifu_list = write_list(tmp_path, **{f"a__{format_.suffixes[0][1:]}": content})
    positions, report = read_positions(kifu_list)
    size = format_.record.itemsize
    assert len(positions) == 4
    (note,) = report.excluded
    assert f"it ends {size - 3} bytes after a whole record" in note.reason
    assert f"a multiple of {size} bytes" in note.reason
    assert (report.records, report.games) == (4, 4)


@FORMATS
def test_a_file_without_a_whole_record_counts_as_one(format_, games, tmp_path):
    files = {f"a__{format_.suffixes[0][1:]}": b"short", "b__csa": EMBEDDED[0].read_bytes()}
    _, report = read_positions(write_list(tmp_path, **files))
    assert (report.records, report.games, len(report.excluded)) == (2, 1, 1)


@FORMATS
def test_records_are_counted_once_where_not_all_wrong_ones_are_listed(
    format_, games, tmp_path, monkeypatch
):
    monkeypatch.setattr("pydlshogi.kifu.record_batch._MOST_NOTES", 2)
    records = games[format_.name][:50].copy()
    records[10:15][FIELDS[format_.name][2]] = 0
    kifu_list = write_list(tmp_path, **{f"a__{format_.suffixes[0][1:]}": records.tobytes()})
    _, report = read_positions(kifu_list)
    assert "3 more records" in report.excluded[-1].reason
    assert (report.records, report.games) == (50, 45)


@FORMATS
def test_a_file_of_the_other_format_is_refused_with_few_notes(format_, games, tmp_path):
    other = {HCPE.name: PSV, PSV.name: HCPE}[format_.name]
    content = games[other.name][:2000].tobytes()
    kifu_list = write_list(tmp_path, **{f"a__{format_.suffixes[0][1:]}": content})
    with pytest.raises(KifuError, match=f"are not taken for {format_.name}"):
        read_positions(kifu_list)
    kifu_list = write_list(
        tmp_path,
        **{f"a__{format_.suffixes[0][1:]}": content, "b__csa": EMBEDDED[0].read_bytes()},
    )
    _, report = read_positions(kifu_list)
    assert len(report.excluded) <= 2
    assert report.records >= len(content) // format_.record.itemsize


@FORMATS
def test_an_empty_file_is_named(format_, tmp_path):
    kifu_list = write_list(tmp_path, **{f"a__{format_.suffixes[0][1:]}": b""})
    with pytest.raises(KifuError, match="it is empty"):
        read_positions(kifu_list)


def test_the_cache_keeps_the_positions_of_such_files(games, tmp_path):
    kifu_list = write_list(tmp_path, a__hcpe=games[HCPE.name].tobytes())
    first = load_positions(kifu_list)
    second = load_positions(kifu_list)
    assert (first.from_cache, second.from_cache) == (False, True)
    assert second.positions.tobytes() == first.positions.tobytes()
    (tmp_path / "a.hcpe").write_bytes(games[HCPE.name][:10].tobytes())
    assert len(load_positions(kifu_list).positions) == 10
