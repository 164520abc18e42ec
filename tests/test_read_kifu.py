"""Kifu lists to positions: python-shogi's reading, bad input, options and the cache."""

import codecs
import logging
import os
import pickle
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import kifu_reference
import numpy
import pytest
import shogi
import shogi.CSA
from hypothesis import given, settings
from hypothesis import strategies as st

from pydlshogi import read_kifu as module
from pydlshogi.features import make_features, make_input_features_from_board
from pydlshogi.kifu.report import Note
from pydlshogi.positions import DRAW, LOSS, POSITION, UNKNOWN, WIN, save_cache
from pydlshogi.read_kifu import KifuError, Report, load_positions, read_kifu

ROOT = Path(__file__).parents[1]
KIFU = ROOT / "kifu"
FLOODGATE = ROOT.parent / "shared" / "kifu" / "floodgate2016.tar.xz"

EVEN = "V2.2\nN+A\nN-B\nPI\n+\n"
MOVES = "+7776FU\n-3334FU\n+8822UM\n-3122GI\n+0055KA\n"
GAME = EVEN + MOVES + "%TORYO\n"


def write_list(folder, name="train.txt", **files):
    """Writes files, and a list of them; gives the list's path."""
    names = []
    for stem, content in files.items():
        path = folder / (stem.replace("__", "."))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        names.append(path.name)
    kifu_list = folder / name
    kifu_list.write_text("".join(f"{name}\n" for name in names))
    return kifu_list


def read(kifu_list, **options):
    report = Report()
    return read_kifu(kifu_list, report=report, **options), report


def judged(path):
    """Reads a CSA file by python-shogi."""
    record = shogi.CSA.Parser.parse_file(str(path))[0]
    result = {"b": WIN, "w": LOSS, "-": UNKNOWN}[record["win"]]
    return kifu_reference.play(shogi.Board(record["sfen"]), record["moves"], result)


# --- equality -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kifulist_train.txt", "kifulist_test.txt"])
def test_embedded_games_equal_python_shogi(name):
    kifu_list = KIFU / name
    paths = [KIFU / line for line in kifu_list.read_text().split()]
    positions, report = read(kifu_list)
    expected = numpy.concatenate([judged(path) for path in paths])
    assert positions.dtype == POSITION
    assert positions.tobytes() == expected.tobytes()
    assert (report.games, report.positions) == (len(paths), len(expected))
    assert not report.excluded and not report.duplicates


def test_the_published_tuples_pack_to_the_same_positions():
    kifu_list = KIFU / "kifulist_test.txt"
    paths = [str(KIFU / line) for line in kifu_list.read_text().split()][:5]
    tuples = kifu_reference.read_positions(paths)
    positions = read_kifu(kifu_list)[: len(tuples)]
    for position, item in zip(positions, tuples):
        packed = kifu_reference.pack(item)
        packed["ply"] = position["ply"]
        assert packed.tobytes() == position.tobytes()
    for position, item in zip(positions[::40], tuples[::40]):
        planes, label, win = make_features(position)
        assert numpy.array_equal(planes, kifu_reference.make_batch([item])[0])
        book = make_features(item)
        assert numpy.array_equal(planes, book[0])
        assert (label, win) == book[1:] == item[3:]


@pytest.mark.slow
@pytest.mark.skipif(not FLOODGATE.exists(), reason="the floodgate games are not here")
def test_all_floodgate_games_equal_python_shogi(tmp_path):
    with tarfile.open(FLOODGATE) as archive:
        archive.extractall(tmp_path)
    paths = sorted((tmp_path / "floodgate2016").glob("*.csa"))
    kifu_list = tmp_path / "all.txt"
    kifu_list.write_text("floodgate2016\n")
    positions, report = read(kifu_list)
    assert (report.records, report.games, report.positions) == (29757, 29757, 4125780)
    contradicting = [Path(note.file).stem for note in report.contradictions]
    assert contradicting == ["02361", "03394", "14672", "17588", "23295"]
    start = 0
    for path in paths:
        expected = judged(path)
        end = start + len(expected)
        assert positions[start:end].tobytes() == expected.tobytes(), path
        start = end
    assert start == len(positions)


