"""Inputs that exercise a pipeline, and its own evaluation of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from soar_dlm.tasks.mini_code_operations import LETTERS, Type
from soar_dlm.tasks.mini_code_styles import Step

FIRST_CASES, MOST_CASES = 8, 12
TRIES = 6
MOST_ITEMS = 60
LARGEST = 10**9
NUMBERS = range(-12, 25)
ITEMS = (1, 2, 2, 3, 4, 5, 6, 7, 8)
EMPTY: dict[Type, Any] = {"ints": [], "words": [], "str": "", "int": 0}
ALPHABET = (*LETTERS * 3, *"bcdfghklmpuvwyz", *"AEINRST")


class TooLarge(Exception):
    """An intermediate value is too long or too large to be a sensible case."""


def evaluate(steps: Sequence[Step], value: Any) -> Any:
    """What the pipeline makes of ``value``."""
    for operation, constants in steps:
        if operation.role == "guard":
            if operation.apply(value, constants):
                return constants[-1]
            continue
        if operation.takes == "int" and operation.gives == "ints" and value > MOST_ITEMS:
            raise TooLarge
        value = operation.apply(value, constants)
        if operation.gives == "int" and not -LARGEST < value < LARGEST:
            raise TooLarge
    return value


def draw_input(takes: Type, near: Sequence[int], rng: random.Random) -> Any:
    """An input of type ``takes``, whose numbers are often close to one of ``near``."""
    if takes == "str":
        return ("  " if rng.random() < 0.1 else " ").join(_words(rng))
    if takes == "words":
        return _words(rng)
    if takes == "int":
        return rng.choice(near) if near and rng.random() < 0.4 else rng.randrange(-6, 14)
    numbers = rng.choices(NUMBERS, k=rng.choice(ITEMS))
    for at in range(len(numbers)):
        chance = rng.random()
        if chance < 0.15:
            numbers[at] = numbers[0]
        elif near and chance < 0.4:
            numbers[at] = rng.choice(near)
    return numbers


def _word_bank() -> tuple[str, ...]:
    """Words of letters, and now and then one with a digit or a mark."""
    rng = random.Random(0)
    words = ("".join(rng.choices(ALPHABET, k=rng.choice((1, 2, 3, 4, 5, 6, 8)))) for _ in range(500))
    return (*words, *("7", "x1!", "a-b", "t", "no", "in") * 4)


WORDS = _word_bank()


def _words(rng: random.Random) -> list[str]:
    words = rng.choices(WORDS, k=rng.choice(ITEMS))
    return words + words[:2] if rng.random() < 0.2 else words


def draw_cases(steps: Sequence[Step], rng: random.Random) -> list[list[Any]] | None:
    """Cases ``[[input], expected]`` that reveal every operation and every number of the pipeline, or None.

    An operation is revealed if leaving it out changes an answer, a number if adding one to it does. Where the first
    inputs do not reveal a part, a few more are tried; a part that stays hidden may well make no difference at all.
    """
    takes = steps[0][0].takes
    numbers = [constant for _, constants in steps for constant in constants if isinstance(constant, int)]
    near = [number + offset for number in numbers for offset in (-1, 0, 1)]
    try:
        inputs = [EMPTY[takes], *(draw_input(takes, near, rng) for _ in range(FIRST_CASES - 1))]
        cases = [(value, evaluate(steps, value)) for value in inputs]
        last = steps[-1][0]
        fewest = 2 if last.gives == "bool" or last.role == "choose" else 4
        if len({repr(answer) for _, answer in cases}) < fewest:
            return None
        for variant in _variants(steps):
            if any(evaluate(variant, value) != answer for value, answer in reversed(cases)):
                continue
            found = _showing(steps, variant, (draw_input(takes, near, rng) for _ in range(TRIES)))
            if found is None or len(cases) == MOST_CASES:
                return None
            cases.append(found)
    except TooLarge:
        return None
    return [[[value], answer] for value, answer in cases]


def _showing(steps: Sequence[Step], variant: Sequence[Step], inputs: Iterable[Any]) -> tuple[Any, Any] | None:
    """The first input on which the two pipelines differ, with the answer of the first."""
    for value in inputs:
        answer = evaluate(steps, value)
        if evaluate(variant, value) != answer:
            return value, answer
    return None


def _variants(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """The pipeline without each operation that can be left out, and with each number one larger."""
    for at, (operation, constants) in enumerate(steps):
        before, after = list(steps[:at]), list(steps[at + 1 :])
        if operation.takes == operation.gives:
            yield before + after
        for place, constant in enumerate(constants):
            if isinstance(constant, int):
                changed = (*constants[:place], constant + 1, *constants[place + 1 :])
                yield [*before, (operation, changed), *after]
