"""Log lines: what is written is what is read."""

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pydlshogi.training import log
from pydlshogi.training.log_file import LogError, is_stream, log_to

numbers = st.floats(width=32, allow_nan=False)
counts = st.integers(1, 10**9)


def test_published_lines_are_written_and_read():
    progress = "epoch = 1, iteration = 100, loss = 7.6466594, accuracy = 0.005859375"
    epoch = "epoch = 1, iteration = 59132, train loss avr = 3.755527, test accuracy = 0.29243502"
    (curve,) = log.read_log([f"2017/11/26 14:11:02\tINFO\t{progress}\n", epoch])
    assert curve.progress == [log.ProgressPoint(1, 100, 7.6466594, 0.005859375)]
    assert curve.epochs == [log.EpochPoint(1, 59132, 3.755527, 0.29243502)]
    assert log.format_point(curve.progress[0]) == [progress]
    assert log.format_point(curve.epochs[0]) == [epoch]


@given(counts, counts, numbers, numbers)
def test_a_progress_line_is_read_as_it_was(epoch, iteration, loss, accuracy):
    point = log.ProgressPoint(epoch, iteration, loss, accuracy)
    (curve,) = log.read_log(log.format_point(point))
    (read,) = curve.progress
    assert (read.epoch, read.iteration) == (epoch, iteration)
    assert numpy.float32(read.loss) == numpy.float32(loss)
    assert numpy.float32(read.accuracy) == numpy.float32(accuracy)


@given(counts, counts, numbers, numbers, numbers)
def test_validation_lines_are_read_as_they_were(epoch, iteration, loss, accuracy, test_loss):
    point = log.EpochPoint(epoch, iteration, loss, accuracy, test_loss)
    lines = log.format_point(point)
    assert len(lines) == 2
    (curve,) = log.read_log(lines)
    assert log.format_point(curve.epochs[0]) == lines


@given(counts, counts, st.tuples(*[numbers] * 5), st.tuples(*[numbers] * 8))
def test_lines_of_two_heads_are_read_as_they_were(epoch, iteration, progress, validation):
    on_the_way = log.format_point(log.ProgressPoint(epoch, iteration, *progress))
    at_the_end = log.format_point(log.EpochPoint(epoch, iteration, *validation))
    place = f"epoch = {epoch}, iteration = {iteration}, "
    assert [line.startswith(place) for line in on_the_way + at_the_end] == [True] * 5
    (curve,) = log.read_log(on_the_way + at_the_end)
    assert log.format_point(curve.progress[0]) == on_the_way
    assert log.format_point(curve.epochs[0]) == at_the_end


def test_the_books_lines_of_two_heads_are_read():
    progress = "epoch = 1, iteration = 100, loss = 8.25, accuracy = 0.25, 0.625"
    epoch = "epoch = 1, iteration = 200, train loss avr = 7.5, test accuracy = 0.5, 0.75"
    (curve,) = log.read_log([progress, epoch])
    assert curve.progress == [log.ProgressPoint(1, 100, 8.25, 0.25, value_accuracy=0.625)]
    assert curve.epochs == [log.EpochPoint(1, 200, 7.5, 0.5, test_value_accuracy=0.75)]
    assert log.format_point(curve.progress[0]) == [progress]
    assert log.format_point(curve.epochs[0]) == [epoch]


def test_without_a_known_result_the_total_is_the_policy_loss():
    assert log.total(2.0, float("nan")) == 2.0
    assert numpy.isnan(log.total(float("nan"), 2.0))
    assert log.total(None, 2.0) == 2.0


def test_a_line_of_values_without_its_point_is_ignored():
    point = log.ProgressPoint(1, 5, 1.5, 0.5, 1.0, 0.5, 0.6)
    agreed, losses = log.format_point(point)
    assert log.read_log([losses]) == []
    (curve,) = log.read_log([agreed, losses.replace("iteration = 5", "iteration = 6")])
    assert curve.progress == [log.ProgressPoint(1, 5, 1.5, 0.5, value_accuracy=0.6)]


@pytest.mark.long
@given(st.lists(st.text(), max_size=5))
def test_any_other_text_is_passed_over(lines):
    assert log.read_log(lines) == []


@pytest.mark.parametrize(
    "line",
    [
        "epoch = 1, iteration = 5, loss = ",
        "epoch = 1, iteration = 5, loss = 3.1",
        "epoch = 1, iteration = 5, loss = 3.1, accur",
        "epoch = 1, iteration = 5, loss = 3.1, accuracy = much",
        "epoch = 1, iteration = 5, loss = 3.1, accuracy = 0.5, ",
        "epoch = 1, iteration = 5, loss = 3.1, accuracy = 0.5, 0.5, 0.5",
        "epoch = 1, iteration = 5, test loss = 3.1",
    ],
)
def test_a_line_cut_short_is_passed_over(line):
    assert log.read_log([line]) == []