SFENS = [
    shogi.STARTING_SFEN,
    "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "4k4/9/9/9/9/9/9/9/4K4 b RB2GS2N3L9Prb2g3s2nl9p 1",
    "8k/3+P1+R3/7P1/9/3+b5/9/1p7/2+n6/K8 w 2P3p 1",
]
RESULTS = {"%TORYO": None, "%SENNICHITE": DRAW, "%CHUDAN": UNKNOWN, "%-ILLEGAL_ACTION": WIN}


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(SFENS),
            st.integers(1, 50),
            st.integers(0, 999),
            st.sampled_from(list(RESULTS)),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_generated_games_and_handicaps(tmp_path_factory, games):
    folder = tmp_path_factory.mktemp("games")
    expected, files = [], {}
    for number, (sfen, most, seed, mark) in enumerate(games):
        moves = kifu_reference.random_moves(sfen, most, seed)
        files[f"g{number}__csa"] = kifu_reference.to_csa(sfen, moves, mark)
        board = shogi.Board(sfen)
        result = RESULTS[mark]
        if result is None:
            black_moves = (board.turn == shogi.BLACK) == (len(moves) % 2 == 0)
            result = LOSS if black_moves else WIN
        expected.append(kifu_reference.play(board, moves, result))
    kifu_list = write_list(folder, **files)
    for strict in (False, True):
        positions, report = read(kifu_list, strict=strict)
        assert not report.excluded
        assert positions.tobytes() == numpy.concatenate(expected).tobytes()


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=80) | st.text(max_size=40).map(str.encode), max_size=5))
def test_no_broken_text_raises(tmp_path_factory, contents):
    folder = tmp_path_factory.mktemp("broken")
    endings = ("csa", "kif", "zip", "csa", "txt")
    files = {
        f"g{number}__{ending}": content
        for number, (content, ending) in enumerate(zip(contents, endings))
    }
    positions, report = read(write_list(folder, good__csa=GAME, **files))
    assert len(positions) == 5
    assert report.records == report.games + len(report.excluded)


# --- several forms ------------------------------------------------------------------


def test_it_is_a_sequence_of_what_make_features_takes():
    positions = read_kifu(KIFU / "kifulist_test.txt")
    assert len(positions) > 1000
    planes, label, win = make_features(positions[0])
    assert numpy.array_equal(planes, make_input_features_from_board(shogi.Board()))
    assert 0 <= label < 2187
    assert win in (0, 1)


def test_plain_and_careful_records_keep_the_order_of_the_list(tmp_path):
    def game(first):
        return f"{EVEN}{first}\n%TORYO\n"

    firsts = ["+7776FU", "+2726FU", "+1716FU", "+9796FU", "+3736FU"]
    files = {f"g{number}__csa": game(first) for number, first in enumerate(firsts)}
    files["g1__csa"] = files["g1__csa"].replace("FU\n", "FU,T3,")
    files["g3__csa"] = files["g3__csa"].replace("PI\n", "")
    positions, report = read(write_list(tmp_path, **files))
    squares = (positions["label"] % 81).tolist()
    assert squares == [47, 52, 53, 45, 51]
    assert report.black_wins == 5


def test_several_records_in_a_file(tmp_path):
    text = f"{GAME}/\n{GAME.replace('+0055KA', '+0056KA')}/\n{EVEN}+7776FU\n-3335FU\n/\n"
    positions, report = read(write_list(tmp_path, a__csa=text))
    assert len(positions) == 10
    assert report.records == 3
    (note,) = report.excluded
    assert (note.file, note.record) == ("a.csa", 3)
    assert text.splitlines()[note.line - 1] == "-3335FU"


def test_a_kif_file(tmp_path):
    moves = ["７六歩(77)", "３四歩(33)", "２二角成(88)", "同　銀(31)", "５五角打", "投了"]
    lines = [f"{number:4} {move}" for number, move in enumerate(moves, 1)]
    kif = "\r\n".join(["手合割：平手", *lines, ""])
    positions = read_kifu(write_list(tmp_path, a__kif=kif.encode("cp932")))
    expected = read_kifu(write_list(tmp_path, a__csa=GAME))
    assert positions.tobytes() == expected.tobytes()


