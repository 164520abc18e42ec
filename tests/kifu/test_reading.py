"""Kifu lists to positions: python-shogi's reading, bad input, options and the cache."""

import codecs
import functools
import os
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kifu_reference
import numpy
import pytest
import shogi
import shogi.CSA
from hypothesis import given, settings
from hypothesis import strategies as st
from kifu_lists import EVEN, GAME, write_list

from pydlshogi.features import make_features
from pydlshogi.kifu import reading, stopping
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.record_batch import File, read_batch
from pydlshogi.kifu.report import Note
from pydlshogi.kifu.sources import KifuError
from pydlshogi.positions import DRAW, LOSS, NO_EVALUATION, POSITION, UNKNOWN, WIN

ROOT = Path(__file__).parents[2]
KIFU = ROOT / "kifu"
FLOODGATE = ROOT.parent / "shared" / "kifu" / "floodgate2016.tar.xz"


def judged(path):
    """Reads a CSA file by python-shogi."""
    record = shogi.CSA.Parser.parse_file(str(path))[0]
    result = {"b": WIN, "w": LOSS, "-": UNKNOWN}[record["win"]]
    return kifu_reference.play(shogi.Board(record["sfen"]), record["moves"], result)


# --- equality -----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", ["kifulist_train.txt", "kifulist_test.txt"])
def test_embedded_games_equal_python_shogi(name):
    kifu_list = KIFU / name
    paths = [KIFU / line for line in kifu_list.read_text().split()]
    positions, report = read_positions(kifu_list)
    expected = numpy.concatenate([judged(path) for path in paths])
    assert positions.dtype == POSITION
    positions["evaluation"] = expected["evaluation"]  # python-shogi reads none
    assert positions.tobytes() == expected.tobytes()
    assert (report.games, report.positions) == (len(paths), len(expected))
    assert not report.excluded and not report.duplicates


def test_the_published_tuples_pack_to_the_same_positions():
    kifu_list = KIFU / "kifulist_test.txt"
    paths = [str(KIFU / line) for line in kifu_list.read_text().split()][:5]
    tuples = kifu_reference.read_positions(paths)
    positions = read_positions(kifu_list)[0][: len(tuples)]
    for position, item in zip(positions, tuples):
        packed = kifu_reference.pack(item)
        packed["ply"] = position["ply"]
        packed["recent"] = position["recent"]
        packed["evaluation"] = position["evaluation"]
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
    positions, report = read_positions(kifu_list)
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
RESULTS = {"%TORYO": None, "%SENNICHITE": DRAW, "%CHUDAN": UNKNOWN}


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
        positions, report = read_positions(kifu_list, strict=strict)
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
    positions, report = read_positions(write_list(folder, good__csa=GAME, **files))
    assert len(positions) == 5
    assert report.records == report.games + len(report.excluded)


# --- several forms ------------------------------------------------------------------


def test_plain_and_careful_records_keep_the_order_of_the_list(tmp_path):
    def game(first):
        return f"{EVEN}{first}\n%TORYO\n"

    firsts = ["+7776FU", "+2726FU", "+1716FU", "+9796FU", "+3736FU"]
    files = {f"g{number}__csa": game(first) for number, first in enumerate(firsts)}
    files["g1__csa"] = files["g1__csa"].replace("FU\n", "FU,T3,")
    files["g3__csa"] = files["g3__csa"].replace("PI\n", "")
    positions, report = read_positions(write_list(tmp_path, **files))
    squares = (positions["label"] % 81).tolist()
    assert squares == [47, 52, 53, 45, 51]
    assert report.black_wins == 5


def test_several_records_in_a_file(tmp_path):
    text = f"{GAME}/\n{GAME.replace('+0055KA', '+0056KA')}/\n{EVEN}+7776FU\n-3335FU\n/\n"
    positions, report = read_positions(write_list(tmp_path, a__csa=text))
    assert len(positions) == 10
    assert report.records == 3
    (note,) = report.excluded
    assert (note.file, note.record) == ("a.csa", 3)
    assert text.splitlines()[note.line - 1] == "-3335FU"


