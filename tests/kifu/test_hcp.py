"""Boards of 32 bytes, judged by cshogi and python-shogi."""

import hypothesis
import numpy
import pytest
import shogi
from hypothesis import strategies
from packed_files import EMBEDDED, write_records

from pydlshogi.kifu.hcp import FAULTS, HCP, PACKED_SFEN, pack, unpack
from pydlshogi.kifu.reading import read_positions
from pydlshogi.positions import PLACEMENT_SIZE, placement_of, raw_bytes

CODES = pytest.mark.parametrize("code", [HCP, PACKED_SFEN], ids=lambda code: code.name)

# Packed by cshogi 1.1. The handicaps have pieces that are on no side.
GOLDEN = {
    "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1": (
        "58a449210cd757217e8e4d212caf427814c2ab109e4d212cd75f213e8e49210c",
        "58a451220ceb67227e9653221caf447824c22b119e53221ceb6f223e9651220c",
    ),
    "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1": (
        "59a449210c9742fc1c9b42585e85f0288457213c9b42582e85f8382685303c5e",
        "59a451220cab44fc2ca744385e89f0488457223ca744385689f858468930bc7e",
    ),
    "3gkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1": (
        "59240a61a0103f0785b0bc0ae15108af4278288485427c1c14c290d25aad3d5e",
        "5924126120113f0b8970bc12e19108af4478488483447c2c24c290526b6bbd7e",
    ),
    "4k4/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1": (
        "59240a61a0103f0785b050088f42a0101e0a61a1101f078530a4b4566bbd3f5e",
        "5924126120113f0b897090088f4420111e12e120111f0b8930a4d4da5a7bbf7e",
    ),
    "8k/9/9/9/9/9/9/9/K8 b RBGSNLPrbgsnlp 1": (
        "a00000000000000000000000c228e7f3639cf57eff92244992244929add55aef",
        "a000000000000000000000004219e7f161acf33ebf92244992244929b5b6d6de",
    ),
}


@pytest.fixture(scope="module")
def games():
    """Packed boards by code."""
    hcpe, psv = write_records(EMBEDDED[:20])
    return {HCP.name: hcpe["hcp"], PACKED_SFEN.name: psv["sfen"]}


@pytest.fixture(scope="module")
def placements(tmp_path_factory):
    kifu_list = tmp_path_factory.mktemp("list") / "list.txt"
    kifu_list.write_text("".join(f"{path}\n" for path in EMBEDDED[:20]))
    positions, _ = read_positions(kifu_list)
    return raw_bytes(positions)[:, :PLACEMENT_SIZE]


def packed(sfen, code):
    board = shogi.Board(sfen)
    placement = numpy.frombuffer(placement_of(board), numpy.uint8)[None]
    return pack(placement, numpy.array([board.turn], numpy.uint8), code)


def fault_of(row, code):
    return FAULTS[unpack(numpy.frombuffer(bytes(row), numpy.uint8).reshape(1, 32), code).faults[0]]


@CODES
def test_boards_of_real_games_are_unpacked_as_the_records_have_them(code, games, placements):
    boards = unpack(games[code.name], code)
    assert not boards.faults.any()
    assert (boards.placements == placements).all()


@CODES
def test_packing_gives_back_cshogis_bytes(code, games, placements):
    boards = unpack(games[code.name], code)
    again, faults = pack(placements, boards.turns, code)
    assert not faults.any()
    assert (again == games[code.name]).all()


@CODES
@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_boards_of_games_with_handicap_keep_their_missing_pieces(code, number):
    sfen, golden = list(GOLDEN.items())[number]
    row, faults = packed(sfen, code)
    assert not faults.any()
    assert row.tobytes().hex() == golden[code is PACKED_SFEN]
    boards = unpack(row, code)
    assert boards.faults[0] == 0
    assert boards.placements.tobytes() == placement_of(shogi.Board(sfen))