@pytest.mark.parametrize("encoding", ["cp932", "utf-8", "euc_jp"])
def test_kif_is_known_by_its_head_where_the_name_does_not_say(tmp_path, encoding):
    moves = ["７六歩(77)", "３四歩(33)", "２二角成(88)", "同　銀(31)", "５五角打", "投了"]
    lines = [f"{number:4} {move}" for number, move in enumerate(moves, 1)]
    kif = "\n".join(["手数----指手---------消費時間--", *lines, ""]).encode(encoding)
    files = {"a__txt": kif, "b__csa": kif, "c__txt": GAME}
    positions, report = read(write_list(tmp_path, **files))
    expected = read_kifu(write_list(tmp_path, a__csa=GAME))
    assert positions.tobytes() == 2 * expected.tobytes()
    assert [note.file for note in report.excluded] == ["b.csa"]


def test_a_kif_promotion_by_the_promoted_name_is_refused(tmp_path):
    kif = "   1 ７六歩(77)\n   2 ３四歩(33)\n   3 ２二馬(88)\n"
    positions, report = read(write_list(tmp_path, a__kif=kif, b__csa=GAME))
    (note,) = report.excluded
    assert (note.file, note.line) == ("a.kif", 3)
    assert "UM" in note.reason
    assert len(positions) == 5


@pytest.mark.parametrize("impossible", ["", "-3334HI\n"])
@pytest.mark.parametrize("strict", [False, True])
def test_csa_text_in_a_kif_file_is_refused(tmp_path, impossible, strict):
    text = EVEN + "+7776FU\n" + impossible
    positions, report = read(write_list(tmp_path, a__kif=text, b__csa=GAME), strict=strict)
    (note,) = report.excluded
    assert (note.file, note.reason) == ("a.kif", "it is no KIF text in UTF-8, CP932 or EUC-JP")
    assert len(positions) == 5


def test_a_declared_encoding_that_nobody_knows_hides_no_note(tmp_path):
    text = f"'CSA encoding=undefined\n{EVEN}+7776FU\n-3334HI\n".replace("N+A", "N+先手")
    _, report = read(write_list(tmp_path, a__csa=text, b__csa=GAME))
    (note,) = report.excluded
    assert (note.file, note.line) == ("a.csa", 8)


def test_folders_and_archives(tmp_path):
    folder = tmp_path / "games"
    (folder / "2016").mkdir(parents=True)
    for number in range(3):
        (folder / "2016" / f"{number}.CSA").write_text(GAME)
    (folder / "2016" / "readme.txt").write_text("not a record")
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as archive:
        archive.write(folder / "2016" / "1.CSA", "2016/1.csa")
        archive.writestr("2016/bad.csa", "bad")
        archive.writestr("2016/readme.txt", "not a record")
    names = ["games", "games.zip"]
    expected = 4
    try:
        import py7zr
    except ImportError:
        pass
    else:
        with py7zr.SevenZipFile(tmp_path / "games.7z", "w") as archive:
            archive.writeall(folder, "wdoor2016")
        names.append("games.7z")
        expected += 3
    kifu_list = tmp_path / "list.txt"
    kifu_list.write_text("\n".join(names))
    positions, report = read(kifu_list)
    assert report.games == expected
    assert len(positions) == 5 * expected
    (note,) = report.excluded
    assert note.file == "games.zip/2016/bad.csa"


def test_a_missing_py7zr_is_said_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "py7zr", None)
    with pytest.raises(KifuError, match=r"a\.7z .*pip install"):
        read_kifu(write_list(tmp_path, a__7z=b"7z"))


def test_a_broken_archive_is_left_out(tmp_path):
    pytest.importorskip("py7zr")
    with zipfile.ZipFile(tmp_path / "cut.zip", "w") as archive:
        archive.writestr("a.csa", GAME)
    content = (tmp_path / "cut.zip").read_bytes()
    _, report = read(
        write_list(tmp_path, cut__zip=content[:40], b__zip=b"x", c__7z=b"x", d__csa=GAME)
    )
    assert [note.file for note in report.excluded] == ["cut.zip", "b.zip", "c.7z"]
    assert report.games == 1


