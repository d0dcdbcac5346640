"""The words of mini-gsm: names, nouns, and for each kind of step its sentences and its solution lines.

Every verb here takes a plain "s" for one person, so that ``{s}`` is all the grammar a verb needs.
"""

from __future__ import annotations

from dataclasses import dataclass

SIZES = (("big", "small"), ("large", "little"))
COLORS = (("red", "blue"), ("green", "yellow"), ("black", "white"))


@dataclass(frozen=True)
class Line:
    """One line of a solution: it opens with one of ``heads`` and its result may be followed by ``unit``.

    A head has at most two words; a line without a unit that is not the last of its form may have three.
    """

    heads: tuple[str, ...]
    unit: str = "{things}"


@dataclass(frozen=True)
class Form:
    """One kind of sentence and what it computes.

    ``steps`` is a list of operations joined by ";": "r" is the quantity the story has come to, "p" the result of
    the operation before, and "m", "n", "k" are numbers the sentence gives. ``most`` bounds "k". ``weight`` is how
    often the form is tried.
    """

    steps: str
    texts: tuple[str, ...]
    lines: tuple[Line, ...]
    most: int = 9
    weight: int = 1

    @property
    def cost(self) -> int:
        return len(self.lines)

    @property
    def reduces(self) -> bool:
        """Whether one asks how many are "left" after it."""
        return self.steps in {"r-n", "m*n;r-p", "m+n;r-p", "r/k"}


@dataclass(frozen=True)
class Theme:
    """What a story is about and the forms it may use. Without ``compare`` it has only one person."""

    things: tuple[str, ...]
    start: tuple[Form, ...]
    events: tuple[Form, ...]
    endings: tuple[Form, ...]
    compare: tuple[Form, ...] = ()
    boxes: tuple[str, ...] = ("box",)
    gain: tuple[str, ...] = ("get",)
    lose: tuple[str, ...] = ("lose",)
    kinds: tuple[tuple[str, str], ...] = SIZES
    ask: tuple[str, ...] = ("How many {things} {do} {a} have{end}?",)
    weight: int = 1


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MEN = _split("Tom Ben Sam Max Leo Jack Paul Adam Luke Mark Noah Omar Ivan Hugo Carl Eric Ryan Dan Finn Ravi")
WOMEN = _split("Mia Ana Lily Emma Zoe Kate Rosa Nina Sara Ella Lucy Amy Julia Maya Eva Tina Ruth Jane Leila Clara")
TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}
PARTS = {2: "half", 3: "a third", 4: "a quarter"}
PLURALS = {"box": "boxes"}
GOODS = _split("kite ball doll puzzle robot pen book cup hat shirt lamp comb ticket cake toy map")
DISTRACTORS = (
    "{name} is {x} years old.",
    "{name} lives {x} miles from the town.",
    "{name} runs for {x} minutes every day.",
    "The house of {name} is {x} years old.",
)

HAS = Line(("{name} {have}", "That makes", "{He} {have}"))
LEFT = Line(("{name} {have}", "That leaves", "{name} keep{s}"))

# Things one can have, count, pack, share and sell.

