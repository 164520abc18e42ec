"""The program convert_model, calibrate."""

import re

import numpy
import pytest
from network_helpers import make_trained

from pydlshogi.commands import convert_model
from pydlshogi.model_files.model_file import load_network, save_model

GAMES = "kifu/kifulist_test.txt"


def main(arguments):
    return convert_model.main(["calibrate", *arguments])


def make_model(path, factor):
    """Saves a network with random weights, whose values are multiplied by a factor."""
    network = make_trained("policy_value", channels=8)
    network.l15_v.W.array *= factor
    save_model(path, network)
    return path


@pytest.fixture(autouse=True)
def in_the_clone(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


def run(capsys, *arguments):
    status = main([*map(str, arguments), "--gpu", "-1"])
    return status, capsys.readouterr()


@pytest.mark.long
def test_the_corrected_model_is_written_and_fits_better(tmp_path, capsys):
    # Random values predict the results a little, or they do when their signs are changed.
    for factor in (8, -8):
        model, new = make_model(tmp_path / f"model{factor}", factor), tmp_path / f"new{factor}"
        status, printed = run(capsys, model, GAMES, new, "--float16")
        assert new.exists() == (status == 0)
        if status == 0:
            break
        assert f"convert_model: error: {GAMES}: the values do not predict" in printed.err
    first, second = printed.out.splitlines()
    before, after = map(float, re.findall(r"[0-9]+\.[0-9]+", first)[:2])
    assert after < before
    assert second == f"{new}: policy_value of {model}"
    found, loaded = load_network(model), load_network(new)
    factor = float(first.partition("(factor ")[2].partition(")")[0])
    assert 0 < factor < 1
    tolerance = {"rtol": 2e-3, "atol": 1e-4}
    numpy.testing.assert_allclose(loaded.l15_v.W.array, factor * found.l15_v.W.array, **tolerance)
    numpy.testing.assert_allclose(loaded.l1.W.array, found.l1.W.array, **tolerance)


@pytest.mark.parametrize(
    ("network", "reason"),
    [("policy", "it has no value head"), ("policy_value_small", "does not say which link")],
)
def test_a_model_without_a_logit_is_refused(tmp_path, capsys, network, reason):
    sizes = {"channels": 8} if network == "policy" else {}
    save_model(tmp_path / "model", make_trained(network, **sizes))
    status, printed = run(capsys, tmp_path / "model", GAMES, tmp_path / "new")
    assert status == 1
    assert printed.err.startswith(f"convert_model: error: model file {tmp_path / 'model'}: ")
    assert reason in printed.err and not (tmp_path / "new").exists()


def test_inputs_are_not_replaced(tmp_path, capsys):
    model = make_model(tmp_path / "model", 1)
    games = tmp_path / "games.txt"
    games.write_text("a.csa\n")
    cache = tmp_path / "games.pickle"
    cache.write_bytes(b"cache")
    for output in (model, games, cache):
        before = output.read_bytes()
        status, printed = run(capsys, model, games, output)
        assert status == 1 and printed.err.startswith("convert_model: error: ")
        assert output.read_bytes() == before


def test_an_output_that_cannot_be_written_is_refused_before_the_games_are_read(tmp_path, capsys):
    models = [make_model(tmp_path / "model", 1)]
    (tmp_path / "folder").mkdir()
    status, printed = run(capsys, *models, tmp_path / "missing.txt", tmp_path / "folder")
    (line,) = printed.err.splitlines()
    assert status == 1 and line.startswith(f"convert_model: error: output {tmp_path / 'folder'} ")
