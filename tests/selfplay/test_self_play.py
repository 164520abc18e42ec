"""The program self_play: its games, its folder, kills, and wrong input."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cshogi
import cshogi.CSA
import numpy
import pytest

from pydlshogi.commands.self_play import main
from pydlshogi.kifu.hcpe3 import decode_games, scan
from pydlshogi.kifu.sources import read_list
from pydlshogi.kifu.split import find_records
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.registry import make_network
from pydlshogi.selfplay import generate
from pydlshogi.selfplay.folder import GameFolder, Tables

if os.name != "nt":
    import resource

REPOSITORY = Path(__file__).resolve().parents[2]

#: Fast games.
FAST = ["--visits", "6", "--considered", "4", "--cheap_visits", "2", "--batch", "6"]
FAST += ["--max_plies", "40", "--games_a_file", "4", "--backend", "own", "--gpu", "-1"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model file with random weights."""
    numpy.random.seed(1)
    path = tmp_path_factory.mktemp("model") / "small"
    save_model(path, make_network("policy_value_small"))
    return path


def command(model, folder, *options):
    """Returns the command of another process."""
    words = [str(model), str(folder), *FAST, *options]
    return [sys.executable, "-m", "pydlshogi", "self_play", *words]


def start(*words):
    """Starts the program in another process."""
    return subprocess.Popen(
        command(*words), cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def play(model, folder, *options):
    """Plays games here; returns the exit status."""
    return main([str(model), str(folder), *FAST, *options])


def replayed(data):
    """Replays the games of a file by cshogi; returns the final boards and the results."""
    games = []
    for layout in scan(data):
        hcp, number, result, _ = layout.head
        board = cshogi.Board()
        board.set_hcp(numpy.frombuffer(hcp, numpy.uint8))
        for (move16, _, count), place in zip(layout.moves, layout.candidates):
            candidates = numpy.frombuffer(data, "<u2", 2 * count, place).reshape(-1, 2)
            for candidate, visits in candidates.tolist():
                assert board.is_legal(board.move_from_move16(candidate)) and visits
            move = board.move_from_move16(move16)
            assert board.is_legal(move)
            board.push(move)
        games.append((board, result, number))
    return games


def check(folder, games, exactly=True):
    """Checks that the folder has exactly some games, all readable by cshogi and by us."""
    files = Tables(folder).of_files()
    rows = [row for found in files.values() for row in found]
    assert not exactly or sorted(row.game for row in rows) == list(range(1, games + 1))
    for path, found in files.items():
        data = path.read_bytes()
        assert len(data) == found[-1].end_byte
        for (board, result, number), row in zip(replayed(data), found, **STRICT):
            assert number == row.plies
            assert result & 3 == {"draw": 0, "black": 1, "white": 2}[row.winner]
            if row.end == "mate":
                assert board.is_game_over() and result & 3 == 2 - board.turn
        decoded = decode_games(data, strict=True)
        assert not decoded.left_out
        assert len(decoded.positions) == sum(row.targets for row in found)
    assert not list(folder.glob("*.part"))


STRICT = {"strict": True} if sys.version_info >= (3, 10) else {}


def test_games_are_legal_and_the_table_is_that_of_the_files(model, tmp_path, capsys):
    options = ["--handicap_share", "0.5", "--full_share", "0.5"]
    assert play(model, tmp_path / "games", "--games", "9", *options) == 0
    check(tmp_path / "games", 9)
    assert "Wrong resignations" in capsys.readouterr().out


def test_games_are_read_by_the_training(model, tmp_path):
    play(model, tmp_path / "games", "--games", "2", "--full_share", "1")
    (path,) = (tmp_path / "games").glob("*.hcpe3")
    decoded = decode_games(path.read_bytes())
    assert len(decoded.visits.labels) >= len(decoded.positions) > 0
    # The folder stands for its games once, though the first one is a record, too.
    assert any((tmp_path / "games" / "records").glob("*.csa"))
    assert find_records(tmp_path / "games").records == [path]
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'games'}\n")
    assert [source.path for source in read_list(tmp_path / "list.txt")] == [str(path)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--handicaps", "two"], "--handicaps needs --handicap_share"),
        (["--kifu_plies", "9"], "--kifu_plies needs --kifu_list"),
        (["--kifu_share", "1"], "--kifu_share needs --kifu_list"),
    ],
)
def test_an_option_without_effect_is_refused(tmp_path, capsys, words, sentence):
    with pytest.raises(SystemExit):
        play(tmp_path / "no model", tmp_path / "games", *words)
    assert sentence in capsys.readouterr().err


