"""The operations mini-code programs are made of: what each does, how it is said and how it is written in Python.

In ``code`` and ``update``, ``{x}`` is the operand and ``{a}``, ``{b}``, ``{c}`` are the constants. Every operation
is total: it has a value for every input of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

Type = Literal["ints", "int", "words", "str", "bool"]
Role = Literal["filter", "map", "whole", "any", "all", "choose", "guard"]

ADD, MULTIPLY, NEGATE, ATOM = 1, 2, 3, 4
"""How tightly an expression binds, as in Python's grammar; 0 is anything looser than a sum."""

N = range(0, 13)
SMALL = range(2, 10)
FEW = range(2, 7)
LETTERS = tuple("aeinorst")


@dataclass(frozen=True)
class Operation:
    """One step of a pipeline.

    A "filter" or "map" acts on each item of a list, with ``code`` a condition or expression about one item; "whole"
    acts on the value as a whole; "any" and "all" test the items; "choose" picks one of its last two constants by a
    condition on a number and ends the program; "guard" opens it and returns its last constant on a condition on the
    parameter. ``code`` needs an operand that binds at least as tightly as ``need`` and itself binds as ``binds``.
    A fold that a loop can do item by item has a ``start`` value and an ``update`` of the variable ``total``.
    A ``noun`` is a phrase that names the result ("the sum") where others give a command ("sort them").
    """

    name: str
    role: Role
    takes: Type
    gives: Type
    code: str
    phrases: tuple[str, ...]
    compute: Callable[..., Any]
    constants: tuple[Sequence[Any], ...] = ()
    need: int = ATOM
    binds: int = ATOM
    start: str = ""
    update: str = ""
    noun: bool = False

    @cached_property
    def repeats(self) -> bool:
        """Whether the code names its operand more than once, so that it must be a variable."""
        return self.code.count("{x}") > 1

    def apply(self, value: Any, constants: tuple[Any, ...]) -> Any:
        """The result on ``value``; for a guard, whether it returns."""
        compute = self.compute
        if self.role == "filter":
            return [item for item in value if compute(item, *constants)]
        if self.role == "map":
            return [compute(item, *constants) for item in value]
        if self.role == "any":
            return any(compute(item, *constants) for item in value)
        if self.role == "all":
            return all(compute(item, *constants) for item in value)
        if self.role == "choose":
            return constants[-2] if compute(value, *constants) else constants[-1]
        return compute(value, *constants)


Row = tuple[str, str, tuple[Sequence[Any], ...], int, int, tuple[str, ...], Callable[..., Any]]


def _filters(kind: Type, rows: list[Row]) -> list[Operation]:
    return [Operation(n, "filter", kind, kind, code, says, f, c, need, 0) for n, code, c, need, _, says, f in rows]


def _wholes(takes: Type, gives: Type, rows: list[Row], *, noun: bool = False) -> list[Operation]:
    return [
        Operation(n, "whole", takes, gives, code, says, f, c, need, binds, noun=noun)
        for n, code, c, need, binds, says, f in rows
    ]


# A test of one number, said of the numbers kept, of "it" and of any or all of them.
TESTS: list[Row] = [
    ("above", "{x} > {a}", (N,), ADD, 0, ("above {a}", "greater than {a}"), lambda x, a: x > a),
    ("below", "{x} < {a}", (N,), ADD, 0, ("below {a}", "less than {a}"), lambda x, a: x < a),
    ("at_least", "{x} >= {a}", (N,), ADD, 0, ("at least {a}", "not below {a}"), lambda x, a: x >= a),
    ("at_most", "{x} <= {a}", (N,), ADD, 0, ("at most {a}", "not above {a}"), lambda x, a: x <= a),
    ("not_equal", "{x} != {a}", (N,), ADD, 0, ("not equal to {a}", "other than {a}"), lambda x, a: x != a),
    ("even", "{x} % 2 == 0", (), MULTIPLY, 0, ("even",), lambda x: x % 2 == 0),
    ("odd", "{x} % 2 == 1", (), MULTIPLY, 0, ("odd",), lambda x: x % 2 == 1),
    ("divisible", "{x} % {a} == 0", (range(3, 10),), MULTIPLY, 0, ("divisible by {a}", "multiples of {a}"),
     lambda x, a: x % a == 0),
    ("negative", "{x} < 0", (), ADD, 0, ("negative",), lambda x: x < 0),
    ("between", "{a} <= {x} <= {b}", (range(0, 10), range(10, 19)), ADD, 0, ("between {a} and {b}", "from {a} to {b}"),
     lambda x, a, b: a <= x <= b),
]  # fmt: skip

