"""What smaller numbers and compiled kernels save on a processor, and what they cost in accuracy.

    python -m benchmarks.precision                     about 20 minutes on one thread
    python -m benchmarks.precision --problems 0        the time alone
    python -m benchmarks.precision --threads 2

Time: a LLaDA-shaped model with random weights (soar_dlm.bench.shape) decodes a long prompt with each kind of numbers in
turns, with and without the dual cache. Accuracy: mini-llada on test problems that need no judge of code, with the
thresholds of its defaults. int8 weights are torchao's, which has to be installed: pip install torchao.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from statistics import median
from typing import Any

import torch
from torch import nn

from benchmarks.pages import RESULTS, conditions, table, write
from soar_dlm.bench.entrants import Decoder
from soar_dlm.bench.shape import Shape, random_model
from soar_dlm.bench.workload import Workload, random_prompts
from soar_dlm.evals.statistics import mcnemar, wilson_interval
from soar_dlm.lm import LM, load
from soar_dlm.models.running import TransformersLM
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.solving import solve
from soar_dlm.tasks.catalogue import make_task

PROMPT, CANVAS, BLOCK, ROUNDS = 512, 32, 32, 3
TASKS, THRESHOLD = ("mini-gsm", "mini-sudoku"), 0.999
KINDS: Mapping[str, Mapping[str, Any]] = {
    "float32": {},
    "float32, compiled": {"compile": True},
    "bfloat16": {"dtype": "bfloat16"},
    "int8 weights": {"int8": True},
}
PAGE, TITLE = RESULTS / "precision.md", "Smaller numbers"
TIMED = (
    f"Random weights of soar bench's shape, prompt {PROMPT}, canvas {CANVAS} in one block, greedy, one token per step; "
    f"in turns, the median of {ROUNDS} rounds. *MB* are the backbone's weights."
)
MEASURED = (
    f"mini-llada, Adaptive Parallel with tau = {THRESHOLD}, {{problems:,}} test problems of each task. Accuracy with "
    "its 95% interval; McNemar's exact test against float32, with the problems gained and lost."
)


def random_of(kind: str) -> TransformersLM:
    """The model with random weights, the same ones for every kind of numbers."""
    how = KINDS[kind]
    model = random_model(Shape(), 0, "cpu", how.get("dtype"))
    if how.get("int8"):
        from torchao.quantization import Int8WeightOnlyConfig, quantize_

        quantize_(model.backbone, Int8WeightOnlyConfig(), filter_fn=lambda module, _: isinstance(module, nn.Linear))
    if how.get("compile"):
        model.compile()
    return model


def loaded(kind: str) -> LM:
    """mini-llada with these numbers, loaded as anybody would."""
    how = dict(KINDS[kind])
    if how.pop("int8", False):
        from torchao.quantization import Int8WeightOnlyConfig
        from transformers import TorchAoConfig

        how["quantization_config"] = TorchAoConfig(Int8WeightOnlyConfig())
    return load("mini-llada", **how)


def weights(model: TransformersLM) -> int:
    """Bytes of the backbone's weights."""
    found = 0
    for weight in model.backbone.parameters():
        parts = [getattr(weight, name) for name in getattr(weight, "tensor_data_names", [])] or [weight]
        found += sum(part.numel() * part.element_size() for part in parts)
    return found


def times() -> str:
    """Seconds of each kind in turns, over those of float32 in the same round."""
    models = {kind: random_of(kind) for kind in KINDS}
    canvas = Workload(random_prompts(models["float32"].facts, 1, PROMPT, False, 0), CANVAS, BLOCK)
    decode = {
        cache: Decoder(cache, Greedy(), {"cache": cache} if cache != "none" else {}) for cache in ("none", "dual")
    }
    seconds = {(kind, cache): list[float]() for kind in KINDS for cache in decode}
    for kind, cache in seconds:
        decode[cache].decode(models[kind], canvas)  # kernels are compiled, pages are fetched
    for number in range(ROUNDS):
        turns = list(seconds)
        for kind, cache in [*turns[number:], *turns[:number]]:
            started = time.perf_counter()
            decode[cache].decode(models[kind], canvas)
            seconds[kind, cache].append(time.perf_counter() - started)
    rows = []
    for kind in KINDS:
        cells = [kind, f"{weights(models[kind]) / 1e6:,.0f}"]
        for cache in decode:
            own, base = seconds[kind, cache], seconds["float32", cache]
            gain = median(theirs / mine for mine, theirs in zip(own, base, strict=True))
            cells += [f"{1000 * median(own) / CANVAS:.0f}", f"{gain:.2f}"]
        rows.append(cells)
    head = ["numbers", "MB", *(f"{cache}: {one}" for cache in decode for one in ("ms per step", "speed-up"))]
    return table(head, rows)


def accuracy(problems: int) -> str:
    """Right answers with each kind of numbers, against float32."""
    rows = []
    for name in TASKS:
        task = make_task(name)
        asked = task.distinct("test", problems)
        right: dict[str, list[bool]] = {}
        for kind in KINDS:
            if not KINDS[kind].get("compile"):
                answers = solve(loaded(kind), task, asked, AdaptiveParallel(THRESHOLD), trace=False)
                right[kind] = [task.correct(*pair) for pair in zip(asked, (one.text for one in answers), strict=True)]
        for kind, own in right.items():
            low, high = wilson_interval(sum(own), len(own))
            test = mcnemar(own, right["float32"])
            told = "" if kind == "float32" else f"{test.p_value:.3f} (+{test.first_only}/-{test.second_only})"
            rows.append([name, kind, f"{sum(own) / len(own):.1%} ({low:.1%} to {high:.1%})", told])
    return table(["task", "numbers", "accuracy", "p (gained, lost)"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000, help="test problems of each task; 0 measures time alone")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    title = f"Time, {given.threads} thread{'s' if given.threads > 1 else ''}"
    made = times()
    write(PAGE, TITLE, title, f"{TIMED} {conditions()}\n\n{made}")
    print(made)
    if given.problems:
        made = accuracy(given.problems)
        told = MEASURED.format(problems=given.problems)
        write(PAGE, TITLE, "Accuracy", f"{told} {conditions()}\n\n{made}")
        print(made)


if __name__ == "__main__":
    main()