COUNTED = Form(
    "", ("{A} {have} {n} {things}.", "{A} {gain}{s} {n} {things}.", "{A} start{s} with {n} {things}."), (), 9, 4
)
START = (
    COUNTED,
    Form(
        "m*n",
        (
            "{A} {have} {m} {boxes} with {n} {things} each.",
            "{A} {have} {m} {boxes}. Each {box} holds {n} {things}.",
            "{A} fill{s} {m} {boxes} with {n} {things} each.",
        ),
        (Line(("{name} {have}", "That makes", "{Boxes} hold")),),
    ),
    Form(
        "m*n",
        ("{A} {gain}{s} {n} {things} a day for {m} days.", "For {m} days, {name} {gain}{s} {n} {things} every day."),
        (Line(("{name} {have}", "That makes", "{name} {gain}{s}")),),
    ),
    Form(
        "m+n",
        (
            "{A} {have} {m} {this} {things} and {n} {that} {things}.",
            "{A} {gain}{s} {m} {this} {things} and {n} {that} {things}.",
        ),
        (HAS,),
    ),
    Form(
        "m+n;p*k",
        (
            "{A} {have} {m} {red} {boxes} and {n} {blue} {boxes}. Each {box} holds {k} {things}.",
            "{A} {have} {m} {red} {boxes} and {n} {blue} {boxes} with {k} {things} in each.",
        ),
        (Line(("{name} {have}", "That makes"), "{boxes}"), Line(("They hold", "That makes", "{name} {have}"))),
    ),
)
EVENTS = (
    Form(
        "r+n",
        (
            "{A} {gain}{s} {n} more {things}.",
            "Then {a} {gain}{s} {n} more {things}.",
            "A friend gives {him} {n} more {things}.",
            "Later, {a} get{s} {n} more {things}.",
        ),
        (HAS,),
        weight=2,
    ),
    Form(
        "r-n",
        (
            "{A} {lose}{s} {n} {things}.",
            "Then {a} {lose}{s} {n} of the {things}.",
            "{A} give{s} {n} {things} to a friend.",
            "{A} give{s} away {n} of the {things}.",
        ),
        (LEFT,),
        weight=2,
    ),
    Form(
        "r/k",
        (
            "{A} {lose}{s} half of the {things}.",
            "{A} give{s} half of the {things} to a friend.",
            "Then {a} give{s} away half of the {things}.",
        ),
        (LEFT,),
        most=2,
    ),
    Form(
        "r/k",
        (
            "{A} keep{s} {part} of the {things} and give{s} the rest away.",
            "Then {a} keep{s} only {part} of the {things}.",
        ),
        (LEFT,),
        most=4,
    ),
    Form(
        "r*k",
        (
            "A month later, {a} {have} {times} as many {things}.",
            "Soon {a} {have} {times} as many {things}.",
            "By summer, {a} {have} {times} as many {things}.",
        ),
        (HAS,),
        most=4,
    ),
    Form(
        "m*n;r+p",
        (
            "{A} {gain}{s} {m} {boxes} of {n} {things} each.",
            "A friend brings {him} {m} {boxes} of {n} {things} each.",
            "Then {a} get{s} {m} {boxes} with {n} {things} in each.",
        ),
        (Line(("{Boxes} hold", "That adds", "The {boxes} hold"), ""), HAS),
    ),
    Form(
        "m*n;r+p",
        (
            "For the next {m} days, {a} {gain}{s} {n} more {things} a day.",
            "Then {a} {gain}{s} {n} {things} every day for {m} days.",
        ),
        (Line(("{name} {gain}{s}", "That adds")), HAS),
    ),
    Form(
        "m*n;r-p",
        (
            "{A} give{s} {n} {things} to each of {m} friends.",
            "Then {a} give{s} {m} friends {n} {things} each.",
        ),
        (Line(("Friends get", "{name} give{s}", "The friends get"), ""), LEFT),
    ),
    Form(
        "m*n;r-p",
        (
            "{A} sell{s} {m} {boxes} of {n} {things} each.",
            "Then {a} fill{s} {m} {boxes} with {n} {things} each and sell{s} them.",
        ),
        (Line(("{name} sell{s}", "{Boxes} hold")), LEFT),
    ),
    Form(
        "m*n;r-p",
        ("{A} {lose}{s} {n} {things} a day for {m} days.", "For {m} days, {a} {lose}{s} {n} {things} every day."),
        (Line(("{name} {lose}{s}", "That takes")), LEFT),
    ),
    Form(
        "m+n;r-p",
        (
            "{A} give{s} {m} {things} to a friend and {n} {things} to a cousin.",
            "{A} give{s} away {m} {things} on Friday and {n} {things} on Sunday.",
        ),
        (Line(("{name} give{s}", "That takes")), LEFT),
    ),
    Form(
        "m+n;r+p",
        (
            "{A} {gain}{s} {m} more {things} on Monday and {n} more on Tuesday.",
            "Then {a} {gain}{s} {m} {this} {things} and {n} {that} {things}.",
        ),
        (Line(("{name} {gain}{s}", "That adds")), HAS),
    ),
)
COMPARE = (
    Form(
        "r+n",
        (
            "{name} has {n} more {things} than {other}{than}.",
            "{other}{now} has {n} fewer {things} than {name}.",
        ),
        (HAS,),
    ),
    Form(
        "r-n",
        (
            "{name} has {n} fewer {things} than {other}{than}.",
            "{other}{now} has {n} more {things} than {name}.",
        ),
        (HAS,),
    ),
    Form("r*k", ("{name} has {times} as many {things} as {other}{than}.",), (HAS,), most=5),
    Form(
        "r/k",
        (
            "{name} has half as many {things} as {other}{than}.",
            "{other}{now} has twice as many {things} as {name}.",
        ),
        (HAS,),
        most=2,
    ),
)
WANTED = Form(
    "n-r",
    (
        "{A} want{s} to have {n} {things}. How many more {things} {do} {a} need?",
        "{A} need{s} {n} {things} in all. How many {things} {do} {a} still need?",
    ),
    (Line(("{name} need{s}", "{He} need{s}"), "more"),),
)
ENDINGS = (
    Form(
        "r/k",
        (
            "{A} share{s} all the {things} equally among {k} friends. How many {things} does each friend get?",
            "Then {k} friends share all the {things} equally. How many {things} does each friend get?",
        ),
        (Line(("Each gets", "One gets")),),
        weight=2,
    ),
    Form(
        "r/k",
        (
            "{A} put{s} all the {things} equally into {k} {boxes}. How many {things} are in each {box}?",
            "{A} pack{s} all the {things} into {k} equal {boxes}. How many {things} does one {box} hold?",
        ),
        (Line(("Each holds", "Each has")),),
    ),
    Form(
        "r/k",
        (
            "{A} put{s} all the {things} into {boxes} of {k}. How many {boxes} {do} {a} fill?",
            "{A} pack{s} {k} {things} into each {box}. How many {boxes} {do} {a} need for all the {things}?",
        ),
        (Line(("{name} fill{s}", "{name} need{s}", "That fills"), "{boxes}"),),
    ),
    Form(
        "r/k",
        ("Then {a} {lose}{s} {k} {things} every day. How many days do the {things} last?",),
        (Line(("They last", "That lasts"), "days"),),
    ),
    Form(
        "r*k",
        (
            "{A} sell{s} all the {things} for {k} dollars each. How many dollars {do} {a} get?",
            "{A} sell{s} each of the {things} for {k} dollars. How much money {do} {a} get?",
        ),
        (Line(("{name} get{s}", "That brings", "{name} earn{s}"), "dollars"),),
        weight=2,
    ),
    Form(
        "r*k;p-n",
        (
            "{A} sell{s} all the {things} for {k} dollars each and spend{s} {n} dollars of the money."
            " How many dollars are left?",
            "{A} sell{s} all the {things} for {k} dollars each. To sell them, {a} pay{s} {n} dollars."
            " How many dollars {do} {a} keep?",
        ),
        (Line(("{name} get{s}", "That brings"), "dollars"), Line(("{name} keep{s}", "That leaves"), "dollars")),
    ),
    WANTED,
    WANTED,
)
POOL = (
    "{first} and {second} put all their {things} together.",
    "Then {first} and {second} put their {things} together.",
)
TOGETHER = (
    "How many {things} do {first} and {second} have together?",
    "How many {things} do they have together?",
    "How many {things} do {first} and {second} have in all?",
)
MORE = (
    "How many more {things} does {big} have than {small}?",
    "How many fewer {things} does {small} have than {big}?",
)
POOLED = Line(("They have", "That makes", "In total"))
DIFFERENCE = Line(("{big} has", "That makes"), "more")

