"""How a mini-gsm problem is made: its numbers, sentences, solution lines and plan."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from soar_dlm.tasks import mini_gsm_words as words
from soar_dlm.tasks.mini_gsm_words import Form, Line, Theme

LARGEST = 50
LARGEST_PRODUCT = 48
SMALLEST = 2
"""No number is below two, so that every noun is a plural."""

MOST_STEPS = 5
UNIT_LEFT_OUT = 0.15
"""How often a solution line leaves out its unit."""

T = TypeVar("T")
Numbers = dict[str, int]


class Quantity(NamedTuple):
    """A number of the story and where it comes from: given (0) or the result of a step (1, 2, ...)."""

    value: int
    step: int = 0

    def __str__(self) -> str:
        return f"r{self.step}" if self.step else str(self.value)


class DeadEnd(Exception):
    """The numbers drawn so far allow no fitting next step."""


def pick(rng: random.Random, options: Sequence[T]) -> T:
    return options[int(rng.random() * len(options))]


def between(rng: random.Random, low: int, high: int) -> int:
    if high < low:
        raise DeadEnd
    return low + int(rng.random() * (high - low + 1))


def _factors(rng: random.Random, limit: int) -> Numbers:
    """Two numbers, the first of one digit, with a product of at most ``limit``."""
    first = between(rng, SMALLEST, min(9, limit // SMALLEST))
    return {"m": first, "n": between(rng, SMALLEST, min(16, limit // first))}


def _summands(rng: random.Random, limit: int) -> Numbers:
    first = between(rng, SMALLEST, min(40, limit - SMALLEST))
    return {"m": first, "n": between(rng, SMALLEST, min(40, limit - first))}


def _divisor(rng: random.Random, value: int, most: int) -> int:
    fitting = [k for k in range(2, most + 1) if value % k == 0 and value // k >= SMALLEST]
    if not fitting:
        raise DeadEnd
    return pick(rng, fitting)


def factor(rng: random.Random, value: int, most: int) -> int:
    return between(rng, 2, min(most, LARGEST_PRODUCT // value))


def _sum_times(rng: random.Random) -> Numbers:
    numbers = {"m": between(rng, 2, 9), "n": between(rng, 2, 9)}
    return numbers | {"k": factor(rng, numbers["m"] + numbers["n"], 9)}


def _sale_and_expense(rng: random.Random, value: int, most: int) -> Numbers:
    k = factor(rng, value, most)
    return {"k": k, "n": between(rng, SMALLEST, value * k - SMALLEST)}


NUMBERS: dict[str, Callable[[random.Random, int, int], Numbers]] = {
    "": lambda rng, r, most: {"n": between(rng, 3, 30)},
    "m*n": lambda rng, r, most: _factors(rng, LARGEST_PRODUCT),
    "m+n": lambda rng, r, most: _summands(rng, LARGEST),
    "m+n;p*k": lambda rng, r, most: _sum_times(rng),
    "r+n": lambda rng, r, most: {"n": between(rng, SMALLEST, min(40, LARGEST - r))},
    "r-n": lambda rng, r, most: {"n": between(rng, SMALLEST, min(50, r - SMALLEST))},
    "n-r": lambda rng, r, most: {"n": between(rng, r + SMALLEST, min(LARGEST, r + 40))},
    "r*k": lambda rng, r, most: {"k": factor(rng, r, most)},
    "r/k": lambda rng, r, most: {"k": _divisor(rng, r, most)},
    "r*k;p-n": _sale_and_expense,
    "m*n;r+p": lambda rng, r, most: _factors(rng, min(LARGEST_PRODUCT, LARGEST - r)),
    "m*n;r-p": lambda rng, r, most: _factors(rng, min(LARGEST_PRODUCT, r - SMALLEST)),
    "m+n;r+p": lambda rng, r, most: _summands(rng, LARGEST - r),
    "m+n;r-p": lambda rng, r, most: _summands(rng, r - SMALLEST),
}
"""The numbers a form gives, by its steps, such that every result is in range for a story that has come to ``r``."""


def _apply(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    return left * right if operator == "*" else left // right


class Story:
    """A problem in the making: the sentences, the solution lines and the plan."""

    def __init__(self, rng: random.Random, theme: Theme, steps: int) -> None:
        self.rng, self.theme, self.steps = rng, theme, steps
        self.sentences: list[str] = []
        self.lines: list[str] = []
        self.plan: list[str] = []
        self.used: set[int] = set()
        self.scaled = self.events = 0
        self.reduced = False
        self.box = int(rng.random() * len(theme.boxes))
        self.now = self.other = self.last = Quantity(0)
        (this, that), (red, blue) = pick(rng, theme.kinds), pick(rng, words.COLORS)
        self.slots = {"things": pick(rng, theme.things), "this": this, "that": that, "red": red, "blue": blue}

    def left(self) -> int:
        """How many steps remain to be made."""
        return self.steps - len(self.plan)

    def person(self, name: str, he: str) -> None:
        """Continue with the person called ``name``."""
        him, his = ("him", "his") if he == "he" else ("her", "her")
        self.slots.update(name=name, he=he, He=he.capitalize(), him=him, his=his, s="s", have="has", do="does")
        self.slots.update(A=name, a=name)
        self.used.clear()
        self.events = 0
        self.reduced = False

    def both(self) -> None:
        """Continue with the two people together."""
        self.slots.update(name="They", he="they", He="They", him="them", his="their", s="", have="have", do="do")
        self.slots.update(A="They", a="they")

    def say(self, texts: Sequence[str]) -> None:
        """Add one of the sentences; from then on the person may be called by a pronoun."""
        self.sentences.append(pick(self.rng, texts).format_map(self.slots))
        slots = self.slots
        if self.rng.random() < 0.6 or slots["name"] == "They":
            slots["A"], slots["a"] = slots["He"], slots["he"]
        else:
            slots["A"] = slots["a"] = slots["name"]

    def step(self, operator: str, left: Quantity, right: Quantity, line: Line) -> Quantity:
        """Compute one result and write its line; the fifth line has no unit, so that the answer fits."""
        value = _apply(operator, left.value, right.value)
        last_of_many = len(self.plan) == MOST_STEPS - 1
        sides = [left, right]
        if operator in "+*":
            sides.sort(key=lambda side: (side.step == 0, side.step, side.value))
        self.plan.append(f"{sides[0]}{operator}{sides[1]}")
        text = f"{pick(self.rng, line.heads)} {left.value} {operator} {right.value} = {value}"
        if line.unit and not last_of_many and self.rng.random() >= UNIT_LEFT_OUT:
            text += " " + line.unit
        self.lines.append(text.format_map(self.slots) + ".")
        self.last = Quantity(value, len(self.plan))
        return self.last

    def tell(self, form: Form) -> None:
        """Draw the numbers of a form, say its sentence and make its steps."""
        rng, slots, theme = self.rng, self.slots, self.theme
        numbers = NUMBERS[form.steps](rng, self.now.value, form.most)
        if form.steps in {"r*k", "r/k"}:
            if self.scaled == numbers["k"]:
                raise DeadEnd  # Twice as many and then half of them: a detour.
            self.scaled = numbers["k"]
        else:
            self.scaled = 0
        if "k" in numbers:
            slots["times"], slots["part"] = words.TIMES.get(numbers["k"], ""), words.PARTS.get(numbers["k"], "")
        slots["gain"], slots["lose"] = pick(rng, theme.gain), pick(rng, theme.lose)
        self.box = (self.box + 1) % len(theme.boxes)  # Another box each time: the old ones are full.
        self.name_things("box", "boxes", theme.boxes[self.box])
        self.name_things("good", "goods", pick(rng, words.GOODS))
        slots.update({name: str(number) for name, number in numbers.items()})
        self.say(form.texts)
        known = {name: Quantity(number) for name, number in numbers.items()}
        known |= {"r": self.now, "p": self.now}
        result = known["n"] if not form.steps else self.now
        for expression, line in zip(form.steps.split(";"), form.lines, strict=False):
            left, right = known[expression[0]], known[expression[2]]
            result = known["p"] = self.step(expression[1], left, right, line)
        self.now = result
        self.used.add(id(form))

    def name_things(self, one: str, many: str, noun: str) -> None:
        plural = words.PLURALS.get(noun) or noun + "s"
        self.slots[one], self.slots[many], self.slots[many.capitalize()] = noun, plural, plural.capitalize()

    def tell_one_of(self, forms: Sequence[Form], most_steps: int, least_steps: int = 0) -> Form:
        """Tell one of the forms that are within the limits and not used before; try others if its numbers don't fit."""
        fitting = [f for f in forms if least_steps <= f.cost <= most_steps and id(f) not in self.used]
        weighted = [form for form in fitting for _ in range(form.weight)]
        for _ in range(4):
            if not weighted:
                break
            form = pick(self.rng, weighted)
            try:
                self.tell(form)
            except DeadEnd:
                continue
            return form
        raise DeadEnd

    def tell_events(self, steps: int) -> None:
        """Let things happen to the present person that take exactly ``steps`` steps."""
        end = len(self.plan) + steps
        while len(self.plan) < end:
            form = self.tell_one_of(self.theme.events, end - len(self.plan), 1)
            self.events += 1
            self.reduced = form.reduces

    def ask(self) -> None:
        """The plain question: how many are there."""
        unchanged = "" if "other" in self.slots else " in all"
        self.slots["end"] = unchanged if not self.events else " left" if self.reduced else " now"
        self.say(self.theme.ask)
