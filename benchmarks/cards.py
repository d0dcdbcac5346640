"""The cards of the embedded models, measured on more problems than training could afford.

    python -m benchmarks.cards                      mini-llada and mini-dreamon, 300 validation problems of each task
    python -m benchmarks.cards --models mini-llada --problems 1000

Decodes the finished checkpoint as its recipe's validation does, appends the figures to the end of its training log, and
writes the card anew.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from soar_dlm.models.embedded import SHIPPED
from soar_dlm.train.folder import RunFolder
from soar_dlm.train.model_card import write_card
from soar_dlm.train.recipe import read_recipe
from soar_dlm.train.validation import log_entry, validate

RECIPES = Path(__file__).parent.parent / "recipes"


def measure(model: str, problems: int) -> None:
    recipe = read_recipe(RECIPES / f"{model}.toml")
    folder = RunFolder(SHIPPED / model)
    step = max(int(entry.get("step", 0)) for entry in folder.entries())
    found = validate(folder.path, recipe, step, torch.device("cpu"), problems)
    folder.append_log(log_entry(found))
    write_card(folder, recipe, parameters(folder.path), step)
    print((folder.path / "README.md").read_text(encoding="utf-8"))


def parameters(folder: Path) -> int:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        return sum(weights.get_tensor(name).numel() for name in weights.keys())  # noqa: SIM118


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mini-llada,mini-dreamon", help="names separated by commas")
    parser.add_argument("--problems", type=int, default=300, help="validation problems of each task")
    given = parser.parse_args()
    for model in given.models.split(","):
        measure(model, given.problems)


if __name__ == "__main__":
    main()
