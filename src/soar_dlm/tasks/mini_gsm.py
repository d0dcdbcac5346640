"""Grade-school word problems of two to five steps, with worked solutions."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from soar_dlm.tasks import mini_gsm_themes as themes
from soar_dlm.tasks import mini_gsm_words as words
from soar_dlm.tasks.mini_gsm_story import (
    LARGEST,
    MOST_STEPS,
    NUMBERS,
    SMALLEST,
    DeadEnd,
    Quantity,
    Story,
    between,
    factor,
    pick,
)
from soar_dlm.tasks.mini_gsm_words import Form
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

STEP_COUNTS = (2, 3, 4, MOST_STEPS)
STEP_CHANCES = (0.3, 0.6, 0.85, 1.0)
"""The chance of at most this many steps."""

SHOPPING = 0.12
SECOND_PERSON = 0.45
DISTRACTED = 0.1


def _alone(story: Story) -> None:
    """A story of one person: a start, events, and an ending or a plain question."""
    rng, theme = story.rng, story.theme
    ending = pick(rng, theme.endings) if rng.random() < 0.6 else None
    ending_steps = ending.cost if ending else 0
    story.tell_one_of(theme.start, story.steps - ending_steps)
    story.tell_events(story.left() - ending_steps)
    if ending:
        story.tell(ending)
    else:
        story.ask()


def _pair(story: Story, second: tuple[str, str]) -> None:
    """A story of two people: each has a quantity, the second often in terms of the first, and they are joined."""
    rng, theme, slots = story.rng, story.theme, story.slots
    compared = rng.random() < 0.7 or story.steps == 2
    closing = pick(rng, ("sum", "sum", "difference", "second", "pool"))
    ending = pick(rng, theme.endings) if closing == "pool" else None
    reserved = (0 if closing == "second" else 1) + (ending.cost if ending else 0)
    free = story.steps - reserved - compared
    if free < 0 or (closing == "second" and not compared):
        raise DeadEnd
    story.tell_one_of(theme.start, free)
    story.tell_events(between(rng, 0, story.left() - reserved - compared))
    first, moved = slots["name"], story.events > 0
    story.other = story.now
    slots.update(other=first, than=" has now" if moved else "", now=" now" if moved else "")
    story.person(*second)
    forms = theme.compare if compared else theme.start
    form = story.tell_one_of(forms, story.left() - reserved)
    story.tell_events(story.left() - reserved)
    slots.update(first=first, second=second[0])
    trivial = form.steps in {"r+n", "r-n"} and not story.events
    if closing == "second":
        story.ask()
    elif closing == "difference":
        _ask_difference(story, trivial)
    else:
        _join(story, ending)


def _ask_difference(story: Story, trivial: bool) -> None:
    one, two = story.other, story.now
    if trivial or abs(one.value - two.value) < SMALLEST:
        raise DeadEnd
    large, small = (one, two) if one.value > two.value else (two, one)
    names = story.slots["first"], story.slots["second"]
    story.slots["big"], story.slots["small"] = names if large is one else names[::-1]
    story.say(words.MORE)
    story.step("-", large, small, words.DIFFERENCE)


def _join(story: Story, ending: Form | None) -> None:
    if story.other.value + story.now.value > LARGEST:
        raise DeadEnd
    story.both()
    story.say(words.POOL if ending else words.TOGETHER)
    story.now = story.step("+", story.other, story.now, words.POOLED)
    if ending:
        story.tell(ending)


class Basket(NamedTuple):
    """What is bought in a shop. The second price is absent, given, or said in terms of the first ("r+n", ...).

    ``ones`` and ``twos`` say how many of each are bought: none (0), one (1) or several (2).
    """

    second_price: str
    ones: int
    twos: int
    change: bool

    @property
    def cost(self) -> int:
        compared = self.second_price in words.SHOP_COMPARE
        return compared + (self.ones == 2) + (self.twos == 2) + bool(self.ones and self.twos) + self.change

    @property
    def sensible(self) -> bool:
        """Whether every price is needed."""
        if self.second_price == "absent":
            return self.ones > 0 and not self.twos
        return self.twos > 0 and (self.ones > 0 or self.second_price != "given")


_BASKETS = [
    Basket(price, ones, twos, change)
    for price in ("absent", "given", *words.SHOP_COMPARE)
    for ones in range(3)
    for twos in range(3)
    for change in (False, True)
]
BASKETS = {steps: [b for b in _BASKETS if b.sensible and b.cost == steps] for steps in STEP_COUNTS}


def _shop(story: Story) -> None:
    """A story about a purchase: prices, how many of each, and the total or the change."""
    rng, slots = story.rng, story.slots
    basket = pick(rng, BASKETS[story.steps])
    for name, noun in zip(("one", "two"), rng.sample(words.GOODS, 2), strict=True):
        story.name_things(name, name + "s", noun)
    first, second = _say_prices(story, basket)
    bought = [
        (noun, price, 1 if wanted == 1 else factor(rng, price.value, 9))
        for noun, price, wanted in (("one", first, basket.ones), ("two", second, basket.twos))
        if wanted
    ]
    texts = [f"{count} {slots[noun + 's']}" if count > 1 else f"one {slots[noun]}" for noun, _, count in bought]
    slots["bought"] = " and ".join(texts)
    slots["A"] = slots["name"]
    story.say(words.SHOP_BUY)
    total = _add_up(story, bought)
    if not basket.change:
        story.say(words.SHOP_ASK)
        return
    paid = between(rng, total.value + SMALLEST, min(LARGEST, total.value + 40))
    slots["n"] = str(paid)
    story.say(words.SHOP_CHANGE)
    story.step("-", Quantity(paid), total, words.SHOP_BACK)


def _say_prices(story: Story, basket: Basket) -> tuple[Quantity, Quantity]:
    rng, slots = story.rng, story.slots
    first = second = Quantity(between(rng, 2, 12))
    slots["n"] = str(first.value)
    story.say(words.SHOP_FIRST)
    if basket.second_price == "given":
        second = Quantity(between(rng, 2, 15))
        slots["n"] = str(second.value)
        story.say(words.SHOP_SECOND)
    elif basket.second_price != "absent":
        numbers = NUMBERS[basket.second_price](rng, first.value, 4)
        ((name, number),) = numbers.items()
        slots[name], slots["times"] = str(number), words.TIMES.get(number, "")
        story.say(words.SHOP_COMPARE[basket.second_price])
        second = story.step(basket.second_price[1], first, Quantity(number), words.SHOP_PRICE)
    return first, second


def _add_up(story: Story, bought: Sequence[tuple[str, Quantity, int]]) -> Quantity:
    """The steps from prices and counts to the total."""
    sums = []
    for noun, price, count in bought:
        story.slots["goods"], story.slots["Goods"] = story.slots[noun + "s"], story.slots[noun.capitalize() + "s"]
        sums.append(price if count == 1 else story.step("*", Quantity(count), price, words.SHOP_SEVERAL))
    if len(sums) == 1:
        return sums[0]
    if sums[0].value + sums[1].value > LARGEST:
        raise DeadEnd
    return story.step("+", sums[0], sums[1], words.SHOP_SUM)


THEMES = [theme for theme in themes.THEMES for _ in range(theme.weight)]
ANSWER = re.compile(r"\s*([0-9]{1,9}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(?:\.0+)?\.?\s*")


class MiniGsm(Task):
    """Short stories with numbers; the answer is worked out line by line and ends with "#### " and the number.

    A problem's key is its plan: the operations in order, "r1" being the result of the first, without the wording.
    """

    name: ClassVar[str] = "mini-gsm"
    about: ClassVar[str] = "Grade-school word problems of two to five steps, solved line by line."
    canvas: ClassVar[int] = 56
    answer_mark: ClassVar[str | None] = "####"

    def draw(self, rng: random.Random) -> Problem:
        chance = rng.random()
        steps = next(count for count, limit in zip(STEP_COUNTS, STEP_CHANCES, strict=True) if chance < limit)
        while True:
            try:
                return _write(rng, steps)
            except DeadEnd:
                continue

    def correct(self, problem: Problem, text: str) -> bool:
        _, mark, last = text.rpartition("####")
        found = ANSWER.fullmatch(last) if mark else None
        return found is not None and int(found[1].replace(",", "")) == problem.checks["answer"]


def _write(rng: random.Random, steps: int) -> Problem:
    """One problem with this many steps, unless the numbers lead to a dead end."""
    shopping = rng.random() < SHOPPING
    story = Story(rng, themes.MONEY if shopping else pick(rng, THEMES), steps)
    people = [(pick(rng, words.MEN), "he"), (pick(rng, words.WOMEN), "she")]
    # One man and one woman, so that a pronoun never leaves open who is meant.
    if rng.random() < 0.5:
        people.reverse()
    story.person(*people[0])
    if shopping:
        _shop(story)
    elif story.theme.compare and rng.random() < SECOND_PERSON:
        _pair(story, people[1])
    else:
        _alone(story)
    if rng.random() < DISTRACTED:
        distractor = pick(rng, words.DISTRACTORS).format(name=people[0][0], x=between(rng, 7, 60))
        story.sentences.insert(0 if shopping else between(rng, 0, 1), distractor)
    number = story.last.value
    return Problem(
        prompt=" ".join(story.sentences),
        answer="\n".join(["", *story.lines, f"#### {number}"]),
        key=";".join(story.plan),
        kind=f"{steps} steps",
        checks={"answer": number},
    )
