"""Draws a figure for each shipped model from its log: loss and held-out accuracy over the run.

python docs/figures/make_loss_curve.py    (needs pip install 'soar-dlm[plots]')
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from soar_dlm.models.embedded import embedded_folder
from soar_dlm.train.folder import RunFolder

MODELS = ("mini-llada", "mini-dreamon")
COLOURS = {
    "mini-gsm": "#2f6fde",
    "mini-code": "#2e9d63",
    "mini-infill": "#2f6fde",
    "mini-sudoku": "#d9822b",
    "mini-sums": "#9aa5b1",
}
SMOOTHING = 0.9
TICKS = (0.2, 0.5, 1, 2, 5)


def smoothed(losses: list[float]) -> list[float]:
    return list(accumulate(losses, lambda before, loss: SMOOTHING * before + (1 - SMOOTHING) * loss))


def draw(model: str) -> None:
    entries = list(RunFolder(Path(embedded_folder(model) or "")).entries())
    steps = [entry["step"] for entry in entries if "loss" in entry]
    losses = [entry["loss"] for entry in entries if "loss" in entry]
    checks = [entry for entry in entries if "validation" in entry]
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(steps, losses, color="#cbd2d9", linewidth=0.7)
    left.plot(steps, smoothed(losses), color="#1f2933", linewidth=1.4)
    left.set(xlabel="step", ylabel="cross-entropy of masked tokens", yscale="log")
    left.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    left.minorticks_off()
    for task in checks[0]["validation"]:
        right.plot(
            [check["step"] for check in checks],
            [100 * check["validation"][task] for check in checks],
            color=COLOURS[task],
            label=task,
        )
    right.set(xlabel="step", ylabel="held-out accuracy, %", ylim=(0, 100))
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    with rc_context({"svg.hashsalt": model}):  # the same log draws the same file
        figure.savefig(Path(__file__).with_name(f"{model}.svg"), metadata={"Date": None})


def main() -> None:
    for model in MODELS:
        draw(model)


if __name__ == "__main__":
    main()
