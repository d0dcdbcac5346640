"""Groups of options that commands share: each option is written once, and a command gets the whole group as a dict."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, Optional, Union, get_args, get_origin, get_type_hints

import typer

Group = Mapping[str, inspect.Parameter]
"""Options by name: what a command's signature holds for each."""

_ASIDE = "context"


def group(**options: Any) -> Group:
    """A group of options declared as ``name=Annotated[type, typer.Option(...)]``; none of them is required."""
    return {name: _parameter(name, declared, None) for name, declared in options.items()}


def group_of(kind: Any, panel: str, without: Sequence[str] = ()) -> Group:
    """The options of a dataclass in :mod:`soar_dlm.options`, from the types, defaults and metadata of its fields.

    Those that the class itself declares come first, then those it inherits. Switches have a panel of their own, as
    the names that turn them off would leave too little room for the help of the others.
    """
    hints = get_type_hints(kind)
    inherited = {entry.name for base in kind.__bases__ if is_dataclass(base) for entry in fields(base)}
    return {
        entry.name: _from_field(entry, hints[entry.name], f"{panel}: on or off" if hints[entry.name] is bool else panel)
        for entry in sorted(fields(kind), key=lambda entry: entry.name in inherited)
        if entry.metadata.get("command", False) and entry.name not in without
    }


def takes(**groups: Group) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace parameters of a command by groups of options.

    The parameter called ``name`` receives a dict with those options of ``groups[name]`` that the user gave, on the
    command line or in the environment. Options that were not given are absent, so defaults can be decided later, for
    example by the checkpoint.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        parameters = [inspect.Parameter(_ASIDE, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        for name, parameter in inspect.signature(command).parameters.items():
            own = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
            parameters += groups[name].values() if name in groups else [own]

        @wraps(command)
        def run(**values: Any) -> None:
            context: typer.Context = values.pop(_ASIDE)
            for name, options in groups.items():
                given = {option: values.pop(option) for option in options}
                values[name] = {option: value for option, value in given.items() if _was_given(context, option)}
            command(**values)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _was_given(context: typer.Context, option: str) -> bool:
    source = context.get_parameter_source(option)
    return source is not None and not source.name.startswith("DEFAULT")


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _from_field(entry: Field[Any], hint: Any, panel: str) -> inspect.Parameter:
    assert entry.default is not MISSING, f"{entry.name} needs a default to be an option"
    plain, optional = _plain(hint)
    default, text = entry.default, entry.metadata["help"]
    more: dict[str, Any] = {}
    if optional and default is not None:  # None is a choice of its own, not the absence of one
        more, text = {"parser": _number_or_random, "metavar": "<int>"}, f"{text} 'random' draws a fresh one."
    elif get_origin(plain) is list:
        default, plain = None, Optional[plain]
    elif optional:
        plain = Optional[plain]
    if entry.metadata["metavar"] is not None:
        more["metavar"] = entry.metadata["metavar"]
    option = typer.Option(*entry.metadata["flags"], help=text, rich_help_panel=panel, **more)
    return _parameter(entry.name, Annotated[plain, option], default)


def _plain(hint: Any) -> tuple[Any, bool]:
    """A type as the command line knows it (sequences are lists), and whether it admits None."""
    arguments = get_args(hint)
    optional = type(None) in arguments
    if optional:
        (hint,) = (argument for argument in arguments if argument is not type(None))
        arguments = get_args(hint)
    return (list[arguments[0]] if get_origin(hint) is Sequence else hint), optional  # type: ignore[valid-type]


def _number_or_random(text: Union[str, int]) -> int | None:
    """A seed; "random" asks for a fresh one."""
    if str(text).lower() == "random":
        return None
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a whole number nor 'random'.") from None