#: The records of dlshogi's files, as its cppshogi.h declares them.
GAME = numpy.dtype(
    [("hcp", "u1", 32), ("moveNum", "<u2"), ("result", "u1"), ("opponent", "u1")]
)  # fmt: skip
MOVE = numpy.dtype([("selectedMove16", "<u2"), ("eval", "<i2"), ("candidateNum", "<u2")])
VISITS = numpy.dtype([("move16", "<u2"), ("visitNum", "<u2")])


def test_the_files_have_the_fields_of_dlshogi(model, tmp_path):
    options = ["--games", "4", "--random_plies", "4", "--full_share", "0.5"]
    play(model, tmp_path / "games", *options)
    (path,) = (tmp_path / "games").glob("*.hcpe3")
    data, place, targets, cheap = path.read_bytes(), 0, 0, 0

    def take(kind, count=1):
        nonlocal place
        found = numpy.frombuffer(data, kind, count, place)
        place += found.nbytes
        return found

    for _ in range(4):
        game, board = take(GAME)[0], cshogi.Board()
        board.set_hcp(game["hcp"].copy())
        assert game["result"] < 16 and game["result"] & 3 < 3 and game["opponent"] == 0
        for _ in range(game["moveNum"]):
            move = take(MOVE)[0]
            candidates = take(VISITS, move["candidateNum"])
            assert abs(int(move["eval"])) < 32767
            assert len({*candidates["move16"].tolist()}) == len(candidates) <= 593
            assert (
                not len(candidates)
                or 9000 < candidates["visitNum"].sum() < 11000
                or (
                    len(candidates) == 1 == candidates["visitNum"][0]  # a mate
                )
            )
            targets, cheap = targets + bool(len(candidates)), cheap + (not len(candidates))
            move = board.move_from_move16(int(move["selectedMove16"]))
            assert board.is_legal(move)
            board.push(move)
    assert place == len(data) and targets and cheap


