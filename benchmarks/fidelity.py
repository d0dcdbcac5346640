"""How closely the library follows the authors' own code: python -m benchmarks.fidelity

Four small checkpoints in the layouts of LLaDA-8B and Dream-7B, with the logits and the 144 decodings that the authors'
code produced for them (tests/goldens), in float32 on the CPU. And mini-llada, against the same weights in transformers'
own Llama class, with full attention.
"""

from __future__ import annotations

from tests.test_goldens import MODELS, decoded, decoded_together, logit_difference, rows_of
from tests.test_mini_llada import MEASURED, both_logits

from soar_dlm.lm import load


def main() -> None:
    print("| checkpoint | logits, largest difference | with padding | decodings, one at a time | in one batch |")
    print("|---|---|---|---|---|")
    for name in MODELS:
        expected = [row["output"] for row in rows_of(name)]
        alone = sum(decoded([row], name)[0] == row["output"] for row in rows_of(name))
        together = sum(found == output for found, output in zip(decoded_together(name), expected, strict=True))
        differences = f"{logit_difference(name, 0):.1e} | {logit_difference(name, 5):.1e}"
        print(f"| {name} | {differences} | {alone} of {len(expected)} | {together} of {len(expected)} |")
    print("\n| mini-llada and transformers' Llama | largest logit | largest difference |")
    print("|---|---|---|")
    lm = load("mini-llada", device="cpu")
    for name in MEASURED:
        found, expected_logits = both_logits(lm, name)
        largest, difference = expected_logits.abs().max(), (found - expected_logits).abs().max()
        print(f"| a problem of {name} | {largest:.1f} | {difference:.1e} |")


if __name__ == "__main__":
    main()
