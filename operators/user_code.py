"""Checks of what users pass to stream methods, at the line where they pass it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from operators.functions import Function, copy_function, unfit_call
from operators.stream_operator import OperatorFactory, StreamOperator


def check_function(
    given: object,
    method: str,
    function_class: type[Function],
    entry: str,
    arguments: int,
    *,
    also: str = "",
) -> None:
    """Raises TypeError unless `given` is a `function_class` object or a fitting callable.

    Args:
        given: what the user passed.
        method: the stream method, for the message.
        function_class: the class whose objects the method takes.
        entry: the method of that class that is called per record.
        arguments: how many arguments a plain callable is called with.
        also: what else the method takes, for the message.
    """
    wanted = f"an object of {function_class.__name__} or a callable{also and f', {also}'}"
    _refuse_class(given, method)
    if isinstance(given, function_class):
        _check_methods(given, method, function_class)
        _refuse_async(getattr(given, entry), method)
    elif isinstance(given, Function):
        raise TypeError(
            f"{method}() got a {_kind(given)}, but takes {wanted}; use the stream method that "
            f"fits the function, or derive {type(given).__name__} from {function_class.__name__}"
        )
    elif not callable(given):
        raise TypeError(f"{method}() takes {wanted}, but got {type(given).__name__} {given!r:.80}")
    else:
        _refuse_async(given, method)
        _check_arguments(given, method, arguments)


def check_object(
    given: object, method: str, wanted: type[object], entry: str = "", *, advice: str = ""
) -> None:
    """Raises TypeError unless `given` is an object of class `wanted`; callables do not do.

    `entry` is the method that is called per record, if users derive from the class; `advice`
    what to do instead, where there is better than that.
    """
    _refuse_class(given, method)
    if isinstance(given, wanted):
        if entry:
            _check_methods(given, method, wanted)
            _refuse_async(getattr(given, entry), method)
        return
    if hasattr(given, "build"):
        advice = "call build() first"
    elif entry and not advice:
        advice = f"derive a class from {wanted.__name__} and pass an object of it"
    article = "an" if wanted.__name__[0] in "AEIOU" else "a"
    text = f"{method}() takes {article} {wanted.__name__}, but got {_kind(given)}"
    raise TypeError(f"{text}; {advice}" if advice else text)


def operator_factory(
    operator: Callable[[Any], StreamOperator], function: object
) -> OperatorFactory:
    """Makes one operator per subtask and attempt, each with a copy of `function` of its own."""

    def create() -> StreamOperator:
        return operator(copy_function(function))

    return create


def _kind(given: object) -> str:
    bases = [base.__name__ for base in type(given).__mro__[1:] if issubclass(base, Function)]
    name = type(given).__name__
    return f"{bases[0]} ({name})" if bases and bases[0] != "Function" else f"{name} {given!r:.80}"


def _refuse_class(given: object, method: str) -> None:
    if isinstance(given, type) and issubclass(given, Function):
        raise TypeError(
            f"{method}() got the class {given.__name__}; pass an object of it: "
            f"{method}({given.__name__}())"
        )


def _refuse_async(given: object, method: str) -> None:
    called = given if inspect.isroutine(given) else getattr(given, "__call__", given)  # noqa: B004 - its kind is asked, not whether it is there
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        name = getattr(given, "__qualname__", type(given).__name__)
        raise TypeError(
            f"{method}() got the async function {name}: async user functions are not supported "
            "yet; write it with def"
        )


def _check_methods(given: object, method: str, wanted: type[object]) -> None:
    """Raises TypeError unless the methods that override those of `wanted` take what they get."""
    for name, overridden in inspect.getmembers(wanted, inspect.isfunction):
        own = getattr(given, name)
        if name.startswith("_") or getattr(own, "__func__", own) is overridden:
            continue
        parameters = inspect.signature(overridden).parameters.values()
        _check_arguments(own, method, sum(one.default is one.empty for one in parameters) - 1)


def _check_arguments(given: Callable[..., object], method: str, arguments: int) -> None:
    unfit = unfit_call(given, arguments)
    if unfit is not None:
        signature, error = unfit
        name = getattr(given, "__qualname__", type(given).__name__)
        plural = "argument" if arguments == 1 else "arguments"
        raise TypeError(
            f"{method}() calls its function with {arguments} {plural}, which "
            f"{name}{signature} does not take: {error}"
        )
