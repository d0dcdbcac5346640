"""Writing one pipeline as Python in several styles: nested, step by step, and as a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from soar_dlm.tasks.mini_code_operations import ATOM, Operation, Type

Step = tuple[Operation, tuple[Any, ...]]

ITEM: dict[Type, str] = {"ints": "x", "words": "w", "str": "c"}
RESULT: dict[Type, str] = {"ints": "ys", "words": "ws", "str": "t", "int": "y"}


class NoExpression(Exception):
    """The operation can only be written as a loop."""


@dataclass(frozen=True)
class Value:
    """An expression. With ``source`` it is a comprehension, and ``code`` says what one item becomes."""

    code: str
    binds: int = ATOM
    source: str = ""
    item: str = ""
    conditions: tuple[str, ...] = ()

    @property
    def clause(self) -> str:
        """The comprehension without its brackets."""
        kept = f" if {' and '.join(self.conditions)}" if self.conditions else ""
        return f"{self.code} for {self.item} in {self.source}{kept}"

    @property
    def whole(self) -> str:
        return f"[{self.clause}]" if self.source else self.code


def bodies(steps: Sequence[Step], parameter: str) -> list[str]:
    """The body in every style that suits the pipeline, without repeats."""
    guard, rest = (steps[0], steps[1:]) if steps[0][0].role == "guard" else (None, steps)
    written = [
        _nested(guard, rest, parameter),
        _step_by_step(guard, rest, parameter),
        _loop(guard, rest, parameter),
    ]
    return list(dict.fromkeys("\n".join(f"    {line}" for line in lines) for lines in written if lines))


def _fill(operation: Operation, template: str, constants: tuple[Any, ...], value: Value) -> str:
    """The template with its constants and its operand, in brackets where the grammar needs them."""
    if value.source:
        sole = operation.code.endswith(("({x})", "({x}))")) and not operation.code.startswith("len")
        code = value.clause if sole else value.whole
    else:
        code = value.code if value.binds >= operation.need else f"({value.code})"
    return template.format(x=code, **dict(zip("abc", constants, strict=False)))


def _items(value: Value, kind: Type) -> Value:
    """``value`` as a comprehension that keeps each item as it is."""
    if value.source:
        return value
    source = value.code
    if source.startswith("list(range(") and source.endswith("))"):
        source = source[5:-1]
    return Value(ITEM[kind], ATOM, source, ITEM[kind])


def _about_item(step: Step, items: Value) -> str:
    operation, constants = step
    return _fill(operation, operation.code, constants, replace(items, source=""))


def _extend(value: Value, step: Step, lines: list[str]) -> Value:
    """``value`` after one more operation; a line is added first where the operand must be a variable."""
    operation, constants = step
    if not operation.code:
        raise NoExpression
    if operation.role in ("filter", "map", "any", "all"):
        items = _items(value, operation.takes)
        about = _about_item(step, items)
        if operation.role == "filter":
            return replace(items, conditions=(*items.conditions, about))
        mapped = replace(items, code=about, binds=operation.binds)
        return mapped if operation.role == "map" else Value(f"{operation.role}({mapped.clause})")
    if operation.repeats and not value.whole.isidentifier():
        name = RESULT[operation.takes]
        lines.append(f"{name} = {value.whole}")
        value = Value(name)
    code = _fill(operation, operation.code, constants, value)
    if operation.role == "choose":
        return Value(f"{constants[-2]} if {code} else {constants[-1]}", 0)
    return Value(code, operation.binds)


def _guard_lines(guard: Step | None, parameter: str) -> list[str]:
    if guard is None:
        return []
    operation, constants = guard
    condition = _fill(operation, operation.code, constants, Value(parameter))
    return [f"if {condition}:", f"    return {constants[-1]}"]


def _finish(steps: Sequence[Step], value: Value, lines: list[str]) -> list[str]:
    """``lines`` and the return of what ``steps`` make of ``value``, a last choice written as an if."""
    for step in steps:
        operation, constants = step
        if operation.role == "choose":
            condition = _fill(operation, operation.code, constants, value)
            return [*lines, f"if {condition}:", f"    return {constants[-2]}", f"return {constants[-1]}"]
        value = _extend(value, step, lines)
    return [*lines, f"return {value.whole}"]


def _nested(guard: Step | None, steps: Sequence[Step], parameter: str) -> list[str]:
    """One expression, or as few lines as possible."""
    lines: list[str] = []
    value = Value(parameter)
    try:
        for step in steps:
            value = _extend(value, step, lines)
    except NoExpression:
        return []
    if guard is None or lines:
        return [*_guard_lines(guard, parameter), *lines, f"return {value.whole}"]
    operation, constants = guard
    if operation.code == "not {x}":
        return [f"return {value.whole} if {parameter} else {constants[-1]}"] if value.binds else []
    condition = _fill(operation, operation.code, constants, Value(parameter))
    return [f"return {constants[-1]} if {condition} else {value.whole}"]


def _step_by_step(guard: Step | None, steps: Sequence[Step], parameter: str) -> list[str]:
    """One assignment for each operation but the last."""
    lines = _guard_lines(guard, parameter)
    value = Value(parameter)
    try:
        for step in steps[:-1]:
            name = RESULT[step[0].gives]
            lines.append(f"{name} = {_extend(value, step, lines).whole}")
            value = Value(name)
        return _finish(steps[-1:], value, lines)
    except NoExpression:
        return []


def _loop(guard: Step | None, steps: Sequence[Step], parameter: str) -> list[str]:
    """A loop over the items; what is done to an item is one expression under one condition."""
    lines = _guard_lines(guard, parameter)
    at = next((at for at, (operation, _) in enumerate(steps) if operation.role != "whole" or operation.update), None)
    if at is None or steps[at][0].role == "choose":
        return []
    end = at
    while end < len(steps) and steps[end][0].role in ("filter", "map"):
        end += 1
    value = Value(parameter)
    try:
        for step in steps[:at]:
            value = _extend(value, step, lines)
        items = _items(Value(value.whole), steps[at][0].takes)
        done = items
        for step in steps[at:end]:
            done = _extend(done, step, [])
        kind = steps[end - 1][0].gives if end > at else steps[at][0].takes
        before, inside, after, value, used = _ending(steps[end] if end < len(steps) else None, done, kind)
        lines += [*before, f"for {items.item} in {items.source}:"]
        if done.conditions:
            lines.append(f"    if {' and '.join(done.conditions)}:")
            inside = ["    " + line for line in inside]
        lines += ["    " + line for line in inside]
        return [*lines, *after] if after else _finish(steps[end + used :], value, lines)
    except NoExpression:
        return []


Ending = tuple[list[str], list[str], list[str], Value, int]


def _ending(step: Step | None, items: Value, kind: Type) -> Ending:
    """Lines before the loop, inside it and after it, the value it leaves, and how many steps that used up."""
    if step is not None and step[0].role in ("any", "all"):
        about, found = _about_item(step, items), step[0].role == "any"
        test = about if found else f"not {about}"
        return [], [f"if {test}:", f"    return {found}"], [f"return {not found}"], Value(""), 1
    if step is not None and step[0].update:
        update = step[0].update.format(x=items.code)
        return [f"total = {step[0].start}"], [update], [], Value("total"), 1
    name = RESULT[kind]
    return [f"{name} = []"], [f"{name}.append({items.code})"], [], Value(name), 0
