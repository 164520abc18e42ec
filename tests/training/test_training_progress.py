"""The progress bars: where they appear, and what they show."""

import io
import math
import re
from types import SimpleNamespace

import pytest
from training_helpers import run

from pydlshogi.compat import chainer
from pydlshogi.training import extensions as progress
from pydlshogi.training.extensions import ShownIterator, bar_stream


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    streams = SimpleNamespace(stderr=Terminal(), stdout=io.StringIO())
    monkeypatch.setattr(progress, "sys", streams)
    return streams.stderr


def test_a_bar_is_shown_on_a_terminal(terminal):
    assert bar_stream() is terminal


def test_standard_output_takes_the_bar_of_a_redirected_standard_error(terminal, monkeypatch):
    streams = SimpleNamespace(stderr=io.StringIO(), stdout=terminal)
    monkeypatch.setattr(progress, "sys", streams)
    assert bar_stream() is terminal


def test_no_bar_is_shown_without_a_terminal(monkeypatch):
    for stream in (io.StringIO(), None):  # a Windows program without a console has None
        monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, stdout=stream))
        assert bar_stream() is None


@pytest.mark.parametrize("name, value", [("TERM", "dumb"), ("JPY_PARENT_PID", "1")])
def test_no_bar_is_shown_where_a_line_cannot_be_redrawn(terminal, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert bar_stream() is None


@pytest.fixture
def every_update(terminal, monkeypatch):
    """Makes the bars show each update."""
    monkeypatch.setattr(progress, "INTERVAL", 1e-9)
    return terminal


def bars(terminal, name):
    return re.findall(rf"\r{name}: +\d+%[^\r]*", terminal.getvalue())


def test_the_bar_shows_iterations_and_the_loss(every_update, tmp_path):
    run(tmp_path, epoch=2, eval_interval=4)  # 6 iterations an epoch
    shown = bars(every_update, "training")
    found = [re.search(r" (\d+)/12 .*, loss ([\d.]+)\]", bar) for bar in shown]
    assert all(found), shown
    assert [int(match[1]) for match in found] == sorted(int(match[1]) for match in found)
    assert {int(match[1]) for match in found} >= {1, 2, 3, 5, 12}
    assert all(0 < float(match[2]) < math.inf for match in found)


def test_no_bar_tells_nonsense(every_update, tmp_path):
    run(tmp_path, epoch=1, iterations=2)
    run(tmp_path, resume=True, epoch=2)
    text = every_update.getvalue()
    assert bars(every_update, "training")
    assert " 3/12 " in text  # the resumed run goes on
    for nonsense in ("inf", "nan", "-", "| 0/"):
        assert nonsense not in text.replace("\r", ""), text


def test_a_run_without_a_terminal_shows_no_bar(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 1e-9)
    run(tmp_path, epoch=1)
    assert "training:" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("size, batch_size", [(13, 4), (12, 4), (1, 4)])
@pytest.mark.parametrize("shown", [True, False])
def test_the_shown_iterator_is_that_of_chainer(every_update, size, batch_size, shown):
    stream = every_update if shown else None
    expected = chainer.iterators.SerialIterator(
        range(size), batch_size, repeat=False, shuffle=False
    )
    iterator = ShownIterator(size, batch_size, stream)
    batches = list(expected)
    for _ in range(2):
        assert list(iterator) == batches
        iterator.reset()
    assert bool(every_update.getvalue().strip()) == (shown and size > batch_size)
