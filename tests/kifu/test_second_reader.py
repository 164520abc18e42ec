"""Records that other libraries write, read back: moves, start position, names and result.

The writers are rsshogi (CSA 2.2 and 3.0, KIF, KI2), cshogi (CSA, KIF) and tsshogi (all four). Node
runs tsshogi where TSSHOGI_MODULES names a folder ``node_modules`` that has it. No writer knows
handicaps by name in CSA, variations in CSA, or names of players without a header in KI2.
"""

import functools
import json
import os
import random
import shutil
import subprocess
import tarfile
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
import shogi
import shogi.KIF

from pydlshogi.analysis.record import checked_game
from pydlshogi.kifu.csa import parse_game, split_records
from pydlshogi.kifu.kif import parse_kif
from pydlshogi.kifu.legality import settle_foul
from pydlshogi.positions import DRAW, LOSS, UNKNOWN, WIN

ROOT = Path(__file__).parents[2]
GAMES = sorted((ROOT / "kifu").rglob("*.csa"))
MANY = ROOT.parent / "shared" / "kifu" / "floodgate2016.tar.xz"
NAMES = ["先手 甲", "White (後手)"]
NODE_MODULES = os.environ.get("TSSHOGI_MODULES", "")
NODE = shutil.which("node")
HANDICAPS = sorted(filter(None, set(shogi.KIF.Parser.HANDYCAP_SFENS.values())))
#: A position with many pieces in hand.
OTHER_STARTS = [
    "4k4/9/4P4/9/9/9/9/9/4K4 w G16Pr2b 1",
]


class Facts(NamedTuple):
    """What a record says."""

    start: str
    moves: list
    names: list
    result: int


def facts_of(game):
    """The facts of a parsed game, in USI."""
    settle_foul(game)
    record = checked_game(game)
    moves = [move.usi() for move in record.moves]
    return Facts(_position(record.start.sfen()), moves, game.names, game.result)


def _position(sfen):
    return sfen.rsplit(" ", 1)[0]


def read_back(text, form):
    parse = parse_game if form.startswith("csa") else parse_kif
    return facts_of(parse(text.encode()))


FORMS = ["csa2", "csa3", "kif", "ki2"]


def rsshogi_text(record, form):
    if form.startswith("csa"):
        return record.to_csa(version={"csa2": "2.2", "csa3": "3.0"}[form])
    return record.to_kif() if form == "kif" else record.to_ki2()


def check_games(games):
    """Compares what rsshogi writes of games in CSA; returns the number of games."""
    record_module = pytest.importorskip("rsshogi.record")
    read = 0
    for text in games:
        expected = facts_of(parse_game(text))
        if not expected.moves:
            continue
        written = record_module.Record.from_csa_str(text.decode())
        for form in FORMS:
            found = read_back(rsshogi_text(written, form), form)
            if written.result.name in ("INVALID", "PAUSED", "ERROR"):  # only a summary gives it
                found = found._replace(result=expected.result)
            assert found == expected, (form, expected.names)
        read += 1
    return read


@pytest.mark.long
def test_the_games_of_the_repository_come_back_from_rsshogi():
    assert check_games(path.read_bytes() for path in GAMES) == len(GAMES)


@pytest.mark.slow
def test_500_games_of_floodgate_come_back_from_rsshogi():
    if not MANY.exists():
        pytest.skip(f"{MANY} is missing")

    def games():
        with tarfile.open(MANY) as archive:
            for member in archive:
                if member.isfile():
                    yield next(iter(split_records(archive.extractfile(member).read())))[1]

    chosen = [game for number, game in zip(range(5000), games()) if number % 10 == 0]
    assert check_games(chosen) > 480


def played(seed, sfen=shogi.STARTING_SFEN, length=20):
    """Plays random moves; gives the start and the moves in USI."""
    source = random.Random(seed)
    board = shogi.Board(sfen)
    moves = []
    while len(moves) < length:
        legal = sorted(board.legal_moves, key=str)
        if not legal:
            break
        # Captures fill the hands, so that pieces are dropped, too.
        captures = [move for move in legal if board.piece_at(move.to_square)]
        move = source.choice(captures if captures and source.random() < 0.5 else legal)
        moves.append(move.usi())
        board.push(move)
    return _position(sfen), moves


