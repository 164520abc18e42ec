"""The table of a comparison, as Markdown to read and as tab-separated values to reckon with."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pydlshogi.training.log import Curve

#: Log points at the end of training whose means are compared, as the publication does.
LAST_POINTS = 20


@dataclass(frozen=True)
class Row:
    """What training made of a network.

    Attributes:
        name: Its name, or its recipe's.
        parameters: How many numbers it learns.
        seconds: How long training took, evaluations and saves included.
        curve: Its log.
    """

    name: str
    parameters: int
    seconds: float
    curve: Curve

    @property
    def columns(self) -> dict[str, float | None]:
        """The figures by the names of their columns; None where there is none."""
        last = self.curve.progress[-LAST_POINTS:]
        end = self.curve.epochs[-1]
        return {
            "parameters": self.parameters,
            "seconds": self.seconds,
            "train_loss": statistics.fmean(p.loss for p in last) if last else None,
            "test_accuracy": statistics.fmean(p.accuracy for p in last) if last else None,
            "whole_test_loss": end.test_loss,
            "whole_test_accuracy": end.test_accuracy,
            "whole_test_value_loss": end.test_value_loss,
            "whole_test_value_accuracy": end.test_value_accuracy,
        }


def format_markdown(rows: Sequence[Row], caption: str, kind: str = "network") -> str:
    """Writes a table for people.

    Args:
        rows: The networks.
        caption: A sentence on what they were trained with.
        kind: Head of the first column.
    """
    heads = [kind, "parameters", "time", "train loss", "test accuracy", "test loss"]
    heads += ["accuracy, whole test set"]
    values = any(row.columns["whole_test_value_loss"] is not None for row in rows)
    if values:
        heads += ["value loss", "value accuracy"]
    lines = [f"| {' | '.join(heads)} |", "|:--" + "|--:" * (len(heads) - 1) + "|"]
    for row in rows:
        figures = row.columns
        cells = [row.name, f"{row.parameters:,}", _hours(row.seconds)]
        cells += [
            _decimals(figures[name])
            for name in ("train_loss", "test_accuracy", "whole_test_loss", "whole_test_accuracy")
        ]
        if values:
            cells += [_decimals(figures["whole_test_value_loss"])]
            cells += [_decimals(figures["whole_test_value_accuracy"])]
        lines.append(f"| {' | '.join(cells)} |")
    explanation = (
        f"Train loss and test accuracy: means of the last {LAST_POINTS} log points. Test loss "
        "and the columns after it: the whole test set at the end."
    )
    return "\n".join([*lines, "", f"{caption} {explanation}", ""])


def format_tsv(rows: Sequence[Row], kind: str = "network") -> str:
    """Writes a table for programs: every figure as it is, empty where there is none."""
    lines = [[kind, *rows[0].columns]] if rows else []
    for row in rows:
        cells = ("" if value is None else repr(value) for value in row.columns.values())
        lines.append([row.name, *cells])
    return "".join("\t".join(line) + "\n" for line in lines)


def _hours(seconds: float) -> str:
    """Writes a time as 0:37:48."""
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


def _decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
