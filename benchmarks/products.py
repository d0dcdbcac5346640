"""How fast the processor multiplies, by the number of rows, with matrices as they are and laid out once.

    python -m benchmarks.products               with one thread and with two, two minutes on a quiet machine
    python -m benchmarks.products --threads 4   with four

The matrices are those of soar bench's shape. A step reads 32 columns of each canvas in the layers and half as many in
the head, so these tables say what a step of several canvases can save: what one canvas leaves of the processor's best.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from benchmarks.pages import RESULTS, conditions, table, write
from soar_dlm.bench.shape import Shape
from soar_dlm.models.packed import PackedHead, laid_out, multiply

PAGE, TITLE = RESULTS / "products.md", "Products of few rows"
ROWS = (4, 8, 16, 32, 64, 128, 512)
LARGE = 2048
ROUNDS = 9


def gigaflops(work: Callable[[], Any], operations: float) -> float:
    """Billions of operations per second, at best."""
    work()
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return operations / best / 1e9


class Products:
    """The matrices of one layer and of the head, as they are and laid out."""

    def __init__(self, shape: Shape) -> None:
        hidden, inner = shape.hidden, shape.inner
        sizes = [(hidden, hidden)] * 4 + [(inner, hidden)] * 2 + [(hidden, inner)]
        self.plain = [torch.randn(size) for size in sizes]
        self.packed = [_laid_out(matrix) for matrix in self.plain]
        self.matrix = torch.randn(shape.vocab, hidden)
        self.head = PackedHead.of(self.matrix)

    def speeds(self, rows: int) -> list[float]:
        """Those of the layers and of the head, each as it is and laid out."""
        states = {size: torch.randn(rows, size) for size in {one.shape[1] for one in self.plain}}
        narrow, out = torch.randn(rows, self.matrix.shape[1]), torch.empty(rows, len(self.matrix))
        pairs = list(zip(self.plain, self.packed, strict=True))
        of_layers = sum(2 * rows * one.numel() for one in self.plain)
        of_head = 2 * rows * self.matrix.numel()
        assert self.head is not None  # the layers were laid out, and the head is larger
        head = self.head
        return [
            gigaflops(lambda: [linear(states[one.shape[1]], one) for one, _ in pairs], of_layers),
            gigaflops(lambda: [multiply(states[one.shape[1]], packed) for one, packed in pairs], of_layers),
            gigaflops(lambda: torch.mm(narrow, self.matrix.T, out=out), of_head),
            gigaflops(lambda: head.multiply(narrow, out), of_head),
        ]


def _laid_out(matrix: Tensor) -> Tensor:
    packed = laid_out(matrix)
    if packed is None:
        raise SystemExit("This processor or this build of PyTorch cannot lay matrices out.")
    return packed


def measured() -> str:
    square = torch.randn(LARGE, LARGE)
    ready = _laid_out(square)
    best = gigaflops(lambda: multiply(square, ready), 2 * LARGE**3)
    products = Products(Shape())
    rows = [[count, *(f"{speed:.0f} ({speed / best:.0%})" for speed in products.speeds(count))] for count in ROWS]
    names = ["rows", "layers", "layers, laid out", "head", "head, laid out"]
    told = f"Billions of operations per second, and of the {best:.0f} that a product of {LARGE:,} rows reaches."
    return f"{told} {conditions()}\n\n{table(names, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    for threads in parser.parse_args().threads:
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        text = measured()
        print(text, flush=True)
        write(PAGE, TITLE, f"{threads} thread{'s' if threads > 1 else ''}", text)


if __name__ == "__main__":
    main()
