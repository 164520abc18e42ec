"""The program convert_positions."""

import os
import re
import subprocess
import sys
import zipfile

import numpy
import pytest
from kifu_lists import EVEN, MOVES
from packed_files import EMBEDDED, ROOT, write_games, write_records

from pydlshogi.commands.convert_positions import main
from pydlshogi.kifu.fixed import HCPE, PSV, decode_records
from pydlshogi.kifu.hcpe3 import decode_games
from pydlshogi.positions import DRAW


@pytest.fixture(scope="module")
def records():
    """An HCPE and a PSV array of the same games, written by cshogi."""
    return write_records(EMBEDDED[:5])


@pytest.fixture
def folder(tmp_path, records, monkeypatch):
    for name, array in zip(("a.hcpe", "a.psv"), records):
        (tmp_path / name).write_bytes(array.tobytes())
    (tmp_path / "list.txt").write_text("".join(f"{path}\n" for path in EMBEDDED[:5]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without(records, *names):
    """Sets fields to zero, to compare the others."""
    records = records.copy()
    for name in names:
        records[name] = 0
    return records


def test_psv_to_hcpe_is_exact(folder, capsys):
    assert main(["a.psv", "b.hcpe"]) == 0
    assert (folder / "b.hcpe").read_bytes() == (folder / "a.hcpe").read_bytes()
    count = len((folder / "a.hcpe").read_bytes()) // 38
    assert capsys.readouterr().out == f"b.hcpe: {count} positions written\n"


def test_hcpe_to_psv_loses_the_move_numbers_only(folder, records):
    assert main(["a.hcpe", "b.psv"]) == 0
    written = numpy.fromfile("b.psv", PSV.record)
    assert written.tobytes() == without(records[1], "gamePly").tobytes()


def test_extreme_evaluations_are_kept(folder, records):
    extreme = records[0][:2].copy()
    extreme["eval"] = 32767, -32767
    extreme.tofile("c.hcpe")
    assert main(["c.hcpe", "d.psv"]) == 0
    assert numpy.fromfile("d.psv", PSV.record)["score"].tolist() == [32767, -32767]


@pytest.mark.parametrize("source", ["list.txt", str(EMBEDDED[0].parent)])
def test_records_are_written_as_cshogi_writes_them(folder, records, source):
    assert main([source, "b.hcpe"]) == 0
    assert main([source, "b.bin"]) == 0
    count = len(records[0])
    hcpe, psv = numpy.fromfile("b.hcpe", HCPE.record), numpy.fromfile("b.bin", PSV.record)
    assert without(hcpe[:count], "eval").tobytes() == without(records[0], "eval").tobytes()
    assert without(psv[:count], "score").tobytes() == without(records[1], "score").tobytes()


def test_evaluations_of_records_are_written(folder):
    moves = MOVES.splitlines()
    lines = [line for n, move in enumerate(moves) for line in (move, f"'** {10 * n + 1}")]
    (folder / "c.csa").write_text(EVEN + "\n".join(lines) + "\n%TORYO\n")
    assert main(["c.csa", "c.psv"]) == 0
    assert numpy.fromfile("c.psv", PSV.record)["score"].tolist() == [1, -11, 21, -31, 41]


@pytest.mark.parametrize("name", ["c.hcpe", "c.psv"])
def test_positions_without_an_evaluation_are_written_as_0_and_counted(folder, capsys, name):
    moves = MOVES.splitlines()
    moves.insert(2, "'** 30")  # only the second move has an evaluation
    (folder / "c.csa").write_text(EVEN + "\n".join(moves) + "\n%TORYO\n")
    (folder / "d.csa").write_text(EVEN + MOVES + "%CHUDAN\n")  # these positions are not written
    (folder / "c.txt").write_text("c.csa\nd.csa\n")
    assert main(["c.txt", name]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{name}: 5 positions written",
        "  4 positions have no evaluation; their evaluation was written as 0",
        "  5 not written: its result is not known",
    ]
    written = (folder / name).read_bytes()
    positions = decode_records(written, HCPE if name == "c.hcpe" else PSV).positions
    assert positions["evaluation"].tolist() == [0, -30, 0, 0, 0]


def test_hcpe3_is_converted(folder):
    content, _ = write_games(EMBEDDED[:3])
    (folder / "c.hcpe3").write_bytes(content)
    assert main(["c.hcpe3", "c.psv"]) == 0
    written = decode_records((folder / "c.psv").read_bytes(), PSV)
    games = decode_games(content)
    expected = games.positions.copy()
    expected["recent"] = 0  # a PSV file has single positions
    assert written.positions.tobytes() == expected.tobytes()
    assert (written.turns == games.turns).all()


def test_an_archive_is_converted(folder, records):
    with zipfile.ZipFile("c.zip", "w") as archive:
        archive.write("a.psv", "inside/a.psv")
    assert main(["c.zip", "c.hcpe"]) == 0
    assert (folder / "c.hcpe").read_bytes() == records[0].tobytes()


def test_the_format_option_names_the_format_of_another_suffix(folder):
    assert main(["a.hcpe", "b.data", "--format", "hcpe"]) == 0
    assert main(["a.hcpe", "c.hcpe", "--format", "hcpe"]) == 0
    assert (folder / "b.data").read_bytes() == (folder / "a.hcpe").read_bytes()


def test_wrong_records_are_named_and_left_out(folder, records, capsys):
    damaged = records[0].copy()
    damaged["bestMove16"][3] = 0
    damaged.tofile("c.hcpe")
    assert main(["c.hcpe", "d.hcpe", "--report", "report.tsv"]) == 0
    output = capsys.readouterr()
    assert "c.hcpe, record 4: at byte 114: it has no move" in output.err
    assert "at byte 114: it has no move" in (folder / "report.tsv").read_text()
    assert (folder / "d.hcpe").read_bytes() == numpy.delete(records[0], 3).tobytes()


def test_unknown_results_are_left_out_or_become_draws(folder, records, capsys):
    (folder / "c.csa").write_text(EVEN + MOVES + "%CHUDAN\n")
    (folder / "c.txt").write_text("c.csa\na.psv\n")
    count = len(records[0])
    assert main(["c.txt", "d.psv"]) == 0
    assert "  5 not written: its result is not known\n" in capsys.readouterr().out
    assert len(numpy.fromfile("d.psv", PSV.record)) == count
    assert main(["c.txt", "d.psv", "--unknown_result", "draw"]) == 0
    written = decode_records((folder / "d.psv").read_bytes(), PSV).positions
    assert len(written) == count + 5
    assert (written["result"][:5] == DRAW).all()


def test_nothing_is_written_where_nothing_can_be(folder, capsys):
    (folder / "c.csa").write_text(EVEN + MOVES + "%CHUDAN\n")
    (folder / "d.psv").write_bytes(b"kept")
    assert main(["c.csa", "d.psv"]) == 1
    error = capsys.readouterr().err
    assert "no position can be written to d.psv: 5 positions: its result is not known." in error
    assert (folder / "d.psv").read_bytes() == b"kept"
    assert sorted(path.name for path in folder.iterdir()) == [
        "a.hcpe",
        "a.psv",
        "c.csa",
        "d.psv",
        "list.txt",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.hcpe", "b.psv"], "none.hcpe: there is no such file or folder. Check its path."),
        (["a.hcpe", "b.txt"], "the suffix of b.txt names no format. Call it .hcpe or .psv,"),
        (["a.hcpe", "b.psv", "--format", "hcpe"], "b.psv has the suffix of another format"),
        (["a.hcpe", "b.hcpe3", "--format", "hcpe"], "than hcpe. Programs would read it"),
        (["a.hcpe", "b.csa", "--format", "psv"], "Use the suffix .psv."),
        (["a.hcpe", "a.hcpe"], "OUT a.hcpe is the same file as IN. Choose another name."),
        ([".", "a.hcpe"], "a.hcpe is one of the files to read. Name another output file."),
        (["list.txt", "list.txt/b.psv"], "list.txt"),
        (["a.shard", "b.psv"], "a.shard is a shard, which this program cannot read. Name its"),
        (["a.tar.gz", "b.psv"], "the command line names it, but it is packed; unpack it first."),
    ],
)
def test_mistakes_give_one_sentence(folder, capsys, words, message):
    (folder / "a.tar.gz").write_bytes(b"x")
    before = (folder / "a.hcpe").read_bytes()
    assert main(words) == 1
    error = capsys.readouterr().err
    assert error.startswith("convert_positions: error: ")
    assert error.count("\n") == 1
    assert message in error
    assert (folder / "a.hcpe").read_bytes() == before


def test_a_missing_folder_of_the_output_is_made(folder):
    assert main(["a.psv", "new/b.hcpe"]) == 0
    assert (folder / "new" / "b.hcpe").stat().st_size > 0


def test_the_program_runs_from_any_folder(folder):
    words = [sys.executable, "-m", "pydlshogi", "convert_positions", "a.psv", "b.hcpe"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(words, check=True, capture_output=True, env=environment)
    assert (folder / "b.hcpe").read_bytes() == (folder / "a.hcpe").read_bytes()


def test_an_existing_output_is_kept_under_another_name(folder, capsys):
    (folder / "b.hcpe").write_bytes(b"earlier")
    assert main(["a.psv", "b.hcpe"]) == 0
    assert (folder / "b.hcpe.old").read_bytes() == b"earlier"
    assert (folder / "b.hcpe").read_bytes() == (folder / "a.hcpe").read_bytes()
    assert "its content is kept as b.hcpe.old" in capsys.readouterr().err


def test_an_output_that_is_not_replaced_is_not_copied(folder):
    (folder / "b.hcpe").write_bytes(b"earlier")
    (folder / "empty.psv").write_bytes(b"")
    assert main(["empty.psv", "b.hcpe"]) == 1
    assert (folder / "b.hcpe").read_bytes() == b"earlier"
    assert not (folder / "b.hcpe.old").exists()


@pytest.mark.parametrize("report", ["a.psv", "b.hcpe", "list.txt"])
def test_a_report_replaces_no_other_file(folder, capsys, report):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["a.psv", "b.hcpe", "--report", report]) == 1
    assert re.search(rf"report {report} (exists|is the same file)", capsys.readouterr().err)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_folder_of_a_report_is_made(folder):
    assert main(["a.psv", "b.hcpe", "--report", "new/report.tsv"]) == 0
    assert (folder / "new" / "report.tsv").exists()


def test_a_missing_input_makes_no_folder(folder):
    assert main(["none.hcpe", "new/b.psv", "--report", "new/report.tsv"]) == 1
    assert not os.path.exists("new")
