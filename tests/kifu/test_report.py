"""The report of what was left out."""

from pydlshogi.kifu.report import Note, Report


def report():
    return Report(
        records=30,
        games=15,
        positions=99,
        black_wins=7,
        white_wins=6,
        draws=1,
        unknowns=1,
        excluded=[Note(f"{n}.csa", 1, n, "bad\tmove") for n in range(15)],
        duplicates=[Note("a.csa", 2, 0, "same moves as b.csa")],
        contradictions=[Note("c.csa", 1, 0, "Black won, White won")],
    )


def test_lines_name_the_first_and_count_the_others():
    lines = list(report().lines(most=3))
    assert lines[0].startswith("30 records, 15 used, 99 positions; Black won 7, White won 6")
    assert lines[1:6] == [
        "left out: 15",
        "  0.csa: bad\tmove",
        "  1.csa, line 1: bad\tmove",
        "  2.csa, line 2: bad\tmove",
        "  and 12 more",
    ]
    assert "  a.csa, record 2: same moves as b.csa" in lines
    assert "duplicate, kept: 1" in lines
    assert len(list(Report().lines())) == 1


def test_the_tsv_has_a_row_for_each_note(tmp_path):
    path = tmp_path / "report.tsv"
    report().write_tsv(path)
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    assert rows[0] == ["kind", "file", "record", "line", "reason"]
    assert rows[2] == ["left out", "1.csa", "1", "1", "bad move"]
    assert {len(row) for row in rows} == {5}
    assert [row[0] for row in rows[-2:]] == ["kept duplicate", "contradiction"]
    assert len(rows) == 1 + 15 + 2


def test_scripts_find_the_files_by_the_names_in_the_tsv(tmp_path):
    path = tmp_path / "report.tsv"
    names = ["第75期　名人戦.csa", "two  blanks.csa"]
    Report(excluded=[Note(name, 1, 0, "bad") for name in names]).write_tsv(path)
    assert [line.split("\t")[1] for line in path.read_text("utf-8").split("\n")[1:-1]] == names


def test_names_that_are_no_text_are_written_too(tmp_path):
    path = tmp_path / "report.tsv"
    Report(excluded=[Note("\udcff.csa", 1, 0, "bad")]).write_tsv(path)
    assert "\\udcff.csa" in path.read_text("utf-8")


def test_the_plain_form_makes_the_same_report():
    plain = report().to_plain()
    assert plain["excluded"][1] == ("1.csa", 1, 1, "bad\tmove")
    assert type(plain["excluded"][1]) is tuple
    assert Report.from_plain(plain) == report()
