"""The program convert_model, fold_bn."""

import os

import numpy
import pytest
from network_helpers import make_trained

from pydlshogi.commands import convert_model
from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network import own
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.registry import make_network


def main(arguments):
    return convert_model.main(["fold_bn", *arguments])


def logits(network):
    planes = numpy.random.RandomState(2).randint(0, 2, (3, 104, 9, 9)).astype(numpy.float32)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        return network(planes).array


@pytest.mark.long
@pytest.mark.parametrize("options, dtype", [([], "float32"), (["--float16"], "float16")])
def test_its_file_has_exactly_the_26_arrays_of_the_books(tmp_path, options, dtype):
    numpy.random.seed(1)
    network = make_network("policy_bn")
    for n in range(1, 13):
        network[f"norm{n}"].gamma.array[...] = numpy.random.uniform(0.5, 2, 192)
        network[f"norm{n}"].avg_mean[...] = numpy.random.normal(0, 0.3, 192)
    save_model(tmp_path / "bn", network)
    assert main([str(tmp_path / "bn"), str(tmp_path / "folded"), *options]) == 0
    book = chainer.serializers.npz.serialize(PolicyNetwork())
    with numpy.load(tmp_path / "folded") as npz:
        assert set(npz.files) == set(book)
        assert {name: npz[name].shape for name in npz.files} == {
            name: array.shape for name, array in book.items()
        }
        assert {npz[name].dtype for name in npz.files} == {numpy.dtype(dtype)}
    loaded = load_network(tmp_path / "folded")
    assert type(loaded) is PolicyNetwork
    expected = logits(network)
    tolerance = 1e-4 if dtype == "float32" else 2e-2
    assert abs(logits(loaded) - expected).max() < tolerance * abs(expected).max()
    assert loaded.l1.W.dtype == numpy.float32


def test_any_network_can_be_stored_with_16_bits(tmp_path):
    network = make_trained("policy_value_history_bn", channels=16)
    save_model(tmp_path / "model", network)
    files = [str(tmp_path / "model"), str(tmp_path / "half")]
    assert main([*files, "--no_fold", "--float16"]) == 0
    loaded = load_network(tmp_path / "half")
    assert type(loaded) is type(network)
    for key, array in chainer.serializers.npz.serialize(network).items():
        found = chainer.serializers.npz.serialize(loaded)[key]
        numpy.testing.assert_allclose(found, array, rtol=1e-3, atol=1e-4)
    assert (tmp_path / "half").stat().st_size < 0.6 * (tmp_path / "model").stat().st_size


def test_a_network_of_the_users_own_can_be_stored_with_16_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(own, "_known", {})
    monkeypatch.setattr(own, "_modules", {})
    code = "from pydlshogi.network.policy import PolicyNetwork\nclass Mine(PolicyNetwork): pass\n"
    (tmp_path / "mine.py").write_text(code)
    save_model(tmp_path / "model", make_network(own.use(tmp_path / "mine.py")))
    monkeypatch.setattr(own, "_known", {})
    files = [str(tmp_path / "model"), str(tmp_path / "half"), "--no_fold", "--float16"]
    assert main(files) == 1
    assert main([*files, "--network", f"{tmp_path / 'mine.py'}:Mine"]) == 0
    assert (tmp_path / "half").stat().st_size < 0.51 * (tmp_path / "model").stat().st_size


@pytest.mark.parametrize("options", [[], ["--float16", "--keep_value"]])
def test_no_fold_is_for_16_bits_alone(tmp_path, capsys, options):
    with pytest.raises(SystemExit):
        main([str(tmp_path / "model"), str(tmp_path / "out"), "--no_fold", *options])
    assert "--no_fold needs --float16" in capsys.readouterr().err


def test_keep_value_writes_the_books_network_with_two_heads(tmp_path, capsys):
    numpy.random.seed(1)
    network = make_network("policy_value", channels=16)
    save_model(tmp_path / "both", network)
    files = [str(tmp_path / "both"), str(tmp_path / "half")]
    assert main([*files, "--keep_value", "--float16"]) == 0
    assert "half: policy_value of" in capsys.readouterr().out
    loaded = load_network(tmp_path / "half")
    assert type(loaded) is type(network)
    for (path, expected), (_, found) in zip(
        sorted(network.namedparams()), sorted(loaded.namedparams())
    ):
        assert abs(found.array - expected.array).max() < 1e-3, path
    assert (tmp_path / "half").stat().st_size < 0.51 * (tmp_path / "both").stat().st_size


def test_the_books_network_is_taken_as_it_is(tmp_path):
    numpy.random.seed(1)
    network = make_network("policy", channels=64)
    save_model(tmp_path / "model", network)
    assert main([str(tmp_path / "model"), str(tmp_path / "half"), "--float16"]) == 0
    half = load_network(tmp_path / "half")
    for (_, one), (_, other) in zip(sorted(network.namedparams()), sorted(half.namedparams())):
        numpy.testing.assert_array_equal(one.array.astype(numpy.float16), other.array)
    sizes = [(tmp_path / name).stat().st_size for name in ("model", "half")]
    assert sizes[1] < 0.51 * sizes[0]


def test_a_number_too_large_for_16_bits_gets_one_sentence(tmp_path, capsys):
    network = make_network("policy", channels=16)
    network.l1.b.array[3] = 7e4
    save_model(tmp_path / "model", network)
    words = [str(tmp_path / "model"), str(tmp_path / "half")]
    assert main([*words, "--float16"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "too large for 16 bits" in line
    assert not (tmp_path / "half").exists()
    assert main(words) == 0


@pytest.mark.parametrize("output", ["model", "./model", "link"])
def test_the_model_itself_is_not_replaced(tmp_path, capsys, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    save_model("model", make_network("policy_bn", channels=8))
    if output == "link":
        os.link("model", "link")
    before = (tmp_path / "model").read_bytes()
    assert main(["model", output]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"convert_model: error: {output} is the model file itself")
    assert (tmp_path / "model").read_bytes() == before


def test_the_folder_of_the_output_is_made_or_refused_in_one_sentence(tmp_path, capsys):
    save_model(tmp_path / "model", make_network("policy"))
    model = str(tmp_path / "model")
    assert main([model, str(tmp_path / "new" / "folder" / "book")]) == 0
    assert (tmp_path / "new" / "folder" / "book").is_file()
    for output in (tmp_path / "new", tmp_path / "model" / "book"):
        assert main([model, str(output)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"convert_model: error: {output} cannot be written (")
        assert line.endswith("Name a file in a folder that can be written to.")


@pytest.mark.parametrize(
    "model, words",
    [
        ("small", ["small", "policy_value_small", "network policy_bn"]),
        ("missing", ["does not exist"]),
        ("small.txt", ["small.txt"]),
    ],
)
def test_another_network_or_file_gets_one_sentence(tmp_path, capsys, model, words):
    save_model(tmp_path / "small", make_network("policy_value_small"))
    assert main([str(tmp_path / model), str(tmp_path / "out")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("convert_model: error: model file ")
    for word in words:
        assert word in line
    assert not (tmp_path / "out").exists()
