"""Does the committed recipe still make the shipped model?

    python -m benchmarks.retrain                          mini-llada, 200 steps
    python -m benchmarks.retrain --model mini-dreamon

Trains the first steps of the committed recipe from scratch, in a temporary folder, and compares the losses with those
in the log of the shipped model. Compiled kernels on several threads add numbers in an order that differs from run to
run, even on one machine: the first losses agree to about six digits, and the differences grow with the steps.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from soar_dlm.train.processor import avoid_forbidden_instructions

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada", choices=["mini-llada", "mini-dreamon"])
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    avoid_forbidden_instructions()

    from soar_dlm.models.embedded import embedded_folder
    from soar_dlm.train.folder import RunFolder
    from soar_dlm.train.recipe import read_recipe
    from soar_dlm.train.trainer import Progress, Trainer

    recipe = read_recipe(ROOT / "recipes" / f"{given.model}.toml")
    every = recipe.report.log
    if given.steps < every:
        raise SystemExit(f"retrain: losses are logged every {every} steps; ask for at least that many.")
    shipped = RunFolder(Path(embedded_folder(given.model) or ""))
    logged = {entry["step"]: entry["loss"] for entry in shipped.entries() if "loss" in entry}
    differences, losses = [], list[float]()
    print("step   logged     again      difference")
    with tempfile.TemporaryDirectory() as folder:
        for event in Trainer(recipe, folder, device="cpu").run(given.steps):
            if not isinstance(event, Progress):
                continue
            losses.append(event.loss)
            if event.step % every == 0:
                again = sum(losses[-every:]) / every
                difference = abs(again - logged[event.step])
                differences.append(difference)
                print(f"{event.step:4} {logged[event.step]:10.6f} {again:10.6f} {difference:12.6f}", flush=True)
    print(f"over {given.steps} steps: median difference {median(differences):.6f}, largest {max(differences):.6f}")


if __name__ == "__main__":
    main()