def test_a_kif_file(tmp_path):
    moves = ["７六歩(77)", "３四歩(33)", "２二角成(88)", "同　銀(31)", "５五角打", "投了"]
    lines = [f"{number:4} {move}" for number, move in enumerate(moves, 1)]
    kif = "\r\n".join(["手合割：平手", *lines, ""])
    positions = read_positions(write_list(tmp_path, a__kif=kif.encode("cp932")))[0]
    expected = read_positions(write_list(tmp_path, a__csa=GAME))[0]
    assert positions.tobytes() == expected.tobytes()


@pytest.mark.parametrize("strict", [False, True])
def test_a_move_that_the_record_calls_illegal_is_no_example(tmp_path, strict):
    kif = ["手合割：平手", "   1 ７六歩(77)", "   2 ３四歩(33)", "   3 ７七歩打", "   4 反則勝ち"]
    in_check = "+7776FU\n-3334FU\n+5756FU\n-2288UM\n+7988GI\n-0077KA\n+9796FU\n"
    names = write_list(
        tmp_path,
        a__kif="\n".join([*kif, "まで3手で後手の勝ち", ""]),
        b__csa=EVEN + in_check + "%+ILLEGAL_ACTION\n",
        # The winner moved last, so all moves stand.
        c__csa=EVEN + "+7776FU\n-3334FU\n+2726FU\n%-ILLEGAL_ACTION\n",
        d__csa=EVEN + "+7776FU\n%+ILLEGAL_ACTION\n",
    )
    positions, report = read_positions(names, strict=strict)
    assert len(positions) == 2 + 6 + 3
    assert positions["result"][:2].tolist() == [LOSS, WIN]
    (note,) = report.excluded
    assert (note.file, note.reason) == ("d.csa", "its only move is illegal")


@pytest.mark.parametrize("encoding", ["cp932", "utf-8", "euc_jp"])
def test_kif_is_known_by_its_head_where_the_name_does_not_say(tmp_path, encoding):
    moves = ["７六歩(77)", "３四歩(33)", "２二角成(88)", "同　銀(31)", "５五角打", "投了"]
    lines = [f"{number:4} {move}" for number, move in enumerate(moves, 1)]
    kif = "\n".join(["手数----指手---------消費時間--", *lines, ""]).encode(encoding)
    files = {"a__txt": kif, "b__csa": kif, "c__txt": GAME}
    positions, report = read_positions(write_list(tmp_path, **files))
    expected = read_positions(write_list(tmp_path, a__csa=GAME))[0]
    assert positions.tobytes() == 2 * expected.tobytes()
    assert [note.file for note in report.excluded] == ["b.csa"]


def test_a_kif_promotion_by_the_promoted_name_is_refused(tmp_path):
    kif = "   1 ７六歩(77)\n   2 ３四歩(33)\n   3 ２二馬(88)\n"
    positions, report = read_positions(write_list(tmp_path, a__kif=kif, b__csa=GAME))
    (note,) = report.excluded
    assert (note.file, note.line) == ("a.kif", 3)
    assert "UM" in note.reason
    assert len(positions) == 5


@pytest.mark.parametrize("impossible", ["", "-3334HI\n"])
@pytest.mark.parametrize("strict", [False, True])
def test_csa_text_in_a_kif_file_is_refused(tmp_path, impossible, strict):
    text = EVEN + "+7776FU\n" + impossible
    positions, report = read_positions(
        write_list(tmp_path, a__kif=text, b__csa=GAME), strict=strict
    )
    (note,) = report.excluded
    assert (note.file, note.reason) == ("a.kif", "it is not KIF text in UTF-8, CP932 or EUC-JP")
    assert len(positions) == 5


def test_a_declared_encoding_that_nobody_knows_hides_no_note(tmp_path):
    text = f"'CSA encoding=undefined\n{EVEN}+7776FU\n-3334HI\n".replace("N+A", "N+先手")
    _, report = read_positions(write_list(tmp_path, a__csa=text, b__csa=GAME))
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
    positions, report = read_positions(kifu_list)
    assert report.games == expected
    assert len(positions) == 5 * expected
    (note,) = report.excluded
    assert note.file == "games.zip/2016/bad.csa"


