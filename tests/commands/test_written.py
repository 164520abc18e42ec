"""Programs say what they wrote, and keep what they replace."""

import pytest
from kifu_lists import GAME, write_list

from pydlshogi.commands import (
    convert_model,
    make_kifu_list,
    make_opening_book,
    plot_log,
    transfer_policy_to_value,
)
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network.registry import make_network
from pydlshogi.training import log


def fold(arguments):
    return convert_model.main(["fold_bn", *arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("main", [fold, transfer_policy_to_value.main], ids=["fold_bn", "transfer"])
def test_a_model_that_is_replaced_is_kept(folder, capsys, main):
    save_model("policy", make_network("policy"))
    assert main(["policy", "new"]) == 0
    first = capsys.readouterr()
    assert first.out.startswith("new: ") and len(first.out.splitlines()) == 1
    assert first.err == ""
    content = (folder / "new").read_bytes() + b"days of training"
    (folder / "new").write_bytes(content)
    assert main(["policy", "new"]) == 0
    assert "new exists already; its content is kept as new.old\n" in capsys.readouterr().err
    assert (folder / "new.old").read_bytes() == content
    load_network("new")
    (folder / "list.txt").write_text("a.csa")
    assert main(["policy", "list.txt"]) == 1
    assert "list.txt exists and was not saved by a training" in capsys.readouterr().err
    assert (folder / "list.txt").read_text() == "a.csa"


@pytest.mark.parametrize("main", [fold, transfer_policy_to_value.main], ids=["fold_bn", "transfer"])
def test_a_model_that_is_refused_as_output_is_not_copied(folder, main):
    save_model("policy", make_network("policy"))
    assert main(["policy", "./policy"]) == 1
    assert [path.name for path in folder.iterdir()] == ["policy"]


def split(*options):
    return make_kifu_list.main(["games", "list", *options])


def test_lists_that_are_replaced_are_kept(folder, capsys):
    (folder / "games").mkdir()
    for n in range(10):
        (folder / "games" / f"{n}.csa").touch()
    assert split() == 0
    before = {part: (folder / f"list_{part}.txt").read_bytes() for part in ("train", "test")}
    assert split() == 0  # the same lists
    assert not list(folder.glob("*.old"))
    capsys.readouterr()
    assert split("--seed", "1") == 0
    told = capsys.readouterr().err.splitlines()
    assert told == [
        f"make_kifu_list: list_{part}.txt exists already; "
        f"its content is kept as list_{part}.txt.old"
        for part in before
    ]
    for part, content in before.items():
        assert (folder / f"list_{part}.txt.old").read_bytes() == content
        assert (folder / f"list_{part}.txt").read_bytes() != content


def test_plot_log_names_its_picture(folder, capsys):
    pytest.importorskip("matplotlib")
    point = log.ProgressPoint(1, 5, 8.0, 0.1)
    (folder / "log.txt").write_text("\n".join([log.START, *log.format_point(point)]))
    assert plot_log.main(["log.txt", "-o", "curve.svg"]) == 0
    assert capsys.readouterr().out == "curve.svg: picture of log.txt\n"


def test_a_book_replaces_nothing_but_a_book(folder, capsys):
    kifu_list = write_list(folder, a__csa=GAME, b__csa=GAME)
    (folder / "c.csa").write_text(GAME)
    assert make_opening_book.main([kifu_list.name, "c.csa"]) == 1
    assert "c.csa exists and is not a book" in capsys.readouterr().err
    assert (folder / "c.csa").read_text() == GAME
    (folder / "b.db").write_text("\ufeff#YANEURAOU-DB2016 1.00\n", encoding="utf-8")
    assert make_opening_book.main([kifu_list.name, "b.db"]) == 0
    assert "content is kept as b.db.old" in capsys.readouterr().err
    before = kifu_list.read_bytes()
    assert make_opening_book.main([kifu_list.name, kifu_list.name]) == 1
    assert "is the same file as the kifu list" in capsys.readouterr().err
    assert kifu_list.read_bytes() == before