# In a shop.

SHOP_FIRST = ("A {one} costs {n} dollars.", "In a shop, a {one} costs {n} dollars.")
SHOP_SECOND = ("A {two} costs {n} dollars.", "The price of a {two} is {n} dollars.")
SHOP_COMPARE = {
    "r+n": ("A {two} costs {n} dollars more than a {one}.", "That is {n} dollars less than the price of a {two}."),
    "r-n": ("A {two} costs {n} dollars less than a {one}.", "That is {n} dollars more than the price of a {two}."),
    "r*k": ("A {two} costs {times} as much as a {one}.",),
}
SHOP_BUY = ("{A} buys {bought}.", "At the shop, {A} buys {bought}.")
SHOP_ASK = (
    "How many dollars does {a} pay in all?",
    "How much money does {a} spend?",
    "How many dollars does {a} spend?",
)
SHOP_CHANGE = (
    "{A} pays with {n} dollars. How many dollars does {a} get back?",
    "{A} had {n} dollars before. How many dollars are left?",
    "{A} gives the seller {n} dollars. How much change does {a} get?",
)
SHOP_PRICE = Line(("A {two} costs", "One {two} costs"), "")
SHOP_SEVERAL = Line(("{Goods} cost", "For {goods}", "{name} pays"))
SHOP_SUM = Line(("{name} pays", "That makes", "{He} pays"))
SHOP_BACK = Line(("{name} keeps", "That leaves", "{He} keeps"))
