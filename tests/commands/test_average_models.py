"""The program convert_model, average."""

import numpy
import pytest
from network_helpers import make_trained

from pydlshogi.commands import convert_model
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network import own
from pydlshogi.network.network import arrays_of
from pydlshogi.network.registry import make_network

GAMES = "kifu/kifulist_test.txt"


def main(arguments):
    return convert_model.main(["average", *arguments])


@pytest.fixture(autouse=True)
def in_the_clone(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


def make_models(folder, name, **sizes):
    paths = []
    for seed in (1, 2):
        numpy.random.seed(seed)
        paths.append(folder / f"model{seed}")
        save_model(paths[-1], make_trained(name, **sizes))
    return paths


def run(capsys, *arguments):
    status = main([*map(str, arguments), "--gpu", "-1"])
    return status, capsys.readouterr()


def test_the_mean_is_written_with_statistics_of_its_own(tmp_path, capsys):
    models = make_models(tmp_path, "policy_value_history_bn", channels=8)
    new = tmp_path / "new"
    options = ("--weight", "0.9", "--kifulist", GAMES, "--positions", "300", "-b", "100")
    status, printed = run(capsys, *models, new, *options)
    assert status == 0, printed.err
    name = "policy_value_history_bn"
    assert printed.out == f"{new}: {name}, 0.9 times {models[0]} and 0.1 times {models[1]}\n"
    first, second, found = (arrays_of(load_network(path)) for path in (*models, new))
    for key, array in found.items():
        expected = 0.9 * first[key] + 0.1 * second[key]
        is_statistic = "/avg_" in key
        assert numpy.allclose(array, expected, rtol=1e-5, atol=1e-6) != is_statistic, key


def test_without_batch_normalization_no_games_are_needed(tmp_path, capsys):
    models = make_models(tmp_path, "policy", channels=8)
    new = tmp_path / "new"
    status, printed = run(capsys, *models, new, "--float16")
    assert status == 0 and printed.err == ""
    first, second, found = (arrays_of(load_network(path)) for path in (*models, new))
    numpy.testing.assert_allclose(
        found["l1/W"], (first["l1/W"] + second["l1/W"]) / 2, rtol=2e-3, atol=1e-4
    )
    assert new.stat().st_size < 0.6 * models[0].stat().st_size
    status, printed = run(capsys, *models, tmp_path / "other", "--kifulist", GAMES)
    assert status == 1 and "has no batch normalization. Leave out --kifulist." in printed.err
    assert not (tmp_path / "other").exists()


def test_with_batch_normalization_games_are_needed(tmp_path, capsys):
    models = make_models(tmp_path, "policy_bn", channels=8)
    status, printed = run(capsys, *models, tmp_path / "new")
    assert status == 1 and not (tmp_path / "new").exists()
    assert printed.err.startswith(f"convert_model: error: model file {models[0]}: its network ")
    assert "Name games of its training with --kifulist." in printed.err


def test_models_of_two_networks_are_refused(tmp_path, capsys):
    first, _ = make_models(tmp_path, "policy_bn", channels=8)
    save_model(tmp_path / "other", make_trained("value", channels=8))
    status, printed = run(capsys, first, tmp_path / "other", tmp_path / "new")
    assert status == 1 and not (tmp_path / "new").exists()
    (line,) = printed.err.splitlines()
    assert line.startswith(f"convert_model: error: model files {first} and {tmp_path / 'other'}: ")
    assert "the networks policy_bn and value differ" in line


def test_inputs_are_not_replaced(tmp_path, capsys):
    models = make_models(tmp_path, "policy_bn", channels=8)
    games = tmp_path / "games.txt"
    games.write_text("a.csa\n")
    cache = tmp_path / "games.pickle"
    cache.write_bytes(b"cache")
    for output in (*models, games, cache):
        before = output.read_bytes()
        status, printed = run(capsys, *models, output, "--kifulist", games)
        assert status == 1 and printed.err.startswith("convert_model: error: ")
        assert output.read_bytes() == before


@pytest.mark.parametrize("weight", ["-0.1", "1.1", "nan", "half"])
def test_a_weight_is_a_share(tmp_path, capsys, weight):
    with pytest.raises(SystemExit):
        main(["a", "b", "c", f"--weight={weight}"])
    assert "is not a number from 0 to 1" in capsys.readouterr().err


def test_a_users_own_number_is_averaged(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(own, "_known", {})
    monkeypatch.setattr(own, "_modules", {})
    code = """
from pydlshogi.network.policy import PolicyNetwork
class Scaled(PolicyNetwork):
    def __init__(self, channels=8):
        super().__init__(channels)
        self.add_persistent("scale", 1.0)
"""
    (tmp_path / "mine.py").write_text(code)
    name = own.use(tmp_path / "mine.py")
    for number in (1, 3):
        network = make_network(name)
        network.scale = float(number)
        save_model(tmp_path / str(number), network)
    files = [tmp_path / name for name in ("1", "3", "new")]
    status, printed = run(capsys, *files, "--network", f"{tmp_path / 'mine.py'}:Scaled")
    assert status == 0, printed.err
    assert load_network(tmp_path / "new").scale == 2


def test_an_output_that_cannot_be_written_is_refused_before_the_games_are_read(tmp_path, capsys):
    models = make_models(tmp_path, "policy_bn", channels=8)
    (tmp_path / "folder").mkdir()
    status, printed = run(
        capsys, *models, tmp_path / "folder", "--kifulist", tmp_path / "missing.txt"
    )
    (line,) = printed.err.splitlines()
    assert status == 1 and line.startswith(f"convert_model: error: output {tmp_path / 'folder'} ")
