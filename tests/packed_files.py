"""Real games as HCPE, PSV and HCPE3 records, written by cshogi, the judge of these formats.

cshogi is imported by the functions: on a machine with a GPU it is missing, and the tests that do
not need it run there.
"""

import struct
from pathlib import Path

import numpy

from pydlshogi.kifu.fixed import HCPE, PSV

ROOT = Path(__file__).resolve().parents[1]
EMBEDDED = sorted((ROOT / "kifu" / "train").glob("*.csa"))
FLOODGATE = ROOT.parent / "shared" / "kifu" / "floodgate2016.tar.xz"


def _games(paths):
    import cshogi.CSA

    for path in paths:
        yield from cshogi.CSA.Parser.parse_file(str(path))


def write_records(paths):
    """Converts CSA files by cshogi; gives an HCPE and a PSV array with the same positions."""
    import cshogi

    board = cshogi.Board()
    black, white = [], []
    one = numpy.zeros(1, HCPE.record), numpy.zeros(1, PSV.record)
    packed = numpy.zeros(32, numpy.uint8)
    for game in _games(paths):
        board.set_sfen(game.sfen)
        for ply, move in enumerate(game.moves, 1):
            evaluation = (ply * 7919) % 4001 - 2000
            board.to_hcp(packed)
            one[0][0] = packed, evaluation, cshogi.move16(move), game.win, 0
            mover = {0: 0, 1 + board.turn: 1}.get(game.win, -1)
            board.to_psfen(packed)
            psv_move = cshogi.move16_to_psv(cshogi.move16(move))
            one[1][0] = packed, evaluation, psv_move, ply, mover, 0
            black.append(one[0].copy())
            white.append(one[1].copy())
            board.push(move)
    return numpy.concatenate(black), numpy.concatenate(white)


def write_games(paths, candidates=3):
    """Converts CSA files to HCPE3; the first legal moves are the candidates.

    Returns:
        The file's bytes, and for each move of all games its candidates as (USI, visits).
    """
    import cshogi

    board = cshogi.Board()
    packed = numpy.zeros(32, numpy.uint8)
    content, expected = [], []
    for game in _games(paths):
        board.set_sfen(game.sfen)
        board.to_hcp(packed)
        content.append(struct.pack("<32sHBB", packed.tobytes(), len(game.moves), game.win, 0))
        for ply, move in enumerate(game.moves, 1):
            tried = list(board.legal_moves)[: candidates * (ply % 5 != 0)]
            content.append(struct.pack("<HhH", cshogi.move16(move), ply, len(tried)))
            for visits, candidate in enumerate(tried, ply):
                content.append(struct.pack("<HH", cshogi.move16(candidate), visits))
            expected.append([(cshogi.move_to_usi(tried[n]), ply + n) for n in range(len(tried))])
            board.push(move)
    return b"".join(content), expected
