"""A first look: one model, a few prompts, every strategy of the paper side by side.

The model is an embedded one with random weights, in LLaDA's on-disk layout: it writes nonsense, but everything that
happens is what happens with GSAI-ML/LLaDA-8B-Base.
"""

from __future__ import annotations

import time

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import soar_dlm as soar

MODEL = "random-llada"
PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):",
    "Natalia sold clips to 48 of her friends in April",
    "1, 2, 3,",
]
STRATEGIES = {
    "greedy": soar.Greedy(),
    "greedy, n=2": soar.Greedy(tokens_per_step=2),
    "adaptive": soar.AdaptiveParallel(threshold=0.8),
    "PBS, K=2": soar.PositionBeam(beam=2),
    "PBS, K=2, n=2": soar.PositionBeam(beam=2, tokens_per_step=2),
    "SOAR, K=2": soar.Soar(beam=2, threshold=0.8),
    "SOAR, K=4": soar.Soar(beam=4, threshold=0.8),
}


def main() -> None:
    console = Console()
    lm = soar.load(MODEL)
    console.print(f"[bold]{MODEL}[/bold]: random weights, so the text is noise; the search is real.\n", highlight=False)

    console.print("A canvas of 48 masked positions filling up (SOAR, every 8th step):", highlight=False)
    for event in lm.stream(PROMPTS[0], STRATEGIES["SOAR, K=2"], max_new_tokens=48, early_exit=False):
        if event.step % 8 == 1 or event.result is not None:
            shown = "".join(sign if sign.isprintable() else "." for sign in event.text.replace("\ufffd", "."))
            console.print(f"  step {event.step:2}  {escape(shown)}", highlight=False)

    title = f"\n{len(PROMPTS)} prompts, 64 positions each, decoded in one batch"
    table = Table(title=title, title_justify="left", title_style="", box=SIMPLE_HEAD)
    table.add_column("strategy")
    for column in ("steps", "forwards", "tokens/forward", "confidence", "seconds"):
        table.add_column(column, justify="right")
    for name, strategy in STRATEGIES.items():
        started = time.perf_counter()
        results = lm.generate(PROMPTS, strategy, max_new_tokens=64, early_exit=False)
        seconds = time.perf_counter() - started
        table.add_row(
            name,
            f"{sum(result.steps for result in results)}",
            f"{sum(result.forwards for result in results)}",
            f"{sum(result.tokens_per_forward for result in results) / len(results):.2f}",
            f"{sum(result.mean_confidence for result in results) / len(results):.3f}",
            f"{seconds:.2f}",
        )
    console.print(table)
    console.print("\nNext: soar generate --help, or soar models for what else can be loaded.", highlight=False)


if __name__ == "__main__":
    main()
