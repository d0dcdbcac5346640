"""Does the committed recipe still make the shipped model?

    python -m benchmarks.retrain --steps 200

Trains from scratch with the committed recipe for its first steps, in a folder of its own, and compares the losses with
those in the log of the shipped model. On the processor and with the number of threads of the log they come out the
same to the last digit; elsewhere rounding differs, and differences grow slowly with the steps.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from soar_dlm.train.processor import avoid_forbidden_instructions

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", type=Path, default=ROOT / "recipes" / "mini-llada.toml")
    parser.add_argument("--model", type=Path, default=ROOT / "src" / "soar_dlm" / "models" / "shipped" / "mini-llada")
    parser.add_argument("--steps", type=int, default=200)
    asked = parser.parse_args()
    avoid_forbidden_instructions()

    from soar_dlm.train.folder import RunFolder
    from soar_dlm.train.recipe import read_recipe
    from soar_dlm.train.trainer import Progress, Trainer

    recipe = read_recipe(asked.recipe)
    every = recipe.report.log
    logged = {entry["step"]: entry["loss"] for entry in RunFolder(asked.model).entries() if "loss" in entry}
    largest, losses = 0.0, []
    print("step   logged     again      difference")
    with tempfile.TemporaryDirectory() as folder:
        for event in Trainer(recipe, folder, device="cpu").run(asked.steps):
            if not isinstance(event, Progress):
                continue
            losses.append(event.loss)
            if event.step % every == 0:
                again = sum(losses[-every:]) / every
                difference = abs(again - logged[event.step])
                largest = max(largest, difference)
                print(f"{event.step:4} {logged[event.step]:10.6f} {again:10.6f} {difference:12.6f}", flush=True)
    print(f"largest difference over {asked.steps} steps: {largest:.6f}")


if __name__ == "__main__":
    main()