def test_some_games_are_also_records_with_a_page(model, tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "RECORD_EVERY", 2)
    folder = tmp_path / "games"
    play(model, folder, "--games", "6", "--handicap_share", "0.5", "--handicaps", "two")
    files = Tables(folder).of_files()
    rows = {row.game: row for found in files.values() for row in found}
    moves = {
        row.game: [move for move, _, _ in layout.moves]
        for path, found in files.items()
        for row, layout in zip(found, scan(path.read_bytes()))
    }
    records = sorted((folder / "records").glob("*.csa"))
    assert [record.name for record in records] == ["000001.csa", "000003.csa", "000005.csa"]
    for record in records:
        game, number = cshogi.CSA.Parser.parse_file(str(record))[0], int(record.stem)
        assert [cshogi.move16(move) for move in game.moves] == moves[number]
        assert game.win == {"draw": 0, "black": 1, "white": 2}[rows[number].winner]
        assert f"game {number}" in record.read_text(encoding="utf-8")
        page = record.with_suffix(".html").read_text(encoding="utf-8")
        assert rows[number].end in page and "<svg" in page
    starts = {rows[int(record.stem)].start for record in records}
    assert starts <= {"even", "two"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limit")
def test_a_full_disk_ends_with_one_sentence_and_loses_no_game(model, tmp_path):
    folder, limit = tmp_path / "games", 20_000
    process = subprocess.run(
        command(model, folder, "--games", "40", "--games_a_file", "40"), cwd=REPOSITORY,
        capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert process.returncode == 1
    (line,) = process.stderr.splitlines()
    assert line.startswith("self_play: error:")
    rows = Tables(folder).rows()
    assert rows and rows[-1].end_byte <= limit
    check(folder, 0, exactly=False)
    games = max(row.game for row in rows)
    assert play(model, folder, "--games", str(games)) == 0
    check(folder, games)


def test_the_same_command_plays_only_missing_games(model, tmp_path):
    for games in (3, 3, 5):
        assert play(model, tmp_path / "games", "--games", str(games)) == 0
        check(tmp_path / "games", games)


@pytest.mark.long
def test_seed_and_number_determine_the_start(model, tmp_path):
    firsts = []
    for name in ("a", "b"):
        play(model, tmp_path / name, "--games", "6", "--batch", "4" if name == "a" else "6")
        (path, *_) = (tmp_path / name).glob("*.0001.hcpe3")
        rows = Tables(tmp_path / name).of_files()[path]
        games = {row.game: layout for row, layout in zip(rows, scan(path.read_bytes()))}
        firsts.append({number: layout.moves[0][0] for number, layout in games.items()})
    common = firsts[0].keys() & firsts[1].keys()
    assert common and all(firsts[0][number] == firsts[1][number] for number in common)


@pytest.mark.long
def test_kill_loses_only_games_in_flight(model, tmp_path):
    folder = tmp_path / "games"
    kept = 0
    for _ in range(2):
        process = start(model, folder, "--games", "30")
        end = time.monotonic() + 120
        while len(Tables(folder).rows()) <= kept and time.monotonic() < end:
            time.sleep(0.05)
        process.kill()
        process.communicate()
        rows = Tables(folder).rows()
        assert len(rows) > kept
        kept = len(rows)
    part = next(iter(folder.glob("*.part")), None)
    if part:  # a game that was not written to its end
        with part.open("ab") as file:
            file.write(b"half a game")
    games = max(row.game for row in rows)
    assert play(model, folder, "--games", str(games)) == 0
    check(folder, games)


@pytest.mark.long
def test_two_processes_share_a_folder(model, tmp_path):
    folder = tmp_path / "games"
    processes = [start(model, folder, "--games", "24") for _ in range(2)]
    for process in processes:
        assert process.wait(300) == 0, process.stderr.read()
        process.communicate()
    check(folder, 24)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_an_interrupted_run_leaves_whole_files(model, tmp_path):
    folder = tmp_path / "games"
    process = start(model, folder, "--games", "1000")
    end = time.monotonic() + 120
    while not Tables(folder).rows() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143 and b"The same command goes on" in errors
    rows = Tables(folder).rows()
    assert rows and not list(folder.glob("*.part"))
    assert not [path for path in (folder / "claims").iterdir() if path.name[0] != "."]


def test_a_number_is_claimed_once_until_its_process_is_dead(tmp_path):
    with GameFolder(tmp_path / "games", 0) as first, GameFolder(tmp_path / "games", 0) as second:
        assert first.claim(3, 10) == [1, 2, 3]
        assert second.claim(3, 5) == [4, 5]
    with GameFolder(tmp_path / "games", 0) as third:
        assert third.claim(9, 4) == [1, 2, 3, 4]


def test_claims_are_touched_while_their_process_lives(tmp_path, monkeypatch):
    monkeypatch.setattr("pydlshogi.selfplay.folder._SILENCE", 0.2)
    with GameFolder(tmp_path / "games", 0):
        (claims,) = (tmp_path / "games" / "claims").glob("[!.]*")
        os.utime(claims, (0, 0))
        end = time.monotonic() + 60
        while claims.stat().st_mtime == 0 and time.monotonic() < end:
            time.sleep(0.01)
        assert claims.stat().st_mtime > 0


def test_hidden_files_are_no_games_of_something_else(tmp_path):
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / ".DS_Store").touch()
    with GameFolder(tmp_path / "games", 0) as games:
        assert games.claim(1, 1) == [1]


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda folder: (folder / "notes.txt").write_text("mine"), "something else"),
        (lambda folder: (folder / "selfplay.json").write_text('{"seed": 7}'), "Give the seed 7"),
        (lambda folder: (folder / "selfplay.json").write_text("{"), "cannot be read"),
    ],
)
def test_a_folder_of_something_else_is_refused(model, tmp_path, capsys, prepare, words):
    folder = tmp_path / "games"
    folder.mkdir()
    prepare(folder)
    assert play(model, folder, "--games", "1") == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_file_that_is_cut_short_is_named(model, tmp_path, capsys):
    folder = tmp_path / "games"
    play(model, folder, "--games", "2")
    (path,) = folder.glob("*.hcpe3")
    path.write_bytes(path.read_bytes()[:-5])
    assert play(model, folder, "--games", "3") == 1
    assert f"{path} is cut short" in capsys.readouterr().err


def test_a_model_without_a_value_is_refused(tmp_path, capsys):
    path = tmp_path / "policy"
    save_model(path, make_network("policy", channels=8))
    assert play(path, tmp_path / "games", "--games", "1") == 1
    assert "has no value head" in capsys.readouterr().err
    assert not (tmp_path / "games").exists()


def test_values_that_are_not_finite_are_refused(tmp_path, capsys):
    network = make_network("policy_value_small")
    for parameter in network.params():
        parameter.array[...] = 3e38
    path = tmp_path / "large"
    save_model(path, network)
    assert play(path, tmp_path / "games", "--games", "1") == 1
    assert "not finite" in capsys.readouterr().err
