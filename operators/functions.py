"""User functions: classes with PyFlink's names; a plain callable serves wherever one is taken.

A function object is described once and copied for each subtask and attempt (`copy_function`),
so that what it keeps in attributes is its subtask's own.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from operators.advice import STATE_IN_OPEN

if TYPE_CHECKING:
    from operators.runtime_context import RuntimeContext

T = TypeVar("T")
F = TypeVar("F")
IN = TypeVar("IN")
OUT = TypeVar("OUT")
ACC = TypeVar("ACC")
K = TypeVar("K", bound=Hashable)


class Function(ABC):  # noqa: B024 - both methods are optional for users
    """What all user functions share (PyFlink: `Function`)."""

    _advice: ClassVar[Mapping[str, str]] = STATE_IN_OPEN

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027 - optional
        """Called once per subtask and attempt before the first record."""

    def close(self) -> None:  # noqa: B027 - optional
        """Called once at the end, also after a failure."""


class MapFunction(Function, Generic[IN, OUT]):
    """One record in, one out."""

    @abstractmethod
    def map(self, value: IN) -> OUT:
        """The record that stands for `value`."""


class FlatMapFunction(Function, Generic[IN, OUT]):
    """One record in, any number out."""

    @abstractmethod
    def flat_map(self, value: IN) -> Iterable[OUT] | None:
        """The records that stand for `value`; None means none."""


class FilterFunction(Function, Generic[IN]):
    """Says which records stay."""

    @abstractmethod
    def filter(self, value: IN) -> bool:
        """True if `value` stays."""


class ReduceFunction(Function, Generic[T]):
    """Combines two values of a type into one; must be associative."""

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """The combination of what was reduced so far and the next value."""


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """Aggregates values step by step in an accumulator."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """A fresh accumulator, as before the first value."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """The accumulator with `value` taken in; may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """The result so far."""

    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """The accumulator of all values of both; only session windows need it."""
        raise NotImplementedError(
            f"{type(self).__name__}.merge is needed for windows that merge (sessions)"
        )

    @overload
    @staticmethod
    def of(
        create: Callable[[], ACC],
        add: Callable[[IN, ACC], ACC],
        get_result: None = None,
        merge: Callable[[ACC, ACC], ACC] | None = None,
    ) -> AggregateFunction[IN, ACC, ACC]: ...

    @overload
    @staticmethod
    def of(
        create: Callable[[], ACC],
        add: Callable[[IN, ACC], ACC],
        get_result: Callable[[ACC], OUT],
        merge: Callable[[ACC, ACC], ACC] | None = None,
    ) -> AggregateFunction[IN, ACC, OUT]: ...

    @staticmethod
    def of(
        create: Callable[[], ACC],
        add: Callable[[IN, ACC], ACC],
        get_result: Callable[[ACC], OUT] | None = None,
        merge: Callable[[ACC, ACC], ACC] | None = None,
    ) -> AggregateFunction[IN, ACC, Any]:
        """An aggregate function from callables; without `get_result` the accumulator itself."""
        return CallableAggregate(create, add, get_result, merge)


class CallableAggregate(AggregateFunction[IN, ACC, OUT]):
    """An aggregate function made of callables, see `AggregateFunction.of`."""

    def __init__(
        self,
        create: Callable[[], ACC],
        add: Callable[[IN, ACC], ACC],
        get_result: Callable[[ACC], OUT] | None = None,
        merge: Callable[[ACC, ACC], ACC] | None = None,
    ) -> None:
        # The callables shadow the methods, so that a call costs what the callable costs.
        shadows = {
            "create_accumulator": create,
            "add": add,
            "get_result": _itself if get_result is None else get_result,
            "merge": merge,
        }
        self.__dict__.update((name, f) for name, f in shadows.items() if f is not None)

    def create_accumulator(self) -> ACC:
        """Replaced by the callable."""
        raise AssertionError

    def add(self, value: IN, accumulator: ACC) -> ACC:
        """Replaced by the callable."""
        raise AssertionError

    def get_result(self, accumulator: ACC) -> OUT:
        """Replaced by the callable."""
        raise AssertionError


def _itself(value: object) -> object:
    return value


class KeySelector(Function, Generic[IN, K]):
    """Says which key a record belongs to; must give the same answer each time."""

    @abstractmethod
    def get_key(self, value: IN) -> K:
        """The key of `value`."""


def callable_of(function: object, method: str) -> Callable[..., object]:
    """What to call per record: `function.method` if there is one, else `function` itself.

    Raises `TypeError` if it is neither, and for async functions, which are not supported yet.
    """
    bound = getattr(function, method, None)
    if bound is None:
        if not callable(function):
            raise TypeError(
                f"expected a callable or an object with a method {method!r}, "
                f"not {type(function).__name__}: {function!r}"
            )
        bound = function
    elif isinstance(function, type):
        raise TypeError(f"expected an instance, not the class: write {function.__name__}()")
    inner = bound if inspect.isroutine(bound) else getattr(bound, "__call__", bound)  # noqa: B004 - the method itself is inspected
    if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        raise TypeError(f"async user functions are not supported yet: {function!r}")
    result: Callable[..., object] = bound
    return result


def unfit_call(
    function: Callable[..., object], arguments: int
) -> tuple[inspect.Signature, TypeError] | None:
    """Why `function` cannot be called with so many arguments, as far as its signature says.

    Some built-in callables have none; they show when they are called.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        return signature, error
    return None


def copy_function(function: F) -> F:
    """A copy of a user function for one subtask and attempt.

    A deep copy; where an attribute cannot be copied (a lock, a file, a client) that attribute is
    shared and the others are copied. Functions, classes and modules are what they are.
    """
    try:
        return copy.deepcopy(function)
    except Exception:
        return _copy_where_possible(function)


def _copy_where_possible(function: F) -> F:
    if isinstance(function, MethodType):
        return MethodType(function.__func__, _copy_where_possible(function.__self__))  # type: ignore[return-value]  # the method of the copy
    duplicate = copy.copy(function)
    # One memo, so that attributes that share an object share its copy.
    memo: dict[int, object] = {}
    for name, value in getattr(function, "__dict__", {}).items():
        attempt = dict(memo)
        try:
            copied = copy.deepcopy(value, attempt)
        except Exception:
            copied = value
        else:
            memo = attempt
        duplicate.__dict__[name] = copied
    return duplicate
