"""The shards of a list hold its positions; an interrupted run continues; training reads them."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from pydlshogi.commands import make_positions, train_policy
from pydlshogi.kifu import sharding, shards
from pydlshogi.kifu.loading import load_positions
from pydlshogi.kifu.reading import read_positions
from pydlshogi.kifu.sharding import ShardingError
from pydlshogi.kifu.shards import Shard, ShardError
from pydlshogi.kifu.sources import KifuError, read_list

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def kifu_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    games = sorted((REPOSITORY / "kifu/train").glob("*.csa"))[:7]
    for game in games:
        shutil.copy(game, tmp_path)
    (tmp_path / "bad.csa").write_text("bad")
    names = [*(game.name for game in games), "bad.csa"]
    (tmp_path / "train.txt").write_text("".join(f"{name}\n" for name in names))
    return tmp_path / "train.txt"


def content(folder):
    return b"".join(
        Shard(folder / name)[:].tobytes() for name in (folder / "list.txt").read_text().split()
    )


def test_the_shards_hold_the_positions_of_the_list(kifu_list, capsys):
    assert make_positions.main(["train.txt", "out", "--shard_size", "100", "--report", "r"]) == 0
    positions, report = read_positions(kifu_list)
    out = kifu_list.parent / "out"
    assert content(out) == positions.tobytes()
    assert len(list(out.glob("*.shard"))) == -(-len(positions) // 100)
    assert "bad.csa" in (kifu_list.parent / "r").read_text()
    assert f"{report.records} records, {report.games} used" in capsys.readouterr().err
    assert load_positions(out / "list.txt").positions.tobytes() == positions.tobytes()


def test_an_interrupted_run_continues(kifu_list, monkeypatch):
    monkeypatch.setattr(sharding, "_GROUP_FILES", 2)
    sources = read_list(kifu_list)
    whole, parts = kifu_list.parent / "whole", kifu_list.parent / "parts"
    whole.mkdir()
    parts.mkdir()
    made = sharding.make_shards(sources, whole, size=100)
    write = sharding.write_shard
    written = []

    def interrupted(path, positions, visits):
        if len(written) % 5 == 4:
            written.append(None)
            raise KeyboardInterrupt
        write(path, positions, visits)
        written.append(path)

    monkeypatch.setattr(sharding, "write_shard", interrupted)
    again = None
    while again is None:
        try:
            again = sharding.make_shards(sources, parts, size=100)
        except KeyboardInterrupt:
            assert not (parts / "list.txt").exists()
    assert written.count(None) > 0
    assert content(parts) == content(whole)
    assert again.report == made.report
    assert (made.continued, again.continued) == (False, True)


def test_a_run_interrupted_in_its_first_group_continues(kifu_list, monkeypatch):
    write = sharding.write_shard
    written = []

    def interrupted(path, positions, visits):
        if len(written) == 2:
            raise KeyboardInterrupt
        write(path, positions, visits)
        written.append(path)

    sources = read_list(kifu_list)
    out = kifu_list.parent / "out"
    out.mkdir()
    monkeypatch.setattr(sharding, "write_shard", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sharding.make_shards(sources, out, size=100)
    assert len(list(out.glob("*.shard"))) == 2
    monkeypatch.setattr(sharding, "write_shard", write)
    with pytest.raises(ShardingError, match="holds shards of another list"):
        sharding.make_shards(sources[1:], out, size=100)
    made = sharding.make_shards(sources, out, size=100)
    positions, report = read_positions(kifu_list)
    assert content(out) == positions.tobytes()
    assert made.report == report
    assert sorted(path.name for path in out.glob("*.shard")) == made.shards


@pytest.mark.parametrize("has_list", [True, False])
def test_missing_and_damaged_shards_are_made_again(kifu_list, monkeypatch, capsys, has_list):
    monkeypatch.setattr(sharding, "_GROUP_FILES", 2)
    command = ["train.txt", "out", "--shard_size", "100", "--report"]
    assert make_positions.main([*command, "first.tsv"]) == 0
    out = Path("out")
    before = content(out)
    names = (out / "list.txt").read_text().split()
    (out / names[0]).unlink()
    damaged = bytearray((out / names[-1]).read_bytes())
    damaged[200] ^= 1  # in a record
    (out / names[-1]).write_bytes(damaged)
    if not has_list:
        (out / "list.txt").unlink()
    assert make_positions.main([*command, "again.tsv"]) == 0
    assert content(out) == before
    assert (out / "list.txt").read_text().split() == names
    assert Path("again.tsv").read_bytes() == Path("first.tsv").read_bytes()


def test_a_repair_without_all_files_writes_no_smaller_shards(kifu_list, monkeypatch, capsys):
    assert make_positions.main(["train.txt", "out"]) == 0
    out = Path("out")
    before = content(out)
    (name,) = (out / "list.txt").read_text().split()
    (out / name).unlink()
    with monkeypatch.context() as patch:

        def unreadable(stream):
            def wrapped(group, report, **options):
                report.unreadable += 1
                yield from stream(group[:3], report, **options)

            return wrapped

        patch.setattr(sharding, "stream", unreadable(sharding.stream))
        assert make_positions.main(["train.txt", "out"]) == 1
    assert "damaged shards of out cannot be made again" in capsys.readouterr().err
    assert not (out / name).exists()
    assert make_positions.main(["train.txt", "out"]) == 0
    assert content(out) == before


@pytest.mark.parametrize("names", ['["x.shard"]', "null", "7", '["../00000-00000.shard"]'])
def test_a_progress_with_other_names_is_refused(kifu_list, capsys, names):
    assert make_positions.main(["train.txt", "out"]) == 0
    progress = Path("out/progress.json")
    progress.write_text(re.sub(r'"shards": \[.*?\]', f'"shards": {names}', progress.read_text()))
    assert make_positions.main(["train.txt", "out"]) == 1
    assert "progress.json is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x", "[1]", '{"report": {}}', None])
def test_a_damaged_progress_is_refused(kifu_list, capsys, text):
    assert make_positions.main(["train.txt", "out"]) == 0
    progress = Path("out/progress.json")
    if text is None:
        plain = json.loads(progress.read_text())
        plain["report"] = {}
        text = json.dumps(plain)
    progress.write_text(text)
    assert make_positions.main(["train.txt", "out"]) == 1
    error = capsys.readouterr().err
    assert "progress.json is damaged. Delete out, or choose another folder" in error


def test_shards_without_their_progress_are_not_mixed_with_others(kifu_list, capsys):
    assert make_positions.main(["train.txt", "out"]) == 0
    Path("out/progress.json").unlink()
    before = content(Path("out"))
    assert make_positions.main(["train.txt", "out"]) == 1
    assert "holds shards, but no progress.json" in capsys.readouterr().err
    assert content(Path("out")) == before


def test_a_corrected_list_uses_the_folder_of_a_run_without_shards(kifu_list, capsys):
    games = kifu_list.read_text()
    kifu_list.write_text("bad.csa\n")
    assert make_positions.main(["train.txt", "out"]) == 1
    assert "no record can be used" in capsys.readouterr().err
    kifu_list.write_text(games)
    assert make_positions.main(["train.txt", "out"]) == 0
    assert content(Path("out")) == read_positions(kifu_list)[0].tobytes()


def test_other_files_do_not_mix(kifu_list, capsys):
    assert make_positions.main(["train.txt", "out"]) == 0
    (kifu_list.parent / "bad.csa").unlink()
    assert make_positions.main(["train.txt", "out"]) == 1
    assert "holds shards of another list" in capsys.readouterr().err
    assert make_positions.main(["out/list.txt", "other"]) == 1
    assert "is a shard already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [("shards", "MAGIC", b"pydlshogi shard 1\n"), ("sharding", "CACHE_VERSION", 0)],
)
def test_shards_of_another_version_are_not_continued(
    kifu_list, monkeypatch, capsys, module, name, value
):
    with monkeypatch.context() as other:
        other.setattr(sharding, name, value)
        if module == "shards":
            other.setattr(shards, name, value)
        assert make_positions.main(["train.txt", "out"]) == 0
    assert make_positions.main(["train.txt", "out"]) == 1
    assert "another version of pydlshogi made it. Delete it" in capsys.readouterr().err
    shutil.rmtree("out")
    assert make_positions.main(["train.txt", "out"]) == 0
    assert content(Path("out")) == read_positions(kifu_list)[0].tobytes()


@pytest.mark.long
def test_shards_smaller_than_a_record_are_cut_from_one_copy(kifu_list, monkeypatch):
    joined = []
    join = sharding._join

    def counting(parts):
        joined.append(sum(len(positions) for positions, _ in parts))
        return join(parts)

    monkeypatch.setattr(sharding, "_join", counting)
    out = kifu_list.parent / "out"
    out.mkdir()
    made = sharding.make_shards(read_list(kifu_list), out, size=3)
    positions = read_positions(kifu_list)[0]
    assert content(out) == positions.tobytes()
    assert {len(Shard(out / name)) for name in made.shards[:-1]} == {3}
    # Each position once, and the rest of each batch again.
    assert sum(joined) <= len(positions) + 3 * len(joined)


def test_a_list_may_name_shards_beside_records(kifu_list):
    assert make_positions.main(["train.txt", "out"]) == 0
    games = kifu_list.read_text().split()
    mixed = kifu_list.parent / "mixed.txt"
    mixed.write_text(f"out/00000-00000.shard\n{games[0]}\n")
    loaded = load_positions(mixed)
    whole = read_positions(kifu_list)[0]
    (kifu_list.parent / "one.txt").write_text(games[0])
    one = read_positions(kifu_list.parent / "one.txt")[0]
    assert loaded.positions.tobytes() == one.tobytes() + whole.tobytes()
    assert loaded.mapped[:].tobytes() == loaded.positions.tobytes()
    assert load_positions(mixed).from_cache


def test_shards_are_used_if_no_record_beside_them_can_be(kifu_list):
    assert make_positions.main(["train.txt", "out"]) == 0
    mixed = kifu_list.parent / "mixed.txt"
    mixed.write_text("out/00000-00000.shard\nbad.csa\nmissing.csa\n")
    for visits in (False, False, True):  # the second time with the cache
        loaded = load_positions(mixed, visits=visits)
        assert loaded.mapped[:].tobytes() == read_positions(kifu_list)[0].tobytes()
        assert {note.file for note in loaded.report.excluded} == {"bad.csa", "missing.csa"}
    (kifu_list.parent / "one.txt").write_text("bad.csa\n")
    with pytest.raises(KifuError, match="no record of the kifu list"):
        load_positions(kifu_list.parent / "one.txt")


def test_a_file_that_could_not_be_read_is_tried_again(kifu_list, monkeypatch, capsys):
    monkeypatch.setattr(sharding, "_GROUP_FILES", 2)
    read = os.read
    closed = kifu_list.parent / kifu_list.read_text().split()[3]

    def fail(descriptor, size):
        if os.fstat(descriptor).st_ino == closed.stat().st_ino:
            raise OSError(5, "Input/output error")
        return read(descriptor, size)

    with monkeypatch.context() as broken:
        broken.setattr("pydlshogi.kifu.record_batch.os.read", fail)
        assert make_positions.main(["train.txt", "out"]) == 0
    assert "files that could not be read: 1. Unless they" in capsys.readouterr().err
    positions = read_positions(kifu_list)[0].tobytes()
    assert len(content(Path("out"))) < len(positions)
    assert make_positions.main(["train.txt", "out"]) == 0
    assert "could not be read" not in capsys.readouterr().err
    assert content(Path("out")) == positions
    assert set(Path("out/list.txt").read_text().split()) == {
        p.name for p in Path("out").glob("*.shard")
    }


def test_programs_that_need_games_name_shards_in_their_list(kifu_list):
    assert make_positions.main(["train.txt", "out"]) == 0
    with pytest.raises(KifuError, match=r"00000\.shard: it is a shard, which this program"):
        read_positions(kifu_list.parent / "out/list.txt")


def test_options_for_records_are_a_warning_with_shards(kifu_list, caplog):
    assert make_positions.main(["train.txt", "out"]) == 0
    words = ["--iterations", "1", "-b", "2", "--gpu", "-1", "--model", "m", "--state", "s"]
    words += ["--network", "policy_value_small", "--drop_duplicates"]
    assert train_policy.main(["out/list.txt", "train.txt", *words]) == 0
    warnings = [line.getMessage() for line in caplog.records if line.levelname == "WARNING"]
    assert [line for line in warnings if line.startswith("train: strict and drop_duplicates")]


def test_a_progress_file_of_others_is_no_reason_to_delete_a_folder(kifu_list, capsys):
    Path("out").mkdir()
    Path("out/progress.json").write_text("{}")
    assert make_positions.main(["train.txt", "out"]) == 1
    assert "progress.json is damaged. Choose another folder." in capsys.readouterr().err


def test_a_missing_or_damaged_shard_is_named(kifu_list):
    (kifu_list.parent / "bad.txt").write_text("none.shard\n")
    with pytest.raises(KifuError, match=r"none\.shard"):
        load_positions(kifu_list.parent / "bad.txt")
    (kifu_list.parent / "none.shard").write_bytes(b"not a shard")
    with pytest.raises(ShardError, match=r"none\.shard.*make it again"):
        assert load_positions(kifu_list.parent / "bad.txt").mapped


@pytest.mark.parametrize("report", ["train.txt", "bad.csa"])
def test_a_report_does_not_replace_an_input(kifu_list, capsys, report):
    before = Path(report).read_bytes()
    assert make_positions.main(["train.txt", "out", "--report", report]) == 1
    assert f"the report {report} exists" in capsys.readouterr().err
    assert Path(report).read_bytes() == before
    assert not Path("out").exists()


def test_the_new_list_does_not_replace_the_list_of_the_records(kifu_list, capsys):
    before = kifu_list.read_bytes()
    kifu_list.rename(kifu_list.parent / "list.txt")
    assert make_positions.main(["list.txt", "."]) == 1
    assert "the same file as LIST" in capsys.readouterr().err
    assert make_positions.main(["list.txt", "out", "--report", "out/list.txt"]) == 1
    assert Path("list.txt").read_bytes() == before and not Path("out/list.txt").exists()


def test_another_list_in_the_folder_of_the_shards_is_kept(kifu_list, capsys):
    Path("out").mkdir()
    Path("out/list.txt").write_text("mine\n")
    for _ in range(2):  # the second run replaces only its own list
        assert make_positions.main(["train.txt", "out"]) == 0
    assert Path("out/list.txt.old").read_text() == "mine\n"
    assert not Path("out/list.txt.old2").exists()
    assert capsys.readouterr().err.count("is kept as") == 1


# Files that were missing


@pytest.mark.parametrize("missing", [0, 3, 6])
def test_files_that_were_missing_are_added_later(kifu_list, monkeypatch, capsys, missing):
    monkeypatch.setattr(sharding, "_GROUP_FILES", 2)
    names = kifu_list.read_text().split()
    Path("away").mkdir()
    for name in names[missing : missing + 2]:
        shutil.move(name, f"away/{name}")
    written = []
    write = sharding.write_shard
    monkeypatch.setattr(
        sharding, "write_shard", lambda path, *rest: written.append(path.name) or write(path, *rest)
    )
    assert make_positions.main(["train.txt", "out"]) == 0
    assert "missing or cannot be used: " in capsys.readouterr().err
    for name in os.listdir("away"):
        shutil.move(f"away/{name}", name)
    written.clear()
    assert make_positions.main(["train.txt", "out"]) == 0
    assert content(Path("out")) == read_positions(kifu_list)[0].tobytes()
    assert "missing" not in capsys.readouterr().err
    # The groups before the first missing file are not made again.
    assert {int(name[:5]) for name in written} == set(range(missing // 2, 4))
    assert {path.name for path in Path("out").glob("*.shard")} == set(
        Path("out/list.txt").read_text().split()
    )


def test_a_folder_that_was_missing_is_added_later(kifu_list, monkeypatch):
    monkeypatch.setattr(sharding, "_GROUP_FILES", 2)
    names = kifu_list.read_text().split()
    kifu_list.write_text("\n".join([*names[:2], "disk", *names[5:]]))
    assert make_positions.main(["train.txt", "out"]) == 0
    Path("disk").mkdir()
    for name in names[2:5]:
        shutil.move(name, f"disk/{name}")
    assert make_positions.main(["train.txt", "out"]) == 0
    assert content(Path("out")) == read_positions(kifu_list)[0].tobytes()


def test_another_change_is_refused_also_if_files_were_missing(kifu_list, capsys):
    names = kifu_list.read_text().split()
    Path(names[3]).rename("away")
    assert make_positions.main(["train.txt", "out"]) == 0
    Path("away").rename(names[3])
    Path(names[1]).write_bytes(Path(names[2]).read_bytes())
    capsys.readouterr()
    assert make_positions.main(["train.txt", "out"]) == 1
    assert "a file or an option changed since" in capsys.readouterr().err


def test_a_list_that_the_user_has_changed_is_kept(kifu_list, capsys):
    assert make_positions.main(["train.txt", "out"]) == 0
    with open("out/list.txt", "a") as file:
        file.write("more.csa\n")
    assert make_positions.main(["train.txt", "out"]) == 0
    assert "kept as out/list.txt.old" in capsys.readouterr().err
    assert "more.csa" in Path("out/list.txt.old").read_text()
    assert make_positions.main(["train.txt", "out"]) == 0
    assert "kept as" not in capsys.readouterr().err