def reached(seed):
    """A position of a game, with promoted pieces and pieces in hand."""
    start, moves = played(seed, length=60)
    board = shogi.Board(f"{start} 1")
    for usi in moves:
        board.push_usi(usi)
    return board.sfen()


@functools.lru_cache(maxsize=1)
def generated():
    """Games with few moves and many, with handicaps and from other positions."""
    starts = [*HANDICAPS, *OTHER_STARTS, *map(reached, range(2))]
    games = [
        *(played(seed, length=length) for seed, length in enumerate((1, 2, 3, 40, 40))),
        *(played(seed, sfen) for seed, sfen in enumerate(starts)),
    ]
    return [(start, moves) for start, moves in games if moves]


#: The ends that rsshogi writes, and the results for Black.
ENDS = {
    "BLACK_WIN": WIN,
    "WHITE_WIN": LOSS,
    "BLACK_WIN_BY_TIMEOUT": WIN,
    "WHITE_WIN_BY_TIMEOUT": LOSS,
    "BLACK_WIN_BY_DECLARATION": WIN,
    "WHITE_WIN_BY_DECLARATION": LOSS,
    "BLACK_WIN_BY_ILLEGAL_MOVE": WIN,
    "WHITE_WIN_BY_ILLEGAL_MOVE": LOSS,
    "DRAW_BY_REPETITION": DRAW,
    "DRAW_BY_IMPASSE": DRAW,
    "DRAW_BY_MAX_PLIES": DRAW,
    "PAUSED": UNKNOWN,
}


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", sorted(ENDS))
def test_generated_games_come_back_from_rsshogi(form, end):
    module = pytest.importorskip("rsshogi.record")
    read = 0
    for start, moves in generated()[sorted(ENDS).index(end) % 2 :: 2]:
        names = module.RecordMetadata(black_player=NAMES[0], white_player=NAMES[1])
        record = module.Record.from_usi_main_line(
            f"{start} 1",
            moves,
            result=getattr(module.GameResult, end),
            metadata=names,
            initial_comment="初めの注\n▲７六歩から",
        )
        try:
            text = rsshogi_text(record, form)
        except ValueError:  # no end of a record gives the win to this side
            continue
        found = read_back(text, form)
        foul = "ILLEGAL" in end and len(found.moves) == len(moves) - 1
        assert found == Facts(start, moves[: len(found.moves)], NAMES, ENDS[end]), text
        assert foul or len(found.moves) == len(moves)
        read += 1
    assert read >= 2


@pytest.mark.parametrize("form", ["kif", "ki2"])
def test_the_main_line_comes_back_from_games_with_variations_and_comments(form):
    module = pytest.importorskip("rsshogi.record")
    for start, moves in generated():
        entries = [
            module.MoveEntry(_move(usi), comment=f"{ply}手目\n△３四歩は疑問", time_ms=1000)
            for ply, usi in enumerate(moves)
        ]
        record = module.Record.from_main_line(f"{start} 1", entries)
        board = shogi.Board(f"{start} 1")
        editor = record.into_editor()
        nodes = [0, *record.main_line_ids()]
        for ply, usi in enumerate(moves[:9]):
            if ply % 4 == 2:
                other = next(move.usi() for move in board.legal_moves if move.usi() != usi)
                editor.go_to(nodes[ply])
                editor.append_move(module.MoveEntry(_move(other)))
            board.push_usi(usi)
        text = rsshogi_text(editor.into_record(), form)
        assert "変化" in text or len(moves) < 3
        found = read_back(text, form)
        assert (found.start, found.moves) == (start, moves)


def _move(usi):
    import rsshogi.core

    return rsshogi.core.Move.from_usi(usi)


#: cshogi's words for an end, and the result for the side to move.
CSHOGI_ENDS = {
    "kif": {
        "resign": LOSS,
        "win": WIN,
        "draw": DRAW,
        "sennichite": DRAW,
        "illegal_win": WIN,
        "illegal_lose": LOSS,
    },
    "csa": {"%TORYO": LOSS, "%KACHI": WIN, "%SENNICHITE": DRAW, "%ILLEGAL_MOVE": LOSS},
}


