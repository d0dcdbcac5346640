"""What mini-gsm stories are about: things, money, points in a game, the pages of a book."""

from __future__ import annotations

from soar_dlm.tasks.mini_gsm_words import COLORS, COMPARE, ENDINGS, EVENTS, HAS, LEFT, SIZES, START, Form, Line, Theme


def _things(nouns: str, boxes: str, gain: str, lose: str, *colors: tuple[str, str]) -> Theme:
    return Theme(
        tuple(nouns.split()),
        START,
        EVENTS,
        ENDINGS,
        COMPARE,
        tuple(boxes.split()),
        tuple(gain.split()),
        tuple(lose.split()),
        SIZES + colors,
    )


# Dollars.

MONEY = Theme(
    ("dollars",),
    start=(
        Form("", ("{A} {have} {n} dollars.", "{A} get{s} {n} dollars for {his} birthday."), (), weight=2),
        Form(
            "m*n",
            (
                "{A} work{s} {m} hours for {n} dollars an hour.",
                "{A} save{s} {n} dollars a week for {m} weeks.",
                "{A} sell{s} {m} {goods} for {n} dollars each.",
            ),
            (Line(("{name} {have}", "That makes", "{name} get{s}")),),
            weight=2,
        ),
        Form(
            "m+n;p*k",
            (
                "{A} work{s} {m} hours on Monday and {n} hours on Tuesday for {k} dollars an hour.",
                "{A} earn{s} {k} dollars an hour. {He} work{s} {m} hours on Friday and {n} hours on Sunday.",
            ),
            (Line(("{name} work{s}", "That makes"), "hours"), Line(("{name} get{s}", "{name} earn{s}"))),
        ),
    ),
    events=(
        Form(
            "r+n",
            ("{A} earn{s} {n} more dollars.", "Then {a} find{s} {n} dollars.", "An aunt gives {him} {n} dollars."),
            (HAS,),
        ),
        Form(
            "r-n",
            (
                "{A} spend{s} {n} dollars on food.",
                "{A} pay{s} {n} dollars for a {good}.",
                "Then {a} spend{s} {n} dollars.",
            ),
            (LEFT,),
            weight=2,
        ),
        Form(
            "r/k",
            ("{A} spend{s} half of the money on a {good}.", "{A} give{s} half of the money to a friend."),
            (LEFT,),
            most=2,
        ),
        Form(
            "r*k",
            ("A year later, {a} {have} {times} as much money.", "Soon {a} {have} {times} as much money."),
            (HAS,),
            most=4,
        ),
        Form(
            "m*n;r-p",
            ("{A} buy{s} {m} {goods} for {n} dollars each.", "Then {a} buy{s} {m} {goods} at {n} dollars each."),
            (Line(("{Goods} cost", "{name} pay{s}", "The {goods} cost"), ""), LEFT),
            weight=2,
        ),
        Form(
            "m*n;r+p",
            ("{A} sell{s} {m} {goods} for {n} dollars each.", "{A} work{s} {m} days for {n} dollars a day."),
            (Line(("{name} get{s}", "That adds")), HAS),
        ),
        Form(
            "m+n;r-p",
            (
                "{A} spend{s} {m} dollars on food and {n} dollars on a {good}.",
                "{A} buy{s} a {good} for {m} dollars and a bag for {n} dollars.",
            ),
            (Line(("{name} spend{s}", "{name} pay{s}")), LEFT),
        ),
    ),
    endings=(
        Form(
            "n-r",
            (
                "{A} want{s} a bike that costs {n} dollars. How many more dollars {do} {a} need?",
                "{A} save{s} for a {good} that costs {n} dollars. How much more money {do} {a} need?",
            ),
            (Line(("{name} need{s}", "{He} need{s}"), "more"),),
        ),
        Form(
            "r/k",
            (
                "{A} spend{s} all the money on {goods} for {k} dollars each. How many {goods} {do} {a} buy?",
                "One {good} costs {k} dollars. How many {goods} can {a} buy?",
            ),
            (Line(("{name} buy{s}", "That buys"), "{goods}"),),
        ),
        Form(
            "r/k",
            ("{A} share{s} the money equally among {k} children. How many dollars does each child get?",),
            (Line(("Each gets", "One gets")),),
        ),
        Form(
            "r/k",
            ("{A} spend{s} {k} dollars a day. How many days does the money last?",),
            (Line(("It lasts", "That lasts"), "days"),),
        ),
    ),
    compare=(
        Form(
            "r+n",
            ("{name} has {n} dollars more than {other}{than}.", "{other}{now} has {n} dollars less than {name}."),
            (HAS,),
        ),
        Form(
            "r-n",
            ("{name} has {n} dollars less than {other}{than}.", "{other}{now} has {n} dollars more than {name}."),
            (HAS,),
        ),
        Form("r*k", ("{name} has {times} as much money as {other}{than}.",), (HAS,), most=5),
        Form("r/k", ("{name} has half as much money as {other}{than}.",), (HAS,), most=2),
    ),
    ask=("How many dollars {do} {a} have{end}?", "How much money {do} {a} have{end}?"),
    weight=3,
)