def points(*iterations):
    return [log.format_point(log.ProgressPoint(1, i, i / 10, 0.0))[0] for i in iterations]


def iterations(curve):
    return [point.iteration for point in curve.progress]


READ = [log.READ_START, log.READ_END]
START = [*READ, log.START]
LOAD = [log.LOAD_MODEL % "m", log.LOAD_STATE % "s"]
RESUME = [*LOAD, *START]


def test_a_resumed_run_continues_the_curve():
    (curve,) = log.read_log([*START, *points(10, 20), *RESUME, *points(30)])
    assert iterations(curve) == [10, 20, 30]


def test_what_a_killed_run_had_logged_too_far_is_replaced():
    lines = [*START, *points(10, 20, 30), *RESUME, *points(20, 40)]
    (curve,) = log.read_log(lines)
    assert iterations(curve) == [10, 20, 40]


def test_a_log_is_read_in_as_many_steps_as_it_has_lines(monkeypatch):
    looks = []

    class Point(log.ProgressPoint):
        def __getattribute__(self, name):
            looks.append(name)
            return super().__getattribute__(name)

    monkeypatch.setattr(log, "ProgressPoint", Point)
    lines = points(*range(1, 301))
    looks.clear()
    (curve,) = log.read_log([*START, *lines])
    assert len(curve.progress) == 300
    assert len(looks) < 10 * len(lines)


def test_a_run_from_nothing_begins_a_new_curve():
    first, second = log.read_log([*START, *points(10, 20), *START, *points(10)])
    assert (iterations(first), iterations(second)) == ([10, 20], [10])


@pytest.mark.parametrize("failed", [READ[:1], READ, [*LOAD, *READ]])
def test_a_run_that_never_starts_neither_begins_nor_continues_a_curve(failed):
    (curve,) = log.read_log([*START, *points(10), *failed, *RESUME, *points(20)])
    assert iterations(curve) == [10, 20]
    first, second = log.read_log([*START, *points(10), *failed, *START, *points(10, 20)])
    assert (iterations(first), iterations(second)) == ([10], [10, 20])


def test_a_model_without_a_state_begins_a_new_curve():
    lines = [*START, *points(10), log.LOAD_MODEL % "m", *START, *points(10, 20)]
    assert [iterations(curve) for curve in log.read_log(lines)] == [[10], [10, 20]]


def test_the_file_is_appended_to_and_warnings_are_seen_as_well(tmp_path, capsys):
    path = tmp_path / "log.txt"
    for _ in range(2):
        with log_to(path):
            logging.getLogger("pydlshogi.training").info("hello")
            logging.getLogger("pydlshogi.read_kifu").warning("careful")
    lines = path.read_text(encoding="utf-8").splitlines()
    stamp = r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d"
    assert [bool(re.fullmatch(stamp + r"\tINFO\thello", line)) for line in lines[::2]] == [True] * 2
    assert all(re.fullmatch(stamp + r"\tWARNING\tcareful", line) for line in lines[1::2])
    assert [line.split("\t")[1:] for line in capsys.readouterr().err.splitlines()] == [
        ["WARNING", "careful"]
    ] * 2


def test_a_file_name_that_is_no_text_is_logged(tmp_path, capsys):
    path = tmp_path / "log.txt"
    with log_to(path):
        logging.getLogger("pydlshogi.training").info("left out: %s", "\udcff.csa")
    assert path.read_text(encoding="utf-8").endswith("left out: \\udcff.csa\n")
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no file that is always full")
def test_a_full_disk_is_told_once_and_the_run_goes_on(capsys):
    with pytest.raises(LogError, match="log /dev/full is incomplete"), log_to("/dev/full"):
        for _ in range(3):
            logging.getLogger("pydlshogi.training").info("hello")
    assert capsys.readouterr().err == "/dev/full cannot be written: No space left on device.\n"
    with pytest.raises(KeyboardInterrupt), log_to("/dev/full"):
        logging.getLogger("pydlshogi.training").info("hello")
        raise KeyboardInterrupt


