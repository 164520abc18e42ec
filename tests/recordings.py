"""Recordings in tests: on a CPU, and where a GPU must record."""

import numpy

from pydlshogi.layers.gpu import recording


def must_record():
    """Says whether CuPy records; the stand-in does not."""
    import cupy

    return not hasattr(cupy, "IS_STAND_IN")


def repeat_on_cpu(monkeypatch):
    """Lets recordings repeat their functions in numpy."""

    def record(self):
        self._result = _with_arrays(self._function())
        self._graph = _Graph(self._function, self._result)

    monkeypatch.setattr(recording.Recording, "_record", record)
    monkeypatch.setattr(recording.Memory, "__init__", lambda self: None)


class _Graph:
    """Repeats a function, and writes its arrays into those of the recorded result."""

    def __init__(self, function, result):
        self._function = function
        self._arrays = list(_arrays(result))
        for array in self._arrays:
            array.fill(7)  # recording computes nothing

    def launch(self):
        for array, new in zip(self._arrays, _arrays(_with_arrays(self._function()))):
            array[...] = new


def _with_arrays(result):
    """Makes arrays of numpy's scalars; a GPU has arrays only."""
    if isinstance(result, numpy.generic):
        return numpy.array(result)
    if isinstance(result, dict):
        return {key: _with_arrays(part) for key, part in result.items()}
    if isinstance(result, (list, tuple)):
        return type(result)(map(_with_arrays, result))
    return result


def _arrays(result):
    if isinstance(result, numpy.ndarray):
        yield result
    elif isinstance(result, (dict, list, tuple)):
        for part in result.values() if isinstance(result, dict) else result:
            yield from _arrays(part)