def test_what_holds_no_record_is_said(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("a.csa", GAME)
    (tmp_path / "folder").mkdir()
    for outer in (tmp_path / "out.zip", tmp_path / "folder" / "out.zip"):
        with zipfile.ZipFile(outer, "w") as archive:
            archive.write(tmp_path / "in.zip", "in.zip")
            archive.writestr("__MACOSX/._a.csa", b"\0\5\x16\7")
    (tmp_path / "empty").mkdir()
    lines = ["out.zip", "folder", "games.csa.gz", "in.zip", "empty"]
    (tmp_path / "games.csa.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "list.txt").write_text("\n".join(lines), encoding="utf-8")
    positions, report = read(tmp_path / "list.txt")
    reasons = {note.file: note.reason for note in report.excluded}
    assert "the archive holds no record" in reasons["out.zip"]
    assert "archives in a folder are not opened" in reasons["folder/out.zip"]
    assert "the folder holds no record" in reasons["empty"]
    assert "it is packed; unpack it first" in reasons["games.csa.gz"]
    assert (len(reasons), report.records) == (4, 5)
    assert len(positions)


def test_japanese_names_in_a_zip_of_windows(tmp_path):
    # Windows writes CP932 and does not say so; zipfile reads code page 437.
    name = "棋譜.csa".encode("cp932").decode("cp437")
    info = zipfile.ZipInfo(name)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr(info, "bad")
    content = (tmp_path / "z.zip").read_bytes()
    utf_8, cp932 = name.encode("utf-8"), "棋譜.csa".encode("cp932")
    pad = cp932 + b"x" * (len(utf_8) - len(cp932))  # lengths stand in the file
    content = content.replace(utf_8, pad[:-4] + b".csa").replace(b"\0\x08", b"\0\0")
    (tmp_path / "z.zip").write_bytes(content)
    _, report = read(write_list(tmp_path, z__zip=content, a__csa=GAME))
    (note,) = report.excluded
    assert note.file.startswith("z.zip/棋譜")


def test_a_damaged_member_of_a_zip_does_not_cost_the_others(tmp_path):
    path = tmp_path / "games.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in "abc":
            archive.writestr(f"{name}.csa", GAME)
    content = bytearray(path.read_bytes())
    content[content.index(b"+7776FU") + 3] ^= 1
    _, report = read(write_list(tmp_path, games__zip=bytes(content)))
    (note,) = report.excluded
    assert note.file == "games.zip/a.csa"
    assert "it cannot be unpacked (Bad CRC-32" in note.reason
    assert report.games == 2


# --- the list -----------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lists_as_files_really_are(tmp_path, encoding, line_end):
    (tmp_path / "棋譜.csa").write_text(GAME)
    kifu_list = tmp_path / "list.txt"
    kifu_list.write_bytes(f"{line_end}棋譜.csa {line_end}{line_end}".encode(encoding))
    assert len(read_kifu(kifu_list)) == 5


def test_the_lists_folder_comes_before_the_current_one(tmp_path, monkeypatch):
    current = tmp_path / "current"
    current.mkdir()
    (tmp_path / "a.csa").write_text(GAME)
    (current / "a.csa").write_text(EVEN + "+7776FU\n")
    (current / "b.csa").write_text(EVEN + "+7776FU\n")
    (tmp_path / "list.txt").write_text("a.csa\nb.csa\n")
    monkeypatch.chdir(current)
    positions, report = read(tmp_path / "list.txt")
    assert len(positions) == 6
    assert not report.excluded


def test_missing_and_empty_lists(tmp_path):
    with pytest.raises(KifuError, match=r"none\.txt cannot be read"):
        read_kifu(tmp_path / "none.txt")
    for content in (b"", b"\n \n", codecs.BOM_UTF8):
        (tmp_path / "empty.txt").write_bytes(content)
        with pytest.raises(KifuError, match=r"empty\.txt names no file"):
            read_kifu(tmp_path / "empty.txt")


def test_no_usable_record(tmp_path):
    with pytest.raises(KifuError, match=r"no record .* can be used .*a\.csa, line 1: unknown"):
        read_kifu(write_list(tmp_path, a__csa="bad"))
    with pytest.raises(KifuError, match="no record"):
        load_positions(tmp_path / "train.txt")
    assert not (tmp_path / "train.pickle").exists()


def test_a_missing_file_is_left_out(tmp_path):
    kifu_list = write_list(tmp_path, a__csa=GAME)
    (tmp_path / "empty").mkdir()
    kifu_list.write_text("none.csa\na.csa\n\0.csa\nempty\n")
    positions, report = read(kifu_list)
    assert len(positions) == 5
    assert [note.file for note in report.excluded] == ["none.csa", "\0.csa", "empty"]
    assert "line 1 of the list" in report.excluded[0].reason
    assert "holds no record" in report.excluded[2].reason


def test_a_file_that_cannot_be_read_is_left_out_and_no_cache_made(tmp_path, monkeypatch, caplog):
    kifu_list = write_list(tmp_path, a__csa=GAME, b__csa=GAME)
    whole = os.read

    def fail(descriptor, size):
        if os.fstat(descriptor).st_ino == (tmp_path / "b.csa").stat().st_ino:
            raise OSError(5, "Input/output error")
        return whole(descriptor, size)

    monkeypatch.setattr("pydlshogi.kifu.batch.os.read", fail)
    loaded = load_positions(kifu_list)
    (note,) = loaded.report.excluded
    assert (note.file, "Input/output error" in note.reason) == ("b.csa", True)
    assert (len(loaded.positions), loaded.saved, loaded.report.unreadable) == (5, False, 1)
    assert len(warnings(caplog)) == 1
    assert not loaded.cache.exists()


# --- records left out, and options --------------------------------------------------


def test_an_impossible_move_leaves_the_whole_record_out(tmp_path):
    bad = GAME.replace("+0055KA", "+0055HI")
    positions, report = read(write_list(tmp_path, a__csa=GAME, b__csa=bad, c__csa="\n" + bad))
    assert len(positions) == 5
    assert report.excluded == [
        Note("b.csa", 1, 10, "move 5 is not possible: no such piece is in the mover's hand"),
        Note("c.csa", 1, 11, "move 5 is not possible: no such piece is in the mover's hand"),
    ]
    assert (report.records, report.games) == (3, 1)


def test_strict_leaves_out_what_is_not_legal(tmp_path):
    two_pawns = EVEN + "+7776FU\n-3334FU\n+8822UM\n-8222HI\n+2726FU\n-2282HI\n"
    in_check = EVEN + "+7776FU\n-3334FU\n+8833UM\n-9394FU\n+9796FU\n"
    kifu_list = write_list(tmp_path, a__csa=GAME, b__csa=in_check, c__csa=two_pawns + "+0025KA\n")
    _, report = read(kifu_list)
    assert report.games == 3
    _, report = read(kifu_list, strict=True)
    assert report.games == 2
    assert report.excluded == [Note("b.csa", 1, 9, "move 4 is not legal")]


def test_duplicates_are_counted_and_can_be_dropped(tmp_path):
    drawn = GAME.replace("%TORYO", "%SENNICHITE")
    kifu_list = write_list(
        tmp_path, a__csa=GAME, b__csa=drawn, c__csa=EVEN + "+7776FU\n", d__csa=GAME
    )
    positions, report = read(kifu_list)
    assert [note.file for note in report.duplicates] == ["b.csa", "d.csa"]
    assert len(positions) == 16
    dropped, report = read(kifu_list, drop_duplicates=True)
    assert [note.file for note in report.duplicates] == ["b.csa", "d.csa"]
    assert dropped.tobytes() == numpy.concatenate([positions[:5], positions[10:11]]).tobytes()
    assert (report.games, report.positions, report.draws) == (2, 6, 0)


def test_the_end_mark_wins_over_the_summary(tmp_path):
    texts = {
        "a__csa": GAME + "'summary:abnormal:A win:B lose\n",
        "b__csa": GAME + "'summary:abnormal:A lose:B win\n",
        "c__csa": (GAME + "'summary:abnormal:A lose:B win\n").replace("PI\n", ""),
        "d__csa": GAME.replace("TORYO", "CHUDAN") + "'summary:abnormal:A lose:B win\n",
    }
    positions, report = read(write_list(tmp_path, **texts))
    assert [note.file for note in report.contradictions] == ["b.csa", "c.csa"]
    assert not report.excluded
    expected = [WIN, LOSS, WIN, LOSS, WIN]
    assert positions["result"].tolist() == 3 * expected + 5 * [UNKNOWN]


def test_results_are_told_apart(tmp_path):
    files = {
        f"g{number}__csa": GAME.replace("%TORYO", mark)
        for number, mark in enumerate(["%TORYO", "%KACHI", "%JISHOGI", "%CHUDAN", ""])
    }
    positions, report = read(write_list(tmp_path, **files))
    assert positions["result"][::5].tolist() == [WIN, LOSS, DRAW, UNKNOWN, UNKNOWN]
    assert positions["result"][1::5].tolist() == [LOSS, WIN, DRAW, UNKNOWN, UNKNOWN]
    assert (report.black_wins, report.white_wins, report.draws, report.unknowns) == (1, 1, 1, 2)


def test_many_batches_give_the_same_as_one(monkeypatch):
    kifu_list = KIFU / "kifulist_test.txt"
    expected, report = read(kifu_list)
    monkeypatch.setattr(module, "_BATCH_FILES", 3)
    positions, again = read(kifu_list)
    assert positions.tobytes() == expected.tobytes()
    assert again == report


def test_a_failing_reader_ends_the_reading(monkeypatch):
    def fail(files, strict):
        raise MemoryError("no memory")

    monkeypatch.setattr(module, "read_batch", fail)
    with pytest.raises(MemoryError):
        read_kifu(KIFU / "kifulist_test.txt")


def test_a_script_without_a_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pydlshogi.read_kifu import read_kifu\n"
        f"positions = read_kifu({str(KIFU / 'kifulist_test.txt')!r})\n"
        "print(len(positions), positions[-1]['ply'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120
    )
    positions = read_kifu(KIFU / "kifulist_test.txt")
    assert done.stdout == f"{len(positions)} {positions[-1]['ply']}\n"
    assert done.stderr == ""  # no progress in a pipe


def test_what_was_left_out_is_logged_without_a_report(tmp_path, caplog):
    read_kifu(write_list(tmp_path, a__csa=GAME, b__csa="bad"))
    assert "b.csa, line 1: unknown statement 'bad'" in caplog.text
    caplog.clear()
    read_kifu(write_list(tmp_path, a__csa=GAME))
    assert not caplog.records


# --- the cache ----------------------------------------------------------------------


@pytest.fixture
def kifu_list(tmp_path):
    return write_list(
        tmp_path, a__csa=GAME, b__csa=GAME.replace("+0055KA", "+0056KA"), c__csa="bad"
    )


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_cache_is_made_once_and_used(kifu_list, caplog):
    first = load_positions(kifu_list)
    assert (first.from_cache, first.saved, first.cache) == (
        False,
        True,
        kifu_list.with_suffix(".pickle"),
    )
    second = load_positions(kifu_list)
    assert (second.from_cache, second.saved) == (True, False)
    assert second.positions.tobytes() == first.positions.tobytes()
    assert second.report == first.report
    assert isinstance(second.report.excluded[0], Note)
    assert not warnings(caplog)


def test_train_and_test_lists_have_caches_of_their_own(tmp_path, monkeypatch):
    write_list(tmp_path, "train.txt", a__csa=GAME)
    write_list(tmp_path, "test.txt", b__csa=EVEN + "+7776FU\n")
    monkeypatch.chdir(tmp_path)
    assert len(load_positions("./train.txt").positions) == 5
    assert len(load_positions("./test.txt").positions) == 1
    assert len(load_positions("./train.txt").positions) == 5
    assert sorted(path.name for path in tmp_path.glob("*.pickle")) == [
        "test.pickle",
        "train.pickle",
    ]


def test_what_a_killed_run_left_beside_the_cache_is_removed(kifu_list):
    cut = kifu_list.parent / ".train.pickle.0123abcd.tmp"
    cut.write_bytes(b"half a cache")
    os.utime(cut, (0, 0))
    assert load_positions(kifu_list).saved
    assert not cut.exists()


def touch(path):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))


