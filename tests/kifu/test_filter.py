"""Choosing records: each criterion, each action, nothing deleted unasked."""

import os
import signal
from pathlib import Path

import pytest

from pydlshogi.commands import filter_csa
from pydlshogi.kifu import filter as kifu_filter
from pydlshogi.kifu.sources import read_list

KIFU = Path(__file__).parents[2] / "kifu"


def record(black=3000.0, white=3100.0, moves=60, end="%TORYO"):
    lines = ["V2.2", "N+a", "N-b", "PI", "+"]
    if black is not None:
        lines += [f"'black_rate:a:{black}", f"'white_rate:b:{white}"]
    # The filter does not play the moves, so they may be impossible.
    lines += ["+2726FU", "-8384FU"] * (moves // 2) + ["+2625FU"] * (moves % 2)
    return "\n".join([*lines, *([end] if end else []), ""])


FILES = {
    "good.csa": record(),
    "sub/good too.CSA": record(2500, 2500, 50),
    "weak.csa": record(2499.9),
    "nan.csa": record("nan"),
    "unrated.csa": record(None),
    "short.csa": record(moves=49),
    "time.csa": record(end="%TIME_UP"),
    "open.csa": record(end=None),
    "broken.csa": record() + "garbage\n",
    "two.csa": record() + "/\n" + record(moves=10),
    "empty.csa": "",
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "games"
    (folder / "sub").mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_bytes(text.encode())
    (folder / "notes.txt").write_text("no record", encoding="utf-8")
    return folder


def names(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def listed(folder, *flags):
    path = folder.parent / "list.txt"
    assert filter_csa.main([str(folder), "--list", str(path), *flags]) == 0
    return {line.split("/", 1)[1] for line in path.read_text(encoding="utf-8").splitlines()}


def test_the_defaults_are_the_books(folder):
    assert listed(folder) == {"good.csa", "sub/good too.CSA"}


@pytest.mark.parametrize(
    "flags, more",
    [
        (["--min_rating", "2400"], {"weak.csa"}),
        (["--min_rating", "0"], {"weak.csa", "unrated.csa", "nan.csa"}),
        (["--min_moves", "49"], {"short.csa"}),
        (["--min_moves", "1"], {"short.csa", "two.csa"}),
        (["--result", "%TORYO,time_up"], {"time.csa"}),
        (["--result", "TORYO,NONE"], {"open.csa"}),
        (["--result", "any"], {"time.csa", "open.csa"}),
    ],
)
def test_a_wider_criterion_lets_more_in(folder, flags, more):
    assert listed(folder, *flags) == {"good.csa", "sub/good too.CSA"} | more


def test_hyphenated_spellings_still_work_but_are_hidden(folder, tmp_path, capsys):
    assert listed(folder, "--min-moves=49") == {"good.csa", "sub/good too.CSA", "short.csa"}
    assert listed(folder, "--max-rating", "3000") == {"sub/good too.CSA"}
    assert filter_csa.main([str(folder), "--copy-to", str(tmp_path / "copy")]) == 0
    assert names(tmp_path / "copy") == {"good.csa", "sub/good too.CSA"}
    with pytest.raises(SystemExit):
        filter_csa.main(["--help"])
    shown = capsys.readouterr().out
    assert "--min_moves" in shown and "--copy_to" in shown
    assert not any(f"--{name}-" in shown for name in ("min", "max", "copy"))


def test_upper_limits(folder):
    assert listed(folder, "--max_rating", "3000") == {"sub/good too.CSA"}
    assert listed(folder, "--max_moves", "50") == {"sub/good too.CSA"}


def test_says_what_was_left_out_and_why(folder, tmp_path, capsys):
    report = tmp_path / "report.tsv"
    before = names(folder)
    assert filter_csa.main([str(folder), "--report", str(report)]) == 0
    said = capsys.readouterr().out
    assert "11 files, 2 fit, 9 do not:" in said
    for line in ("1 fewer than 50 moves", "2 cannot be read", "1 ended by %TIME_UP"):
        assert line in said
    assert "1 only some of its games fit" in said
    rows = report.read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 9
    detail = "1 of 2 games fit; the first that does not: fewer than 50 moves"
    assert any(f"two.csa\tonly some of its games fit\t{detail}" in row for row in rows), rows
    assert any("broken.csa\tcannot be read\tline 69: " in row for row in rows), rows
    assert names(folder) == before
    assert filter_csa.main([str(folder / "sub"), "--list", str(tmp_path / "list")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == ["1 files, 1 fit, 0 do not", f"{tmp_path / 'list'}: list of 1 files"]


def named(black, white, encoding="utf-8"):
    return record().replace("N+a", f"N+{black}").replace("N-b", f"N-{white}").encode(encoding)


@pytest.fixture
def players(folder):
    (folder / "habu.csa").write_bytes(named("Habu", "x"))
    (folder / "white.csa").write_bytes(named("x", " habu "))
    (folder / "japanese.csa").write_bytes(named("羽生", "x", "cp932"))
    (folder / "other.csa").write_bytes(named("Habu2", "Hab"))
    return folder


@pytest.mark.parametrize(
    "flags, expected",
    [
        (["--player", "HABU"], {"habu.csa", "white.csa"}),
        (["--player", "羽生"], {"japanese.csa"}),
        (["--player", "hab", "--player", "羽生"], {"other.csa", "japanese.csa"}),
        (["--player", "a"], {"good.csa", "sub/good too.CSA"}),
        (["--player", "a", "--max_rating", "2600"], {"sub/good too.CSA"}),
    ],
)
def test_a_player_is_either_side_by_the_whole_name(players, flags, expected):
    assert listed(players, *flags) == expected


@pytest.mark.parametrize("flags", [["--delete"], ["--copy_to", "copy"], ["--list", "list.txt"]])
def test_an_unknown_player_changes_nothing(folder, tmp_path, capsys, monkeypatch, flags):
    monkeypatch.chdir(tmp_path)
    before = names(tmp_path)
    assert filter_csa.main([str(folder), "--player", "nobody", *flags]) == 1
    said = capsys.readouterr()
    assert "not a game of nobody" in said.out
    assert "Check --player" in said.err and said.err.count("\n") == 1
    assert names(tmp_path) == before


def test_says_what_it_copied_and_deleted(folder, tmp_path, capsys):
    assert filter_csa.main([str(folder), "--copy_to", str(tmp_path / "copy")]) == 0
    assert f"{tmp_path / 'copy'}: 2 files copied\n" in capsys.readouterr().out
    assert filter_csa.main([str(folder), "--delete"]) == 0
    captured = capsys.readouterr()
    assert f"{folder}: {len(FILES) - 5} files deleted\n" in captured.out
    assert "only some games fit, are kept: 3" in captured.err


def test_copies_what_fits_to_the_same_places(folder, tmp_path):
    assert filter_csa.main([str(folder), "--copy_to", str(tmp_path / "copy")]) == 0
    assert names(tmp_path / "copy") == {"good.csa", "sub/good too.CSA"}
    assert (tmp_path / "copy" / "good.csa").read_bytes() == (folder / "good.csa").read_bytes()
    assert set(FILES) < names(folder)


KEPT = {"good.csa", "sub/good too.CSA", "notes.txt", "broken.csa", "empty.csa", "two.csa"}


def test_deletes_only_when_told_and_only_records_that_it_can_read(folder):
    text = record(moves=10) + "/\n" + record() + "garbage\n"
    (folder / "short and broken.csa").write_text(text, encoding="utf-8")
    assert filter_csa.main([str(folder), "--delete"]) == 0
    assert names(folder) == KEPT | {"short and broken.csa"}


@pytest.mark.parametrize("flags", [["--delete"], ["--copy_to", "copy"], ["--list", "list.txt"]])
def test_a_criterion_that_nothing_fits_changes_nothing(
    folder, tmp_path, capsys, monkeypatch, flags
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("of last year\n")
    before = names(tmp_path)
    assert filter_csa.main([str(folder), "--min_rating", "30000", *flags]) == 1
    assert "No file fits, so nothing was" in capsys.readouterr().err
    assert names(tmp_path) == before
    assert not (tmp_path / "copy").exists()
    assert (tmp_path / "list.txt").read_text() == "of last year\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_record_and_a_device_is_not_read(folder):
    before = filter_csa.find_files(folder, None)
    os.mkfifo(folder / "pipe.csa")
    (folder / "device.csa").symlink_to(os.devnull)
    (folder / "broken link.csa").symlink_to("nothing")
    # The broken link is found, because its reader names it.
    assert set(filter_csa.find_files(folder, None)) == {*before, folder / "broken link.csa"}
    misfit = kifu_filter.examine(folder / "device.csa", kifu_filter.Criteria())
    assert (misfit.reason, "device or a pipe" in misfit.detail) == ("cannot be opened", True)


def test_a_file_that_cannot_be_deleted_is_named_and_the_others_go(folder, capsys, monkeypatch):
    def unlink(path):
        if path.name == closed:
            raise PermissionError(13, "Access is denied")
        os.unlink(path)

    closed = sorted(names(folder) - KEPT)[0]
    monkeypatch.setattr(Path, "unlink", unlink)
    assert filter_csa.main([str(folder), "--delete"]) == 0
    captured = capsys.readouterr()
    assert f"{closed} cannot be deleted (Access is denied)." in captured.err
    assert f"{folder}: {len(FILES) - 6} files deleted\n" in captured.out
    assert names(folder) == KEPT | {closed}


def test_what_cannot_be_opened_is_not_deleted(folder, monkeypatch):
    whole = Path.read_bytes

    def fail(path):
        if path.name in ("good.csa", "weak.csa"):
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", fail)
    assert filter_csa.main([str(folder), "--delete"]) == 0
    assert names(folder) == KEPT | {"weak.csa"}


def test_names_that_are_not_utf_8_are_listed_and_reported(folder, tmp_path):
    strange = os.fsdecode(b"\x81\xff")
    try:
        (folder / f"{strange}.csa").write_text(record())
        (folder / f"{strange}2.csa").write_text("bad")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes text only")
    report = tmp_path / "report.tsv"
    arguments = ["--report", str(report), "--list", str(tmp_path / "list.txt")]
    assert filter_csa.main([str(folder), *arguments]) == 0
    assert "\\udc81\\udcff2.csa\tcannot be read" in report.read_text(encoding="utf-8")
    assert f"games/{strange}.csa" in [s.name for s in read_list(tmp_path / "list.txt")]


def test_an_interrupt_gets_one_sentence(folder, monkeypatch, capsys):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(kifu_filter, "examine", interrupt)
    assert filter_csa.main([str(folder)]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "filter_csa: interrupted."


def test_sigterm_ends_it_with_a_sentence_too(folder, monkeypatch, capsys):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(kifu_filter, "examine", lambda *args: signal.raise_signal(signal.SIGTERM))
    assert filter_csa.main([str(folder)]) == 143
    assert capsys.readouterr().err.splitlines()[-1] == "filter_csa: interrupted."
    assert signal.getsignal(signal.SIGTERM) == before


def test_full_memory_gets_advice_that_can_be_followed(folder, monkeypatch, capsys):
    def fill(*args):
        raise MemoryError

    monkeypatch.setattr(kifu_filter, "examine", fill)
    assert filter_csa.main([str(folder)]) == 1
    error = capsys.readouterr().err
    assert "not enough memory" in error and "batchsize" not in error


def test_the_folders_of_list_and_report_are_made(folder, tmp_path):
    outputs = [tmp_path / "new" / "list.txt", tmp_path / "new too" / "report.tsv"]
    flags = ["--list", str(outputs[0]), "--report", str(outputs[1])]
    assert filter_csa.main([str(folder), *flags]) == 0
    assert all(path.is_file() for path in outputs)


def test_what_an_earlier_run_copied_is_told(folder, tmp_path, capsys):
    target = tmp_path / "strong"
    flags = [str(folder), "--copy_to", str(target)]
    assert filter_csa.main([*flags, "--min_rating", "0", "--min_moves", "0"]) == 0
    assert "other records" not in capsys.readouterr().err
    earlier = len(names(target))
    assert filter_csa.main(flags) == 0
    assert f"holds {earlier - 2} other records" in capsys.readouterr().err


def test_help_is_ascii(capsys):
    with pytest.raises(SystemExit):
        filter_csa.main(["--help"])
    assert capsys.readouterr().out.isascii()


def test_the_embedded_games_are_what_their_readme_says(tmp_path):
    for part, count in (("train", 200), ("test", 30)):
        flags = ["--list", str(tmp_path / "list"), "--min_rating", "3000"]
        assert filter_csa.main([str(KIFU / part), *flags]) == 0
        assert len((tmp_path / "list").read_text(encoding="utf-8").splitlines()) == count


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nowhere"], "not a folder"),
        (["games/sub/none"], "holds no .csa"),
        (["games", "--list", "games/good.csa/list"], "File exists"),
        (["games", "--copy_to", "games/good.csa"], "is a file. Name a folder."),
    ],
)
def test_bad_input_is_one_sentence(folder, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(folder.parent)
    (folder / "sub" / "none").mkdir()
    assert filter_csa.main(arguments) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.parametrize(
    "flags",
    [
        ["--result", "MATE"],
        ["--result", "TORYO,"],
        ["--min_rating", "nan"],
        ["--delete", "--copy_to", "x"],
        ["--player", " "],
        ["--min_moves", "300", "--max_moves", "10", "--delete"],
        ["--max_rating", "2000", "--delete"],  # below the default of --min_rating
        ["--list", ""],
    ],
)
def test_unknown_values_are_refused(folder, capsys, flags):
    before = names(folder)
    with pytest.raises(SystemExit) as stop:
        filter_csa.main([str(folder), *flags])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("filter_csa: error: ") and error.count("\n") == 1
    assert names(folder) == before


def test_copies_below_the_folder_are_not_copied_again(folder, capsys):
    for _ in range(2):
        assert filter_csa.main([str(folder), "--copy_to", str(folder / "sub" / "strong")]) == 0
        assert f"{len(FILES)} files, 2 fit" in capsys.readouterr().out
    assert names(folder / "sub" / "strong") == {"good.csa", "sub/good too.CSA"}
    assert filter_csa.main([str(folder), "--copy_to", str(folder / "sub" / "..")]) == 1
    assert "is DIR itself" in capsys.readouterr().err
    assert filter_csa.main([str(folder), "--copy_to", str(folder.parent)]) == 0
    assert (folder.parent / "good.csa").exists()


def test_what_macos_puts_beside_a_record_is_none(folder):
    (folder / "._good.csa").write_text(record(), encoding="utf-8")
    assert listed(folder) == {"good.csa", "sub/good too.CSA"}


@pytest.mark.parametrize("flag", ["--list", "--report"])
def test_no_record_is_replaced_by_a_list_or_a_table(folder, capsys, flag):
    path = folder / "good.csa"
    assert filter_csa.main([str(folder), flag, str(path)]) == 1
    assert f" {path} " in capsys.readouterr().err
    assert path.read_text() == FILES["good.csa"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("flag", ["--list", "--report"])
def test_a_list_or_a_table_does_not_replace_a_pipe(folder, tmp_path, capsys, flag):
    os.mkfifo(tmp_path / "pipe")
    assert filter_csa.main([str(folder), flag, str(tmp_path / "pipe")]) == 1
    said = capsys.readouterr()
    assert f"{flag} {tmp_path / 'pipe'} is a device or a pipe" in said.err
    assert said.out == ""  # before the files are examined


def test_list_and_table_are_two_files(folder, tmp_path, capsys):
    path = str(tmp_path / "same.txt")
    assert filter_csa.main([str(folder), "--list", path, "--report", path]) == 1
    assert "is the same file as --report" in capsys.readouterr().err


def test_a_list_that_is_replaced_is_kept(folder, tmp_path, capsys):
    path = tmp_path / "list.txt"
    path.write_text("of last year\n")
    for _ in range(2):  # the second time, the list is the same
        assert filter_csa.main([str(folder), "--list", str(path)]) == 0
    assert (tmp_path / "list.txt.old").read_text() == "of last year\n"
    assert not (tmp_path / "list.txt.old2").exists()
    assert "its content is kept as" in capsys.readouterr().err


def test_a_copy_does_not_replace_another_game_of_the_same_name(folder, tmp_path, capsys):
    copies = tmp_path / "copies"
    copies.mkdir()
    (copies / "good.csa").write_text(record(moves=80))
    assert filter_csa.main([str(folder), "--copy_to", str(copies)]) == 1
    assert "good.csa exists already and is not the same file" in capsys.readouterr().err
    assert (copies / "good.csa").read_text() == record(moves=80)
    assert names(copies) == {"good.csa"}
    (copies / "good.csa").write_text(record())
    for _ in range(2):  # the same files may be copied again
        assert filter_csa.main([str(folder), "--copy_to", str(copies)]) == 0
    assert names(copies) == {"good.csa", "sub/good too.CSA"}
