"""The process of a side, for benchmarks that compare several sides."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import openblas  # noqa: F401  (the sides inherit its environment)


class Side:
    """A process that runs tasks of one side on request.

    Args:
        name: Name of the side, the first argument of the worker. Sides whose name starts
            with "torch" cannot import pydlshogi.
        python: Python that runs the worker.
        worker: Script that answers each line of JSON with a line of JSON.
        *arguments: Further arguments of the worker.
        **variables: Environment variables of the worker.
    """

    def __init__(
        self, name: str, python: str, worker: Path, *arguments: str, **variables: str
    ) -> None:
        environment = {**os.environ, **variables}
        if not name.startswith("torch"):
            root = str(worker.parents[1])
            path = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = os.pathsep.join([root, path]) if path else root
        self.name = name
        self._process = subprocess.Popen(
            [python, str(worker), name, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, **request: Any) -> Any:
        """Sends a request and waits for the answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"The side {self.name} ended without an answer. Its error is above.")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # a side that has died does not read its last request
            self._process.stdin.close()
        self._process.wait()


def processor() -> str:
    """Returns the name of the processor, on Linux."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"