def test_a_missing_py7zr_is_said_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "py7zr", None)
    with pytest.raises(KifuError, match=r"a\.7z .*pip install"):
        read_positions(write_list(tmp_path, a__7z=b"7z"))


def test_a_broken_archive_is_left_out(tmp_path):
    pytest.importorskip("py7zr")
    with zipfile.ZipFile(tmp_path / "cut.zip", "w") as archive:
        archive.writestr("a.csa", GAME)
    content = (tmp_path / "cut.zip").read_bytes()
    _, report = read_positions(
        write_list(tmp_path, cut__zip=content[:40], b__zip=b"x", c__7z=b"x", d__csa=GAME)
    )
    assert [note.file for note in report.excluded] == ["cut.zip", "b.zip", "c.7z"]
    assert report.games == 1


@pytest.mark.parametrize("suffix", ["zip", "7z"])
def test_an_archive_that_is_far_smaller_than_its_content_is_not_unpacked(tmp_path, suffix):
    content = GAME + "'\n" * (40 << 20)
    if suffix == "zip":
        with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csa", content)
    else:
        py7zr = pytest.importorskip("py7zr")
        with py7zr.SevenZipFile(tmp_path / "bomb.7z", "w") as archive:
            archive.writestr(content, "a.csa")
    (tmp_path / "good.csa").write_text(GAME)
    (tmp_path / "list.txt").write_text(f"bomb.{suffix}\ngood.csa\n")
    _, report = read_positions(tmp_path / "list.txt")
    (note,) = report.excluded
    assert (note.file, report.games) == (f"bomb.{suffix}", 1)
    assert "would unpack to 83,886,1" in note.reason and "name their folder" in note.reason


def test_an_archive_of_many_similar_games_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "games.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csa", "/\n".join([GAME] * 2000))
    (tmp_path / "list.txt").write_text("games.zip\n")
    assert read_positions(tmp_path / "list.txt")[1].games == 2000


class StopAtCheck:
    """An event that is set after some questions whether it is."""

    def __init__(self, checks):
        self.left = checks

    def is_set(self):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize(
    ("name", "start", "unit"),
    [
        ("a.csa", "PI\n+\n+7776FU\n", "'** 1234567\n"),
        ("a.csa", GAME, "'s\n"),
        ("a.csa", "PI,+\n+7776FU\n", "T1\n"),
        ("a.csa", "PI\n+\n+7776FU\n", "T1,"),
        ("a.kif", "手合割：平手\n   1 ７六歩(77)\n", "*\n"),
        ("a.ki2", "手合割：平手\n▲７六歩 ", "() "),
    ],
)
def test_reading_can_be_stopped_within_one_long_record(name, start, unit):
    data = (start + unit * 20_000).encode()
    job = functools.partial(read_batch, [File(name, len(data), "", data)])
    with ThreadPoolExecutor(1) as pool, pytest.raises(stopping.Stopped):
        pool.submit(stopping.run, job, StopAtCheck(50)).result()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_file_in_an_archive_does_not_hide_the_others(tmp_path, method):
    path = tmp_path / "games.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in ("a.csa", "b.csa", "c.csa"):
            archive.writestr(name, GAME)
    content = bytearray(path.read_bytes())
    start = content.index(b"b.csa") + len(b"b.csa")  # of its packed content
    content[start + 10 : start + 30] = b"\xff" * 20
    _, report = read_positions(write_list(tmp_path, games__zip=bytes(content)))
    assert report.games == 2
    (note,) = report.excluded
    assert note.file == "games.zip/b.csa" and "cannot be unpacked" in note.reason


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
    positions, report = read_positions(tmp_path / "list.txt")
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
    _, report = read_positions(write_list(tmp_path, z__zip=content, a__csa=GAME))
    (note,) = report.excluded
    assert note.file.startswith("z.zip/棋譜")