CHANGES = {
    "list": lambda folder: (folder / "train.txt").write_text("a.csa\n"),
    "order": lambda folder: (folder / "train.txt").write_text("b.csa\na.csa\nc.csa\n"),
    "size": lambda folder: (folder / "c.csa").write_text("still bad"),
    "time": lambda folder: touch(folder / "a.csa"),
    "gone": lambda folder: (folder / "a.csa").unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stale_cache_is_replaced_with_one_warning(kifu_list, caplog, change):
    load_positions(kifu_list)
    CHANGES[change](kifu_list.parent)
    loaded = load_positions(kifu_list)
    assert (loaded.from_cache, loaded.saved) == (False, True)
    (warning,) = warnings(caplog)
    assert "train.pickle" in warning and "changed" in warning
    assert loaded.positions.tobytes() == read_kifu(kifu_list, report=Report()).tobytes()
    assert load_positions(kifu_list).from_cache


def test_options_and_version_are_part_of_the_fingerprint(kifu_list, monkeypatch):
    load_positions(kifu_list)
    assert not load_positions(kifu_list, strict=True).from_cache
    assert not load_positions(kifu_list, strict=True, drop_duplicates=True).from_cache
    assert load_positions(kifu_list, strict=True, drop_duplicates=True).from_cache
    monkeypatch.setattr("pydlshogi.positions.CACHE_VERSION", 99)
    assert not load_positions(kifu_list, strict=True, drop_duplicates=True).from_cache


@pytest.mark.parametrize("size", [0, 10, 100, -1])
def test_a_truncated_cache_is_replaced_with_one_warning(kifu_list, caplog, size):
    first = load_positions(kifu_list)
    first.cache.write_bytes(first.cache.read_bytes()[:size])
    again = load_positions(kifu_list)
    assert (again.from_cache, again.saved) == (False, True)
    assert len(warnings(caplog)) == 1
    assert load_positions(kifu_list).from_cache


def test_a_report_that_suffered_is_damage(kifu_list, caplog):
    loaded = load_positions(kifu_list)
    mark = module._fingerprint(module.read_list(kifu_list), False, False)
    save_cache(loaded.cache, mark, loaded.positions, {"other": 1})
    assert load_positions(kifu_list).saved
    assert len(warnings(caplog)) == 1


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["book", "code", "text"])
def test_a_pickle_that_is_not_ours_is_left_alone(kifu_list, caplog, tmp_path, kind):
    content = {
        "book": pickle.dumps([([0], (0, 0), ({}, {}), 1, 1)]),
        "code": pickle.dumps(("pydlshogi positions", 1, "", 0, Bomb(tmp_path / "harm")), 3),
        "text": b"my notes",
    }[kind]
    cache = kifu_list.with_suffix(".pickle")
    cache.write_bytes(content)
    loaded = load_positions(kifu_list)
    assert (loaded.from_cache, loaded.saved, len(loaded.positions)) == (False, False, 10)
    assert cache.read_bytes() == content
    assert not (tmp_path / "harm").exists()
    (warning,) = warnings(caplog)
    assert "left alone" in warning


def test_a_folder_that_cannot_be_written_gives_one_warning(kifu_list, caplog, monkeypatch):
    open_path = Path.open

    def refuse(path, mode="r", *args, **kwargs):
        if "x" in mode:
            raise PermissionError(13, "Permission denied")
        return open_path(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    loaded = load_positions(kifu_list)
    assert (len(loaded.positions), loaded.saved) == (10, False)
    (warning,) = warnings(caplog)
    assert "Permission denied" in warning
    assert not kifu_list.with_suffix(".pickle").exists()


def test_two_readers_at_once_do_not_harm_each_other(kifu_list):
    loaded = []
    threads = [
        threading.Thread(target=lambda: loaded.append(load_positions(kifu_list))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({item.positions.tobytes() for item in loaded}) == 1
    assert len(loaded) == 6
    assert load_positions(kifu_list).from_cache
    assert sorted(path.suffix for path in kifu_list.parent.iterdir()).count(".tmp") == 0
