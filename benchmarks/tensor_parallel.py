"""What it costs to split a model over processes: seconds per step in one process and in several, in turns.

    python -m benchmarks.tensor_parallel                    2 processes, about two minutes
    python -m benchmarks.tensor_parallel --processes 4 --shape hidden=1024,layers=16 --rounds 5

A model of LLaDA's kind with random weights fills a canvas behind a prompt; all must write the same tokens. Every
process has as many threads as this one, so set OMP_NUM_THREADS. Processes that share the memory of one machine show
what the exchange costs, not what is gained where each has a device of its own.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from soar_dlm.bench.shape import Shape, random_model
from soar_dlm.evals.provenance import machine_line
from soar_dlm.files import write_json
from soar_dlm.lm import LM, load
from soar_dlm.models.families import LLADA
from soar_dlm.models.layouts import save_weights, saved_names

SMALL = "hidden=512,layers=8,heads=8,inner=1536,vocab=8192"


def checkpoint(folder: Path, shape: Shape) -> Path:
    """Random weights of this shape, as a folder in the published layout."""
    model = random_model(shape, 0, "cpu")
    weights = {f"model.{name}": weight for name, weight in model.backbone.state_dict().items()}
    weights["lm_head.weight"] = model._rest.lm_head.weight
    save_weights(folder, {name: weight.detach() for name, weight in saved_names(LLADA, weights).items()})
    config = {
        "model_type": "llada",
        "d_model": shape.hidden,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "mlp_hidden_size": shape.inner,
        "vocab_size": shape.vocab,
        "max_sequence_length": shape.context,
        "rope_theta": 500000.0,
        "mask_token_id": shape.mask_id,
    }
    write_json(folder / "config.json", config)
    return folder


def turn(lm: LM, canvases: list[list[int]], **options: Any) -> tuple[float, list[list[int]]]:
    """Seconds per step, and what was written."""
    start = time.perf_counter()
    results = lm.decode(canvases, "greedy", early_exit=False, **options)
    seconds = time.perf_counter() - start
    return seconds / max(result.steps for result in results), [result.token_ids for result in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--shape", default=SMALL)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--canvas", type=int, default=16)
    parser.add_argument("--rows", default="1,4", help="requests in a batch")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    shape = Shape.read(asked.shape)
    with tempfile.TemporaryDirectory() as made:
        folder = checkpoint(Path(made), shape)
        one = load(folder, device="cpu")
        start = time.perf_counter()
        with closing(load(folder, device="cpu", tensor_parallel=asked.processes)) as split:
            print(f"{shape}; prompt {asked.prompt}, canvas {asked.canvas}; {machine_line()}")
            print(f"starting {asked.processes} processes and loading: {time.perf_counter() - start:.1f} s")
            for count in map(int, asked.rows.split(",")):
                prompts = np.random.default_rng(0).integers(shape.mask_id, size=(count, asked.prompt)).tolist()
                canvases = [prompt + [shape.mask_id] * asked.canvas for prompt in prompts]
                times: dict[str, list[float]] = {"one": [], "split": []}
                for _ in range(asked.rounds):
                    (own, tokens), (theirs, same) = turn(one, canvases), turn(split, canvases)
                    assert tokens == same, "the processes write something else"
                    times["one"].append(own)
                    times["split"].append(theirs)
                own, theirs = median(times["one"]), median(times["split"])
                print(
                    f"{count} rows: {1000 * own:.1f} ms per step in one process, {1000 * theirs:.1f} in "
                    f"{asked.processes}: {own / theirs:.2f} times as fast"
                )


if __name__ == "__main__":
    main()