@CODES
def test_the_number_of_boards_in_a_chunk_does_not_matter(code, games):
    rows = games[code.name][:100]
    whole = unpack(rows, code)
    for chunk in (1, 7, 99):
        for one, other in zip(unpack(rows, code, chunk), whole):
            assert (one == other).all()
        assert (pack(whole.placements, whole.turns, code, chunk)[0] == rows).all()


@CODES
def test_no_boards_give_no_boards(code):
    boards = unpack(numpy.empty((0, 32), numpy.uint8), code)
    assert [len(array) for array in boards] == [0, 0, 0]
    assert [len(array) for array in pack(boards.placements, boards.turns, code)] == [0, 0]


@pytest.mark.long
@CODES
@hypothesis.given(data=strategies.data())
def test_damaged_boards_are_refused_or_mean_what_packing_them_again_means(code, games, data):
    rows = games[code.name]
    row = bytearray(rows[data.draw(strategies.integers(0, len(rows) - 1))].tobytes())
    for bit in data.draw(strategies.lists(strategies.integers(0, 255), min_size=1, max_size=3)):
        row[bit // 8] ^= 1 << bit % 8
    boards = unpack(numpy.frombuffer(bytes(row), numpy.uint8)[None], code)
    if not boards.faults[0]:
        again, faults = pack(boards.placements, boards.turns, code)
        assert not faults.any()
        assert unpack(again, code).placements.tobytes() == boards.placements.tobytes()


@CODES
@hypothesis.given(row=strategies.binary(min_size=32, max_size=32))
def test_random_bytes_raise_nothing(code, row):
    fault_of(row, code)


@CODES
@pytest.mark.parametrize(
    ("sfen", "reason"),
    [
        ("9/9/9/9/9/9/9/9/K8 b - 1", "a king is missing"),
        ("k8/k8/9/9/9/9/9/9/K8 b - 1", "a side has more than one king"),
        ("k8/9/9/9/9/9/9/9/K8 b 3R 1", "there are more pieces of a kind than in a set"),
        ("k8/9/9/4P4/9/4P4/9/9/K8 b - 1", "two pawns of one side are on one file"),
        ("k8/9/9/9/9/4p4/9/4p4/K8 w - 1", "two pawns of one side are on one file"),
        ("k3P4/9/9/9/9/9/9/9/K8 b - 1", "a pawn, lance or knight could never move again"),
        ("k8/9/9/9/9/9/9/4n4/K8 b - 1", "a pawn, lance or knight could never move again"),
    ],
)
def test_impossible_boards_are_not_packed(code, sfen, reason):
    row, faults = packed(sfen, code)
    assert FAULTS[faults[0]] == reason
    assert not row.any()


@CODES
def test_promoted_pieces_may_stand_where_plain_ones_cannot(code):
    sfen = "k3+P4/4+P4/9/9/9/9/9/4+n4/K3+l4 b - 1"
    assert not packed(sfen, code)[1].any()


@CODES
def test_kings_off_the_board_or_on_one_square_are_refused(code, games):
    row = bytearray(games[code.name][0].tobytes())
    black = (row[0] >> 1) & 127
    row[1] = row[1] & 128 | black
    assert fault_of(row, code) == "both kings are on one square"
    row[1] = row[1] & 128 | 81
    assert fault_of(row, code) == "a king is missing"
    row[0] = row[0] & 1 | 127 << 1
    assert fault_of(row, code) == "a king is missing"


@CODES
def test_bits_that_are_no_board_are_refused(code, games):
    row = bytearray(games[code.name][0].tobytes())
    assert fault_of(row[:2] + bytes(30), code) == "there are more pieces of a kind than in a set"
    assert fault_of(row[:2] + b"\xff" * 30, code) == "the bits do not form a board and hands"


@CODES
def test_no_board_of_a_set_needs_more_or_fewer_bits(code):
    """Every piece is on the board or in hand: one bit apart, as an empty square is one bit."""
    pieces = {square: bits for square, bits in code.board.items() if square}
    for (kind, owner), bits in code.hand.items():
        for square in (kind + 1, kind + 15):
            assert len(pieces[square]) == len(bits) + 1, (kind, owner)
