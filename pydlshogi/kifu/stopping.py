"""Ends the jobs of reading threads early: Ctrl-C must not wait for a batch of slow records."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Callable, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_thread = threading.local()


class Stopped(BaseException):
    """Reading was ended while a job was going on."""


def run(job: Callable[[], _Result], stop: threading.Event) -> _Result:
    """Runs a job on this thread, which belongs to the caller, until ``stop`` is set."""
    _thread.stop = stop
    return job()


def check() -> None:
    """Raises :class:`Stopped` in a job that must stop. What takes long calls it again and again."""
    stop = getattr(_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


def watched(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yields items, and calls :func:`check` now and then: for many short steps."""
    for number, item in enumerate(items):
        if not number & 255:
            check()
        yield item