# Points in a game.

POINTS = Theme(
    ("points",),
    start=(
        Form("", ("{A} score{s} {n} points in the first game.", "{A} start{s} a game with {n} points."), (), weight=2),
        Form(
            "m*n",
            ("{A} hit{s} {m} targets for {n} points each.", "{A} win{s} {m} rounds with {n} points each."),
            (HAS,),
        ),
        Form("m+n", ("{A} score{s} {m} points in one game and {n} points in the next.",), (HAS,)),
    ),
    events=(
        Form("r+n", ("{A} score{s} {n} more points.", "In the next game, {a} score{s} {n} points."), (HAS,)),
        Form("r-n", ("{A} lose{s} {n} points.", "A mistake costs {him} {n} points."), (LEFT,)),
        Form(
            "r*k",
            ("A bonus makes it {times} as many points.", "After a bonus, {a} {have} {times} as many points."),
            (HAS,),
            most=4,
        ),
        Form("r/k", ("{A} lose{s} half of the points.", "A mistake costs {him} half of the points."), (LEFT,), most=2),
        Form(
            "m*n;r+p",
            ("{A} hit{s} {m} targets for {n} points each.", "Then {a} win{s} {m} rounds with {n} points each."),
            (Line(("{name} score{s}", "That adds")), HAS),
        ),
        Form(
            "m*n;r-p",
            ("{A} make{s} {m} mistakes that cost {n} points each.",),
            (Line(("{name} lose{s}", "That costs", "Mistakes cost")), LEFT),
        ),
    ),
    endings=(
        Form(
            "n-r",
            (
                "{A} need{s} {n} points to win. How many more points {do} {a} need?",
                "The record is {n} points. How many points {do} {a} need to reach it?",
            ),
            (Line(("{name} need{s}", "{He} need{s}"), "more"),),
        ),
        Form(
            "r/k",
            ("A prize costs {k} points. How many prizes can {a} get?",),
            (Line(("{name} get{s}", "That buys"), "prizes"),),
        ),
    ),
    compare=COMPARE,
)

# Pages of a book, which one person reads.

PAGES = Theme(
    ("pages",),
    start=(
        Form("", ("{A} {have} a book with {n} pages.", "{A} want{s} to read {n} pages."), (), weight=2),
        Form(
            "m*n",
            ("{A} {have} a book with {m} parts of {n} pages each.", "{A} {have} {m} books with {n} pages each."),
            (Line(("{name} {have}", "That makes")),),
        ),
    ),
    events=(
        Form(
            "r-n",
            ("{A} read{s} {n} pages.", "On Monday, {a} read{s} {n} pages."),
            (Line(("That leaves", "{name} {have}")),),
        ),
        Form(
            "r/k",
            ("{A} read{s} half of the unread pages.",),
            (Line(("That leaves", "{name} {have}")),),
            most=2,
        ),
        Form(
            "m*n;r-p",
            ("{A} read{s} {n} pages a day for {m} days.", "For {m} days, {a} read{s} {n} pages every day."),
            (Line(("{name} read{s}", "{He} read{s}")), Line(("That leaves", "{name} {have}"))),
            weight=2,
        ),
        Form(
            "m+n;r-p",
            ("{A} read{s} {m} pages in the morning and {n} pages at night.",),
            (Line(("{name} read{s}", "{He} read{s}")), Line(("That leaves", "{name} {have}"))),
        ),
    ),
    endings=(
        Form(
            "r/k",
            (
                "Then {a} read{s} {k} pages a day. How many days {do} {a} need for the rest?",
                "{A} want{s} to read {k} pages a day from now on. In how many days {do} {a} finish?",
            ),
            (Line(("{name} need{s}", "That takes"), "days"),),
        ),
        Form(
            "r/k",
            ("{A} want{s} to finish in {k} days. How many pages must {a} read each day?",),
            (Line(("Each day", "{name} read{s}")),),
        ),
    ),
    ask=("How many pages are left?", "How many pages {do} {a} still have to read?"),
)

THEMES = (
    _things("apples pears plums peaches lemons oranges", "basket bag box crate", "pick buy get", "eat sell use"),
    _things(
        "stickers stamps marbles cards coins shells", "box bag jar pack", "find buy collect win", "lose sell", *COLORS
    ),
    _things("cookies muffins rolls pies cupcakes", "tray box plate tin", "bake make buy", "eat sell"),
    _things("pencils crayons erasers notebooks markers", "pack box case bag", "buy get", "lose sell use", *COLORS),
    _things("roses tulips daisies lilies flowers", "vase pot basket box", "pick buy get", "sell use", *COLORS),
    _things(
        "blocks cars dolls puzzles robots balloons", "box bin bag chest", "buy get make", "lose sell break", *COLORS
    ),
    _things("eggs potatoes carrots tomatoes onions", "basket sack crate bowl", "collect buy bring", "cook use sell"),
    MONEY,
    POINTS,
    PAGES,
)
