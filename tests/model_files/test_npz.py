"""Chainer's npz files: read completely, or refused with a reason, whatever the damage."""

import io
import os
import zipfile

import numpy
import pytest

from pydlshogi.model_files.npz import NpzError, read_headers, read_npz

ARRAYS = {
    "l1/W": numpy.arange(12, dtype=numpy.float32).reshape(3, 4),
    "l1/b": numpy.ones(3, numpy.float32),
    "t": numpy.array(7),
}


def npz(save):
    """The bytes that one of numpy's functions makes of the arrays."""
    file = io.BytesIO()
    save(file, **ARRAYS)
    return file.getvalue()


FILES = [npz(numpy.savez), npz(numpy.savez_compressed)]


@pytest.mark.parametrize("content", FILES)
def test_every_array_is_read(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    arrays = read_npz(tmp_path / "file")
    assert arrays.keys() == ARRAYS.keys()
    for key, array in ARRAYS.items():
        numpy.testing.assert_array_equal(arrays[key], array)
        assert arrays[key].dtype == array.dtype


@pytest.mark.long
@pytest.mark.parametrize("content", FILES)
@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF])
def test_a_damaged_byte_anywhere_raises_nothing_but_its_own_error(tmp_path, content, bits):
    refused = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= bits
        (tmp_path / "file").write_bytes(damaged)
        try:
            read_npz(tmp_path / "file")
        except NpzError as error:
            refused += 1
            assert "\n" not in str(error)
            assert not str(error).endswith("()")
    # The checksums of a zip cover the arrays, but not the dates, for example.
    assert refused > len(content) / 4


@pytest.mark.parametrize(
    "header", ["{'shape': (", "{'descr': '<f4'}", "\0", "(" * 9_000, "x" * 20_000]
)
def test_a_header_of_rubbish_is_refused(tmp_path, header):
    text = header.encode()
    member = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text
    with zipfile.ZipFile(tmp_path / "file", "w") as file:
        file.writestr("t.npy", member)
    with pytest.raises(NpzError, match="cannot be read") as caught:
        read_npz(tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_numpys_advice_to_load_pickles_is_not_passed_on(tmp_path):
    (tmp_path / "text").write_text("not an npz\n")
    with pytest.raises(NpzError, match="is not a Chainer npz"):
        read_npz(tmp_path / "text")
    numpy.savez(tmp_path / "objects.npz", t=numpy.array([{}]))
    with pytest.raises(NpzError, match="a pickled object") as caught:
        read_npz(tmp_path / "objects.npz")
    assert "allow_pickle" not in str(caught.value)


def test_a_file_that_was_not_copied_completely_is_called_incomplete(tmp_path):
    numpy.savez(tmp_path / "whole.npz", a=numpy.arange(1000))
    content = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "part").write_bytes(content[: len(content) // 2])
    with pytest.raises(NpzError, match="^cannot be read as a Chainer npz .it is incomplete or"):
        read_npz(tmp_path / "part")


def test_a_missing_file_is_told_from_a_damaged_one(tmp_path):
    with pytest.raises(NpzError, match="does not exist"):
        read_npz(tmp_path / "file")


def test_a_folder_is_named_as_one(tmp_path):
    with pytest.raises(NpzError, match="^is a folder, not a file$"):
        read_npz(tmp_path)


def test_headers_have_names_shapes_and_dtypes_and_unpack_nothing_large(tmp_path):
    large = numpy.ones((300, 1000), numpy.float16)
    numpy.savez_compressed(tmp_path / "file.npz", large=large, name=numpy.array("policy"))
    headers = read_headers(tmp_path / "file.npz")
    assert (headers["large"].shape, headers["large"].dtype) == (large.shape, large.dtype)
    assert headers["large"].strides == (0, 0)
    assert str(headers["name"]) == "policy"


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    numpy.savez_compressed(tmp_path / "file.npz", a=numpy.zeros((1 << 27) + 1, numpy.uint8))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it is unpacked"))
    for read in (read_npz, read_headers):
        with pytest.raises(NpzError, match=r"its [0-9,]+ bytes unpack to 134,217,\d+$"):
            read(tmp_path / "file.npz")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_another_compression_is_refused(tmp_path, compression):
    with zipfile.ZipFile(tmp_path / "file", "w", compression) as file:
        file.writestr("t.npy", b"")
    with pytest.raises(NpzError, match="another compression"):
        read_npz(tmp_path / "file")


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(-1,)", "(-1, -3)", "(2, 1)", "()"])
def test_a_shape_that_does_not_fit_its_bytes_is_refused(tmp_path, shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    member = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 12
    with zipfile.ZipFile(tmp_path / "file", "w") as file:
        file.writestr("t.npy", member)
    with pytest.raises(NpzError, match="does not fit its"):
        read_headers(tmp_path / "file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(NpzError, match="it is a device or a pipe; name a file"):
            read_npz(path)
