"""What the engine costs on top of the model, and what it saves against the usual loop.

    python benchmarks/overhead.py                          the full table, about 25 minutes on two cores
    python benchmarks/overhead.py --canvas 32 --repeats 1  a quick look

A LLaDA-shaped model with random weights (hidden 512, 8 layers, vocabulary 126,464) fills a canvas on the CPU, float32.

*overhead*: time of the engine's steps over the time of the bare forward of the same rows: the backbone, and the head on
the very positions (and in the very slices) that the engine asked for. Each bare forward is timed right after its step;
each step counts with the fastest of its repeats. The bare forward is the model's own call, which takes fresh memory for
its logits; with --reuse it writes into memory that it keeps, as the engine does, and what is left is the search.

*speed-up*: time of a plain greedy loop, which runs the head and a softmax on every position of the row, over the time
of the engine's greedy steps. Steps alternate; both must write the same tokens.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from soar_dlm.bench.shape import Shape, random_model
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request
from soar_dlm.evals.provenance import machine_line
from soar_dlm.models.masked_lm import ModelFacts, Rows
from soar_dlm.models.running import TransformersLM
from soar_dlm.options import Options
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy

SHAPE, PROMPT = Shape(), 128
VOCABULARY, MASK = SHAPE.vocab, SHAPE.mask_id


@dataclass
class Recorder:
    """The model, with a note of what the last step asked of it."""

    model: TransformersLM
    kept: Tensor | None = None
    rows: Rows | None = None
    slices: list[int] = field(default_factory=list)

    @property
    def facts(self) -> ModelFacts:
        return self.model.facts

    @property
    def device(self) -> torch.device:
        return self.model.device

    def hidden(self, rows: Rows) -> Tensor:
        self.rows, self.slices = rows, []
        return self.model.hidden(rows)

    def head(self, hidden: Tensor, out: Tensor) -> None:
        self.slices.append(len(hidden))
        self.model.head(hidden, out)

    def replay(self) -> None:
        """The bare forward of the last step's rows."""
        assert self.rows is not None
        for part in torch.split(self.model.hidden(self.rows), self.slices):
            if self.kept is None:
                self.model.logits(part)
            else:
                self.model.head(part, self.kept[: len(part)])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def request(strategy: Strategy, canvas: int, block: int | None) -> Request:
    prompt = torch.randint(0, 126000, (PROMPT,), generator=torch.Generator().manual_seed(1)).tolist()
    fill = range(PROMPT, PROMPT + canvas)
    return Request([*prompt, *[MASK] * canvas], fill, strategy, Options(block_length=block, early_exit=False))


def overhead(
    model: TransformersLM, strategy: Strategy, canvas: int, repeats: int, kept: Tensor | None = None
) -> tuple[float, int, int]:
    """Engine time over bare forward time, with the number of steps and forwards."""
    recorder = Recorder(model, kept)
    spent: list[list[float]] = []
    bare: list[list[float]] = []
    for _ in range(repeats):
        engine = Engine(recorder)
        engine.add(request(strategy, canvas, None))
        spent.append([])
        bare.append([])
        forwards = 0
        while engine.busy:
            seconds, events = timed(engine.step)
            spent[-1].append(seconds)
            bare[-1].append(timed(recorder.replay)[0])
            forwards += events[0].record.forwards
    return best_of(spent) / best_of(bare), len(spent[0]), forwards


def best_of(runs: list[list[float]]) -> float:
    """Runs repeat the same steps; each step counts with its fastest time, the one that other work disturbed least."""
    return float(sum(map(min, zip(*runs, strict=True))))


@torch.inference_mode()
def plain_step(model: TransformersLM, ids: Tensor, is_masked: Tensor, low: int, high: int) -> None:
    """Greedy as usually written: logits and softmax everywhere, then the best masked position of the window."""
    states = model.backbone(input_ids=ids)[0]
    logits = model.logits(states[0])
    logits[:, MASK] = -torch.inf
    confidence, tokens = logits.softmax(-1).max(-1)
    eligible = is_masked.clone()
    eligible[:low] = eligible[high:] = False
    place = int(torch.where(eligible, confidence, -1.0).argmax())
    ids[0, place] = tokens[place]
    is_masked[place] = False


def speed_up(model: TransformersLM, canvas: int, block: int | None, repeats: int) -> float:
    """Plain greedy loop over the engine's greedy, step against step; raises if they disagree on a token."""
    asked = request(Greedy(), canvas, block)
    ours: list[list[float]] = []
    plain: list[list[float]] = []
    for _ in range(repeats):
        engine = Engine(model)
        engine.add(asked)
        ids = torch.tensor([asked.tokens])
        is_masked = torch.arange(ids.shape[1]) >= PROMPT
        ours.append([])
        plain.append([])
        for step in range(canvas):
            low = PROMPT + step // (block or canvas) * (block or canvas)
            seconds, events = timed(engine.step)
            ours[-1].append(seconds)
            plain[-1].append(timed(partial(plain_step, model, ids, is_masked, low, low + (block or canvas)))[0])
        if events[0].best.tokens.tolist() != ids[0].tolist():
            raise SystemExit("the engine and the plain loop disagree: the comparison is void")
    return best_of(plain) / best_of(ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canvas", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reuse", action="store_true", help="the bare forward keeps its memory for logits, too")
    settings = parser.parse_args()
    model = random_model(SHAPE, settings.seed, "cpu", sharpness=1.0)
    kept = torch.zeros(4 * settings.canvas, VOCABULARY) if settings.reuse else None
    overhead(model, Greedy(), 2, 1, kept)  # warm up
    print(f"{machine_line()}; prompt {PROMPT}, canvas {settings.canvas}, float32\n")
    print("| strategy | K | steps | forwards | engine / bare forward |\n|---|---|---|---|---|")
    strategies = {
        "Greedy": Greedy(),
        "Greedy, n = 2": Greedy(tokens_per_step=2),
        "Adaptive Parallel, tau = 0.5": AdaptiveParallel(threshold=0.5),
        "PBS": PositionBeam(beam=2),
        "PBS, n = 2": PositionBeam(beam=2, tokens_per_step=2),
        "SOAR, tau = 0.5": Soar(beam=2, threshold=0.5),
        "PBS, K = 4": PositionBeam(beam=4),
        "SOAR, K = 4, tau = 0.5": Soar(beam=4, threshold=0.5),
    }
    for name, strategy in strategies.items():
        ratio, steps, forwards = overhead(model, strategy, settings.canvas, settings.repeats, kept)
        print(f"| {name} | {strategy.beam} | {steps} | {forwards} | {ratio:.3f} |", flush=True)
    print("\n| greedy, against the plain loop | speed-up |\n|---|---|")
    for name, block in (("full canvas", None), ("blocks of 32", 32)):
        print(f"| {name} | {speed_up(model, settings.canvas, block, settings.repeats):.2f} |", flush=True)


if __name__ == "__main__":
    main()
