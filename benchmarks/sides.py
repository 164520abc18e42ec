"""What the benchmarks with several sides share: a process of its own for each side."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import openblas  # noqa: F401  (the sides inherit its environment)


class Side:
    """A process that runs one side's tasks on request.

    Args:
        name: Of the side, given to the worker; those of "torch" do not see pydlshogi.
        python: The interpreter.
        worker: The script that answers a JSON object a line with one a line.
        *arguments: For the worker, after the name.
        **variables: For its environment.
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
            raise SystemExit(f"side {self.name} ended without an answer; its error is above.")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def processor() -> str:
    """Names the processor, as far as Linux tells."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"