@pytest.mark.parametrize(
    ("form", "end"), [(form, end) for form in CSHOGI_ENDS for end in CSHOGI_ENDS[form]]
)
def test_generated_games_come_back_from_cshogi(form, end, tmp_path):
    cshogi = pytest.importorskip("cshogi")
    module = pytest.importorskip(f"cshogi.{form.upper()}")
    for number, (start, moves) in enumerate(generated()):
        board = cshogi.Board(f"{start} 1")
        path = tmp_path / f"{number}.{'kifu' if form == 'kif' else 'csa'}"
        if form == "kif":
            writer = module.Exporter(str(path))
            position = None if start in shogi.STARTING_SFEN else board
            writer.header(NAMES, datetime(2026, 1, 2), position)
        else:
            writer = module.Exporter(str(path), encoding="utf-8")
            writer.info(board, NAMES, comment="注", version="V2.2")
        for usi in moves:
            writer.move(board.push_usi(usi))
        writer.end(end) if form == "kif" else writer.endgame(end)
        writer.close()
        found = read_back(path.read_text(encoding="utf-8"), form)
        kept = len(moves) - (end == "illegal_win")
        result = CSHOGI_ENDS[form][end]
        if board.turn == cshogi.WHITE and result != DRAW:
            result = WIN + LOSS - result
        assert found == Facts(start, moves[:kept], NAMES, result), path.read_text(encoding="utf-8")


SCRIPT = """
const t = require("tsshogi");
const games = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(games.map(({start, moves, names, end, side}) => {
  const record = t.Record.newByUSI("position sfen " + start + " 1");
  record.metadata.setStandardMetadata(t.RecordMetadataKey.BLACK_NAME, names[0]);
  record.metadata.setStandardMetadata(t.RecordMetadataKey.WHITE_NAME, names[1]);
  record.current.comment = "初めの注";
  for (const usi of moves) {
    record.append(record.position.createMoveByUSI(usi), {ignoreValidation: true});
    record.current.comment = "注\\n▲７六歩";
  }
  record.append(t.specialMove(t.SpecialMoveType[end]));
  if (side) {
    record.goto(side.ply);
    record.append(record.position.createMoveByUSI(side.move), {ignoreValidation: true});
    record.goto(0);
    record.resetAllBranchSelection();
  }
  return {csa2: t.exportCSA(record), csa3: t.exportCSA(record, {v3: {encoding: "UTF-8"}}),
          kif: t.exportKIF(record), ki2: t.exportKI2(record)};
})));
"""
#: tsshogi's names of ends, and the result for the side to move.
TSSHOGI_ENDS = {
    "RESIGN": LOSS,
    "INTERRUPT": UNKNOWN,
    "IMPASS": DRAW,
    "DRAW": DRAW,
    "REPETITION_DRAW": DRAW,
    "MATE": LOSS,
    "TIMEOUT": LOSS,
    "FOUL_WIN": WIN,
    "FOUL_LOSE": LOSS,
    "ENTERING_OF_KING": WIN,
    "MAX_MOVES": DRAW,
    "WIN_BY_DEFAULT": WIN,
    "LOSE_BY_DEFAULT": LOSS,
}


@pytest.mark.skipif(not (NODE and NODE_MODULES), reason="TSSHOGI_MODULES is not set, or no node")
def test_generated_games_come_back_from_tsshogi():
    games = []
    for start, moves in generated():
        board = shogi.Board(f"{start} 1")
        board.push_usi(moves[0])
        other = next((m.usi() for m in board.legal_moves if m.usi() not in moves[1:2]), None)
        for end in TSSHOGI_ENDS:
            side = {"ply": 1, "move": other} if other and len(moves) > 1 else None
            games.append({"start": start, "moves": moves, "names": NAMES, "end": end, "side": side})
    answer = subprocess.run(
        [NODE, "-e", SCRIPT],
        input=json.dumps(games),
        env={**os.environ, "NODE_PATH": NODE_MODULES},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    for game, texts in zip(games, json.loads(answer.stdout)):
        black_to_move = (len(game["moves"]) % 2 == 0) == (" b " in game["start"])
        result = TSSHOGI_ENDS[game["end"]]
        if not black_to_move and result in (WIN, LOSS):
            result = WIN + LOSS - result
        for form, text in texts.items():
            found = read_back(text, form)
            moves = game["moves"][: len(game["moves"]) - (game["end"] == "FOUL_WIN")]
            if form.startswith("csa") and "DEFAULT" in game["end"]:  # CSA has no mark for it
                found = found._replace(result=result)
            assert found == Facts(game["start"], moves, NAMES, result), text