def test_a_damaged_member_of_a_zip_does_not_cost_the_others(tmp_path):
    path = tmp_path / "games.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in "abc":
            archive.writestr(f"{name}.csa", GAME)
    content = bytearray(path.read_bytes())
    content[content.index(b"+7776FU") + 3] ^= 1
    _, report = read_positions(write_list(tmp_path, games__zip=bytes(content)))
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
    assert len(read_positions(kifu_list)[0]) == 5


def test_the_lists_folder_comes_before_the_current_one(tmp_path, monkeypatch):
    current = tmp_path / "current"
    current.mkdir()
    (tmp_path / "a.csa").write_text(GAME)
    (current / "a.csa").write_text(EVEN + "+7776FU\n")
    (current / "b.csa").write_text(EVEN + "+7776FU\n")
    (tmp_path / "list.txt").write_text("a.csa\nb.csa\n")
    monkeypatch.chdir(current)
    positions, report = read_positions(tmp_path / "list.txt")
    assert len(positions) == 6
    assert not report.excluded


def test_missing_and_empty_lists(tmp_path):
    with pytest.raises(KifuError, match=r"none\.txt cannot be read"):
        read_positions(tmp_path / "none.txt")
    for content in (b"", b"\n \n", codecs.BOM_UTF8):
        (tmp_path / "empty.txt").write_bytes(content)
        with pytest.raises(KifuError, match=r"empty\.txt names no file"):
            read_positions(tmp_path / "empty.txt")


def test_no_usable_record(tmp_path):
    with pytest.raises(KifuError, match=r"no record .* can be used .*a\.csa, line 1: unknown"):
        read_positions(write_list(tmp_path, a__csa="bad"))
    with pytest.raises(KifuError, match="no record"):
        load_positions(tmp_path / "train.txt")
    assert not (tmp_path / "train.pickle").exists()


def test_a_missing_file_is_left_out(tmp_path):
    kifu_list = write_list(tmp_path, a__csa=GAME)
    (tmp_path / "empty").mkdir()
    kifu_list.write_text("none.csa\na.csa\n\0.csa\nempty\n")
    positions, report = read_positions(kifu_list)
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

    monkeypatch.setattr("pydlshogi.kifu.record_batch.os.read", fail)
    loaded = load_positions(kifu_list)
    (note,) = loaded.report.excluded
    assert (note.file, "Input/output error" in note.reason) == ("b.csa", True)
    assert (len(loaded.positions), loaded.saved, loaded.report.unreadable) == (5, False, 1)
    assert len(caplog.records) == 1
    assert not loaded.cache.exists()


# --- records left out, and options --------------------------------------------------


def test_an_impossible_move_leaves_the_whole_record_out(tmp_path):
    bad = GAME.replace("+0055KA", "+0055HI")
    positions, report = read_positions(
        write_list(tmp_path, a__csa=GAME, b__csa=bad, c__csa="\n" + bad)
    )
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
    _, report = read_positions(kifu_list)
    assert report.games == 3
    _, report = read_positions(kifu_list, strict=True)
    assert report.games == 2
    assert report.excluded == [Note("b.csa", 1, 9, "move 4 is not legal")]


def test_duplicates_are_counted_and_can_be_dropped(tmp_path):
    drawn = GAME.replace("%TORYO", "%SENNICHITE")
    kifu_list = write_list(
        tmp_path, a__csa=GAME, b__csa=drawn, c__csa=EVEN + "+7776FU\n", d__csa=GAME
    )
    positions, report = read_positions(kifu_list)
    assert [note.file for note in report.duplicates] == ["b.csa", "d.csa"]
    assert len(positions) == 16
    dropped, report = read_positions(kifu_list, drop_duplicates=True)
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
    positions, report = read_positions(write_list(tmp_path, **texts))
    assert [note.file for note in report.contradictions] == ["b.csa", "c.csa"]
    assert not report.excluded
    expected = [WIN, LOSS, WIN, LOSS, WIN]
    assert positions["result"].tolist() == 3 * expected + 5 * [UNKNOWN]