def test_lines_wait_for_space_on_the_disk_and_none_is_lost(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "log.txt"
    path.write_bytes(b"cut on a full di")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with log_to(path), contextlib.redirect_stderr(None):
            resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
            for number in range(1000):
                logging.getLogger("pydlshogi.training").info("line %d", number)
            assert path.stat().st_size == 50
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    lines = path.read_text().splitlines()
    assert lines[0] == "cut on a full di"
    assert [line.split("\t")[-1] for line in lines[1:]] == [f"line {n}" for n in range(1000)]


@pytest.mark.skipif(not os.path.exists("/dev/stderr"), reason="this system has no such file")
def test_a_log_to_standard_error_has_every_line_once(tmp_path):
    code = (
        "import logging; from pydlshogi.training.log_file import is_stream, log_to\n"
        "assert is_stream('/dev/stderr')\n"
        "with log_to('/dev/stderr'):\n"
        "    for line in ('a', 'b'): logging.getLogger('pydlshogi').warning(line)"
    )
    with open(tmp_path / "stderr", "wb") as file:
        file.write(b"earlier text\n")
        file.flush()
        subprocess.run([sys.executable, "-c", code], stderr=file, check=True)
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert [line.split("\t")[-1] for line in lines] == ["earlier text", "a", "b"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_log_may_go_to_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert is_stream(tmp_path / "pipe")
    with log_to(tmp_path / "pipe"):
        logging.getLogger("pydlshogi").info("hello")
    assert os.read(reader, 1000).endswith(b"INFO\thello\n")
    os.close(reader)


def test_without_a_file_the_log_goes_to_standard_error(capsys):
    with log_to(None):
        logging.getLogger("pydlshogi.training").info("hello")
    logging.getLogger("pydlshogi.training").info("not logged any more")
    assert capsys.readouterr().err.split("\t")[1:] == ["INFO", "hello\n"]


def recipe(size, network="policy"):
    return log.RECIPE % (network, size)


def positions(curve):
    return [point.positions for point in (*curve.progress, *curve.epochs)]


def test_positions_are_counted_where_the_log_tells_the_batch_size():
    end = log.format_point(log.EpochPoint(1, 25, 1.5, 0.5))
    (curve,) = log.read_log([*READ, recipe(64), log.START, *points(10, 20), *end])
    assert (curve.network, positions(curve)) == ("policy", [640, 1280, 1600])


@pytest.mark.parametrize(
    "network", ["my networks/own net.py:Net", r"C:\my networks\own.py:Net", "a, batch size = 8"]
)
def test_the_file_name_of_an_own_network_may_have_blanks(network):
    (curve,) = log.read_log([*READ, recipe(64, network), log.START, *points(10)])
    assert (curve.network, positions(curve)) == (network, [640])


def test_a_run_resumed_with_another_batch_size_counts_on():
    first = [*READ, recipe(64), log.START, *points(10, 20)]
    second = [*LOAD, *READ, recipe(32), log.START, *points(30)]
    (curve,) = log.read_log([*first, *second])
    assert positions(curve) == [640, 1280, 1600]


@pytest.mark.parametrize("iteration, counted", [(25, 1760), (20, 1600), (15, 1440), (7, 1184)])
def test_the_log_tells_where_the_batch_size_changed(iteration, counted):
    """The run before may have been saved after its last point, or killed after its last save."""
    first = [*READ, recipe(64), log.START, *points(10, 20)]
    second = [*LOAD, log.RESUME % iteration, *READ, recipe(32), log.START, *points(30)]
    third = [*LOAD, log.RESUME % 30, *READ, recipe(8), log.START, *points(31)]
    (curve,) = log.read_log([*first, *second, *third])
    assert positions(curve)[-2:] == [counted, counted + 8]


def test_a_log_of_the_second_part_alone_counts_with_its_batch_size():
    (curve,) = log.read_log([*LOAD, log.RESUME % 25, *READ, recipe(32), log.START, *points(30)])
    assert positions(curve) == [960]


def test_what_a_killed_run_had_logged_too_far_is_not_counted():
    again = [*LOAD, *READ, recipe(64), log.START]
    (curve,) = log.read_log([*READ, recipe(64), log.START, *points(10, 20), *again, *points(20)])
    assert positions(curve) == [640, 1280]


def test_the_positions_of_an_old_log_stay_unknown():
    again = [*LOAD, *READ, recipe(64), log.START]
    (curve,) = log.read_log([*START, *points(10), *again, *points(20)])
    assert positions(curve) == [None, None]
    told, untold = log.read_log([*READ, recipe(8), log.START, *points(10), *START, *points(10)])
    assert (positions(told), positions(untold)) == ([80], [None])
    assert (told.network, untold.network) == ("policy", "")


def test_loss_and_accuracy_are_shown_while_they_go_to_the_file(tmp_path, capsys):
    lines = [
        *log.format_point(log.ProgressPoint(1, 5, 1.5, 0.5)),
        *log.format_point(log.EpochPoint(1, 7, 1.5, 0.5, 1.25)),
    ]
    with log_to(tmp_path / "log.txt"):
        for line in ["train position num = 7", *lines]:
            logging.getLogger("pydlshogi.training").info(line)
    shown = capsys.readouterr().err.splitlines()
    assert [line.split("\t")[-1] for line in shown] == lines
    written = (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines()
    assert written[1:] == shown