# Arithmetic on one number; the first phrases are said of each item of a list, the last ones of a single number.
ARITHMETIC: list[Row] = [
    ("add", "{x} + {a}", (range(1, 13),), ADD, ADD,
     ("add {a} to each", "raise each by {a}", "add {a}", "raise it by {a}"),
     lambda x, a: x + a),
    ("subtract", "{x} - {a}", (range(1, 13),), ADD, ADD,
     ("subtract {a} from each", "lower each by {a}", "subtract {a}", "lower it by {a}"),
     lambda x, a: x - a),
    ("take_from", "{a} - {x}", (range(1, 13),), MULTIPLY, ADD,
     ("subtract each from {a}", "replace each by {a} minus it", "subtract it from {a}", "replace it by {a} minus it"),
     lambda x, a: a - x),
    ("multiply", "{x} * {a}", (SMALL,), MULTIPLY, MULTIPLY,
     ("multiply each by {a}", "make each {a} times as large", "multiply by {a}", "make it {a} times as large"),
     lambda x, a: x * a),
    ("divide", "{x} // {a}", (SMALL,), MULTIPLY, MULTIPLY,
     ("divide each by {a} rounding down", "floor divide each by {a}",
      "divide by {a} rounding down", "floor divide by {a}"),
     lambda x, a: x // a),
    ("remainder", "{x} % {a}", (range(3, 10),), MULTIPLY, MULTIPLY,
     ("take each modulo {a}", "replace each by its remainder mod {a}",
      "take it modulo {a}", "replace it by its remainder mod {a}"),
     lambda x, a: x % a),
    ("square", "{x} ** 2", (), ATOM, NEGATE,
     ("square each", "square every number", "square it", "multiply it by itself"), lambda x: x**2),
    ("negate", "-{x}", (), NEGATE, NEGATE,
     ("negate each", "flip every sign", "negate it", "flip its sign"), lambda x: -x),
    ("absolute", "abs({x})", (), 0, ATOM,
     ("drop every sign", "take absolute values", "take its absolute value", "drop its sign"), abs),
    ("cap", "min({x}, {a})", (N,), 0, ATOM,
     ("cap each at {a}", "limit each to at most {a}", "cap it at {a}", "limit it to at most {a}"), min),
    ("raise_to", "max({x}, {a})", (N,), 0, ATOM,
     ("make each at least {a}", "lift each to at least {a}", "make it at least {a}", "lift it to at least {a}"), max),
]  # fmt: skip


def _kept(name: str, says: tuple[str, ...]) -> tuple[str, ...]:
    if name in ("even", "odd", "negative"):
        return (f"keep the {name} numbers", f"keep only {name} numbers", f"drop all that are not {name}")
    first, second = says
    return (f"keep the numbers {first}", f"keep only those {second}", f"drop all that are not {first}")


def _number_operations() -> list[Operation]:
    made = []
    for name, code, constants, need, binds, says, compute in TESTS:
        kept = _kept(name, says)
        made.append(Operation(name, "filter", "ints", "ints", code, kept, compute, constants, need, binds))
        single = (f"whether it is {says[0]}", f"True if it is {says[0]} and False if not")
        made.append(
            Operation(f"is_{name}", "whole", "int", "bool", code, single, compute, constants, need, binds, noun=True)
        )
        if name in ("above", "below", "even", "divisible", "negative"):
            some, each = (
                (f"whether any is {says[0]}", f"whether some are {says[0]}"),
                (f"whether all are {says[0]}", f"whether each is {says[0]}"),
            )
            pairs: list[tuple[Literal["any", "all"], tuple[str, ...]]] = [("any", some), ("all", each)]
            for role, phrases in pairs:
                made.append(
                    Operation(
                        f"{role}_{name}", role, "ints", "bool", code, phrases, compute, constants, need, noun=True
                    )
                )
        if name in ("above", "below", "even", "negative"):
            slots = "bc" if constants else "ab"
            yes, no = (f"{{{slot}}}" for slot in slots)
            phrases = (
                f"return {yes} if it is {says[0]}, otherwise {no}",
                f"if it is {says[-1]} return {yes}, else {no}",
            )
            made.append(
                Operation(f"if_{name}", "choose", "int", "int", code, phrases, _ignoring(compute, len(constants)),
                          (*constants, N, N), need)
            )  # fmt: skip
    for name, code, constants, need, binds, says, compute in ARITHMETIC:
        made.append(Operation(f"each_{name}", "map", "ints", "ints", code, says[:2], compute, constants, need, binds))
        made.append(Operation(name, "whole", "int", "int", code, says[2:], compute, constants, need, binds))
    return made


def _ignoring(compute: Callable[..., Any], used: int) -> Callable[..., Any]:
    return lambda value, *constants: compute(value, *constants[:used])


LISTS: list[Row] = [
    ("sort", "sorted({x})", (), 0, ATOM, ("sort them", "put them in ascending order"), sorted),
    ("sort_down", "sorted({x}, reverse=True)", (), 0, ATOM, ("sort them in descending order", "sort them backwards"),
     lambda v: sorted(v, reverse=True)),
    ("reverse", "{x}[::-1]", (), ATOM, ATOM, ("reverse the list", "reverse their order"), lambda v: v[::-1]),
    ("first", "{x}[:{a}]", (FEW,), ATOM, ATOM, ("take the first {a}", "keep only the first {a}"), lambda v, a: v[:a]),
    ("last", "{x}[-{a}:]", (FEW,), ATOM, ATOM, ("take the last {a}", "keep only the last {a}"), lambda v, a: v[-a:]),
    ("skip", "{x}[{a}:]", (FEW,), ATOM, ATOM, ("skip the first {a}", "drop the first {a}"), lambda v, a: v[a:]),
    ("drop_last", "{x}[:-{a}]", (FEW,), ATOM, ATOM, ("drop the last {a}", "leave out the last {a}"),
     lambda v, a: v[:-a]),
    ("every_second", "{x}[::2]", (), ATOM, ATOM, ("take every second one", "keep every other one"), lambda v: v[::2]),
    ("unique", "list(dict.fromkeys({x}))", (), 0, ATOM, ("remove duplicates", "keep one of each"),
     lambda v: list(dict.fromkeys(v))),
]  # fmt: skip

NUMBERS_TO_ONE: list[Row] = [
    ("largest", "max({x}, default=0)", (), 0, ATOM, ("the largest or 0 if there are none", "the maximum or 0 if empty"),
     lambda v: max(v, default=0)),
    ("smallest", "min({x}, default=0)", (), 0, ATOM,
     ("the smallest or 0 if there are none", "the minimum or 0 if empty"), lambda v: min(v, default=0)),
    ("mean", "sum({x}) // len({x}) if {x} else 0", (), 0, 0,
     ("the mean rounded down or 0 if empty", "the floor of the average or 0 if empty"),
     lambda v: sum(v) // len(v) if v else 0),
    ("spread", "max({x}) - min({x}) if {x} else 0", (), 0, 0,
     ("the largest minus the smallest or 0 if empty", "the spread or 0 if empty"),
     lambda v: max(v) - min(v) if v else 0),
    ("head", "{x}[0] if {x} else 0", (), 0, 0, ("the first one or 0 if empty", "the first or 0 if there are none"),
     lambda v: v[0] if v else 0),
]  # fmt: skip

FOLDS = [
    Operation("sum", "whole", "ints", "int", "sum({x})", ("the sum", "the total"), sum, need=0, start="0",
              update="total += {x}", noun=True),
    Operation("product", "whole", "ints", "int", "", ("the product", "the product of all"), prod, start="1",
              update="total *= {x}", noun=True),
    Operation("count", "whole", "ints", "int", "len({x})", ("how many there are", "the count"), len, need=0,
              start="0", update="total += 1", noun=True),
    Operation("count_words", "whole", "words", "int", "len({x})", ("how many there are", "the count"), len, need=0,
              start="0", update="total += 1", noun=True),
    Operation("glue", "whole", "words", "str", '"".join({x})', ("glue them together", "join them without gaps"),
              "".join, need=0, start='""', update="total += {x}"),
    Operation("vowels", "whole", "str", "int", 'sum(c in "aeiou" for c in {x})',
              ("the number of small vowels", "how many small vowels there are"),
              lambda s: sum(c in "aeiou" for c in s), need=0,
              start="0", update='total += {x} in "aeiou"', noun=True),
]  # fmt: skip

STRINGS: list[Row] = [
    ("upper", "{x}.upper()", (), ATOM, ATOM, ("make it upper case", "write it in capitals"), str.upper),
    ("lower", "{x}.lower()", (), ATOM, ATOM, ("make it lower case", "write it in small letters"), str.lower),
    ("capitalise", "{x}.capitalize()", (), ATOM, ATOM, ("capitalise it", "make only the first letter big"),
     str.capitalize),
    ("swap_case", "{x}.swapcase()", (), ATOM, ATOM, ("swap its case", "flip upper and lower case"), str.swapcase),
    ("backwards", "{x}[::-1]", (), ATOM, ATOM, ("reverse it", "write it backwards"), lambda s: s[::-1]),
    ("letters", '"".join(c for c in {x} if c.isalpha())', (), 0, ATOM, ("keep only letters", "drop all but letters"),
     lambda s: "".join(c for c in s if c.isalpha())),
    ("replace", '{x}.replace("{a}", "{b}")', (LETTERS, LETTERS), ATOM, ATOM,
     ('replace "{a}" by "{b}"', 'turn every "{a}" into "{b}"'), str.replace),
    ("remove", '{x}.replace("{a}", "")', (LETTERS,), ATOM, ATOM, ('remove every "{a}"', 'delete "{a}"'),
     lambda s, a: s.replace(a, "")),
    ("repeat", "{x} * {a}", (range(2, 5),), MULTIPLY, MULTIPLY, ("repeat it {a} times", "write it {a} times"),
     lambda s, a: s * a),
    ("start", "{x}[:{a}]", (range(2, 10),), ATOM, ATOM, ("take the first {a} characters", "cut it to {a} characters"),
     lambda s, a: s[:a]),
    ("end", "{x}[-{a}:]", (range(2, 10),), ATOM, ATOM, ("take the last {a} characters", "keep its last {a} characters"),
     lambda s, a: s[-a:]),
    ("skip_start", "{x}[{a}:]", (FEW,), ATOM, ATOM, ("skip {a} characters", "drop the first {a} characters"),
     lambda s, a: s[a:]),
]  # fmt: skip

EACH_WORD: list[Row] = [
    ("each_upper", "{x}.upper()", (), ATOM, ATOM, ("make each upper case", "write each in capitals"), str.upper),
    ("each_capitalise", "{x}.capitalize()", (), ATOM, ATOM, ("capitalise each", "capitalise every word"),
     str.capitalize),
    ("each_backwards", "{x}[::-1]", (), ATOM, ATOM, ("reverse each", "write each backwards"), lambda w: w[::-1]),
    ("each_start", "{x}[:{a}]", (range(2, 5),), ATOM, ATOM, ("cut each to {a} letters", "take {a} letters of each"),
     lambda w, a: w[:a]),
    ("each_repeat", "{x} * {a}", (range(2, 4),), MULTIPLY, MULTIPLY, ("repeat each {a} times", "write each {a} times"),
     lambda w, a: w * a),
]  # fmt: skip

WORD_TESTS: list[Row] = [
    ("longer", "len({x}) > {a}", (range(1, 7),), 0, 0, ("keep words longer than {a}", "drop words up to length {a}"),
     lambda w, a: len(w) > a),
    ("shorter", "len({x}) < {a}", (range(2, 8),), 0, 0, ("keep words shorter than {a}", "drop words from length {a}"),
     lambda w, a: len(w) < a),
    ("with", '"{a}" in {x}', (LETTERS,), MULTIPLY, 0, ('keep words with "{a}"', 'keep words that contain "{a}"'),
     lambda w, a: a in w),
    ("without", '"{a}" not in {x}', (LETTERS,), MULTIPLY, 0, ('keep words without "{a}"', 'drop words with "{a}"'),
     lambda w, a: a not in w),
]  # fmt: skip

WORDS_TO_TEXT: list[Row] = [
    ("dash", '"-".join({x})', (), 0, ATOM, ('join them with "-"', "join them with dashes"), "-".join),
    ("space", '" ".join({x})', (), 0, ATOM, ("join them with spaces", "join them with blanks"), " ".join),
    ("longest", 'max({x}, key=len, default="")', (), 0, ATOM,
     ("pick the longest or an empty text", 'pick the longest or ""'), lambda v: max(v, key=len, default="")),
    ("shortest", 'min({x}, key=len, default="")', (), 0, ATOM,
     ("pick the shortest or an empty text", 'pick the shortest or ""'), lambda v: min(v, key=len, default="")),
]  # fmt: skip

OTHERS: list[Operation] = [
    *_wholes("str", "words", [
        ("split", "{x}.split()", (), ATOM, ATOM, ("split it into words", "take its words"), str.split)]),
    *_wholes("str", "int", [
        ("length", "len({x})", (), 0, ATOM, ("its length", "how long it is"), len),
        ("count_letter", '{x}.count("{a}")', (LETTERS,), ATOM, ATOM, ('how often "{a}" occurs', 'the count of "{a}"'),
         str.count)], noun=True),
    *_wholes("int", "ints", [
        ("up_to", "list(range(1, {x} + 1))", (), ADD, ATOM, ("list the numbers from 1 to it", "count from 1 up to it"),
         lambda n: list(range(1, n + 1))),
        ("below_it", "list(range({x}))", (), 0, ATOM, ("list the numbers from 0 to below it",
            "count from 0 to below it"),
         lambda n: list(range(n))),
        ("digits", "[int(d) for d in str(abs({x}))]", (), 0, ATOM, ("list its digits", "split it into digits"),
         lambda n: [int(d) for d in str(abs(n))])]),
    *_wholes("int", "str", [("text", "str({x})", (), 0, ATOM, ("turn it into text", "write it as text"), str)]),
    Operation("lengths", "map", "words", "ints", "len({x})", ("take the length of each", "replace each by its length"),
              len, need=0),
    Operation("unless_empty", "guard", "ints", "ints", "not {x}", ("return {a} for an empty list",
        "return {a} if empty"),
              lambda v, a: not v, (N,)),
    Operation("unless_many", "guard", "ints", "ints", "len({x}) > {a}",
              ("return {b} for more than {a} items", "return {b} if there are over {a} items"),
              lambda v, a, b: len(v) > a, (range(2, 7), N)),
    Operation("unless_long", "guard", "str", "str", "len({x}) > {a}",
              ("return {b} for more than {a} characters", "return {b} if longer than {a}"),
              lambda s, a, b: len(s) > a, (range(5, 21), N)),
    Operation("unless_below", "guard", "int", "int", "{x} < {a}", ("return {b} for inputs below {a}",
              "return {b} if the input is below {a}"), lambda n, a, b: n < a, (range(0, 11), N)),
]  # fmt: skip

OPERATIONS: tuple[Operation, ...] = (
    *_number_operations(),
    *_wholes("ints", "ints", LISTS),
    *_wholes("words", "words", [(f"words_{row[0]}", *row[1:]) for row in LISTS]),
    *_wholes("ints", "int", NUMBERS_TO_ONE, noun=True),
    *FOLDS,
    *_wholes("str", "str", STRINGS),
    *_filters("words", WORD_TESTS),
    *[
        Operation(n, "map", "words", "words", code, says, f, c, need, binds)
        for n, code, c, need, binds, says, f in EACH_WORD
    ],
    *_wholes("words", "str", WORDS_TO_TEXT),
    *OTHERS,
)