def test_results_are_told_apart(tmp_path):
    files = {
        f"g{number}__csa": GAME.replace("%TORYO", mark)
        for number, mark in enumerate(["%TORYO", "%KACHI", "%JISHOGI", "%CHUDAN", ""])
    }
    positions, report = read_positions(write_list(tmp_path, **files))
    assert positions["result"][::5].tolist() == [WIN, LOSS, DRAW, UNKNOWN, UNKNOWN]
    assert positions["result"][1::5].tolist() == [LOSS, WIN, DRAW, UNKNOWN, UNKNOWN]
    assert (report.black_wins, report.white_wins, report.draws, report.unknowns) == (1, 1, 1, 2)


def test_many_batches_give_the_same_as_one(monkeypatch):
    kifu_list = KIFU / "kifulist_test.txt"
    expected, report = read_positions(kifu_list)
    monkeypatch.setattr(reading, "_BATCH_FILES", 3)
    positions, again = read_positions(kifu_list)
    assert positions.tobytes() == expected.tobytes()
    assert again == report


def test_a_large_file_is_read_in_parts_with_the_same_result(tmp_path, monkeypatch):
    bad = [GAME.replace("+7776FU", "+7775FU"), GAME + "garbage\n"]
    games = [GAME.replace("%TORYO", mark) for mark in ("%TORYO", "%KACHI", "%CHUDAN")]
    texts = {"a__csa": GAME, "b__csa": "/\n".join([*games, *bad] * 20), "c__csa": GAME}
    kifu_list = write_list(tmp_path, **texts)
    expected, report = read_positions(kifu_list)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.write(tmp_path / "b.csa", "b.csa")
    monkeypatch.setattr(reading, "_BATCH_BYTES", 1000)
    sizes = []
    read_records = reading.read_records

    def spy(records, strict):
        sizes.append(len(records))
        return read_records(records, strict)

    monkeypatch.setattr(reading, "read_records", spy)
    positions, again = read_positions(kifu_list)
    assert sum(sizes) == 100 and max(sizes) < 20
    assert positions.tobytes() == expected.tobytes()
    assert sorted(again.excluded) == sorted(report.excluded)
    assert (again.records, again.duplicates) == (report.records, report.duplicates)
    (tmp_path / "zipped.txt").write_text("a.csa\nb.zip\nc.csa\n")
    assert read_positions(tmp_path / "zipped.txt")[0].tobytes() == expected.tobytes()


def test_a_large_file_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    kifu_list = write_list(tmp_path, a__csa=GAME, b__csa=GAME)
    monkeypatch.setattr(reading, "_BATCH_BYTES", 10)
    read_bytes = Path.read_bytes

    def fail(path):
        if path.name == "b.csa":
            raise OSError(5, "Input/output error")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", fail)
    monkeypatch.setattr(os, "open", lambda path, flags: fail(Path(path)))
    positions, report = read_positions(kifu_list)
    assert (len(positions), report.unreadable) == (5, 1)
    assert [str(note) for note in report.excluded] == [
        "b.csa: it cannot be read (Input/output error)"
    ]


def test_a_failing_reader_ends_the_reading(monkeypatch):
    def fail(files, strict):
        raise MemoryError("no memory")

    monkeypatch.setattr(reading, "read_batch", fail)
    with pytest.raises(MemoryError):
        read_positions(KIFU / "kifulist_test.txt")


def test_evaluations_are_the_side_to_moves_in_plain_and_careful_records(tmp_path):
    text = GAME.replace("-3334FU\n", "-3334FU\n'** 40 +2726FU\n").replace(
        "KA\n", "KA\n'** 999999\n"
    )
    kif = "   1 ７六歩(77)\n   2 ３四歩(33)\n"
    files = {"a__csa": text, "b__csa": text.replace("PI\n", ""), "c__kif": kif}
    positions, _ = read_positions(write_list(tmp_path, **files))
    unknown = NO_EVALUATION
    game = [unknown, -40, unknown, unknown, 30000]
    assert positions["evaluation"].tolist() == [*game, *game, unknown, unknown]
    cached = [load_positions(tmp_path / "train.txt") for _ in range(2)]
    assert [loaded.from_cache for loaded in cached] == [False, True]
    assert all(loaded.positions.tobytes() == positions.tobytes() for loaded in cached)
