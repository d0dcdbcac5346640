"""How closely the library follows the authors' own code: python -m benchmarks.fidelity

Four small checkpoints in the layouts of LLaDA-8B and Dream-7B, with the logits and the 144 decodings that the authors'
code produced for them (tests/goldens), in float32 on the CPU.
"""

from __future__ import annotations

from tests.test_goldens import MODELS, decoded, decoded_together, logit_difference, rows_of


def main() -> None:
    print("| checkpoint | logits, largest difference | behind padding | decodings, one at a time | in one batch |")
    print("|---|---|---|---|---|")
    for name in MODELS:
        expected = [row["output"] for row in rows_of(name)]
        alone = sum(decoded([row], name)[0] == row["output"] for row in rows_of(name))
        together = sum(found == output for found, output in zip(decoded_together(name), expected, strict=True))
        differences = f"{logit_difference(name, 0):.1e} | {logit_difference(name, 5):.1e}"
        print(f"| {name} | {differences} | {alone} of {len(expected)} | {together} of {len(expected)} |")


if __name__ == "__main__":
    main()
