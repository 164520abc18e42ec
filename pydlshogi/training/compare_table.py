"""The table of a comparison, in Markdown and as tab-separated values."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pydlshogi.training.log import Curve

#: Number of log points at the end of training whose mean is compared, as published.
LAST_POINTS = 20


@dataclass(frozen=True)
class Row:
    """The results of a recipe.

    Attributes:
        name: Its name.
        parameters: Number of parameters of the network.
        seconds: Time of training, including evaluations and saves.
        curve: Its log.
        has_policy: Whether the network has a policy head.
    """

    name: str
    parameters: int
    seconds: float
    curve: Curve
    has_policy: bool = True

    @property
    def columns(self) -> dict[str, float | None]:
        """The figures by column name; None for a figure that the network does not have."""
        return {
            "parameters": self.parameters,
            "seconds": self.seconds,
            **self._policy_columns(),
            **self._value_columns(),
        }

    def _policy_columns(self) -> dict[str, float | None]:
        names = ("train_loss", "test_accuracy", "whole_test_loss", "whole_test_accuracy")
        if not self.has_policy:
            return dict.fromkeys(names)
        last = self.curve.progress[-LAST_POINTS:]
        end = self.curve.epochs[-1]
        losses = [p.loss if p.policy_loss is None else p.policy_loss for p in last]
        test_loss = end.test_loss if end.test_policy_loss is None else end.test_policy_loss
        figures = (
            statistics.fmean(losses) if last else None,
            statistics.fmean(p.accuracy for p in last) if last else None,
            test_loss,
            end.test_accuracy,
        )
        return dict(zip(names, figures))

    def _value_columns(self) -> dict[str, float | None]:
        end = self.curve.epochs[-1]
        loss, accuracy = end.test_value_loss, end.test_value_accuracy
        if not self.has_policy:
            loss, accuracy = end.test_loss, end.test_accuracy
        return {"whole_test_value_loss": loss, "whole_test_value_accuracy": accuracy}


# Head of each column in Markdown.
_HEADS = {
    "train_loss": "train loss",
    "test_accuracy": "test accuracy",
    "whole_test_loss": "test loss",
    "whole_test_accuracy": "accuracy, whole test set",
    "whole_test_value_loss": "value loss",
    "whole_test_value_accuracy": "value accuracy",
}


def format_markdown(rows: Sequence[Row], caption: str) -> str:
    """Formats a Markdown table with a caption below; columns without figures are left out."""
    shown = {
        name: head
        for name, head in _HEADS.items()
        if "value" not in name or any(row.columns[name] is not None for row in rows)
    }
    heads = ["recipe", "parameters", "time", *shown.values()]
    lines = [f"| {' | '.join(heads)} |", "|:--" + "|--:" * (len(heads) - 1) + "|"]
    for row in rows:
        cells = [row.name, f"{row.parameters:,}", _hours(row.seconds)]
        cells += [_decimals(row.columns[name]) for name in shown]
        lines.append(f"| {' | '.join(cells)} |")
    explanation = (
        f"Train loss and test accuracy: means of the last {LAST_POINTS} log points. Test loss "
        "and the columns after it: the whole test set at the end."
    )
    return "\n".join([*lines, "", f"{caption} {explanation}", ""])


def format_tsv(rows: Sequence[Row]) -> str:
    """Formats tab-separated values with all decimals; a missing figure is empty."""
    lines = [["recipe", *rows[0].columns]] if rows else []
    for row in rows:
        cells = ("" if value is None else repr(value) for value in row.columns.values())
        lines.append([row.name, *cells])
    return "".join("\t".join(line) + "\n" for line in lines)


def _hours(seconds: float) -> str:
    """Formats a time as 0:37:48."""
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


def _decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
