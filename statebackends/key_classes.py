"""Finding the class of an enum member or dataclass by its `__qualname__` alone.

Keys do not name a module, so the class that a key of this process had is remembered; after a
restore, before any such key came, the class is looked for among those loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakValueDictionary

from statebackends.errors import StateError

_remembered: WeakValueDictionary[str, type] = WeakValueDictionary()


def remember_class(cls: type) -> None:
    """Makes `cls` the class that its `__qualname__` stands for."""
    if _remembered.get(cls.__qualname__) is not cls:
        _remembered[cls.__qualname__] = cls


def class_named(qualname: str, root: type | None) -> type:
    """The class of that `__qualname__`; below `root`, or a dataclass if that is None.

    Raises:
        StateError: no loaded module defines one.
    """
    cls = _remembered.get(qualname)
    if cls is None:
        found = [
            candidate
            for candidate in _subclasses(root or object)
            if candidate.__qualname__ == qualname
            and (root is not None or hasattr(candidate, "__dataclass_fields__"))
        ]
        if not found:
            raise StateError(
                f"a stored key is of the class {qualname!r}, which no loaded module defines;"
                " import it in the job file, or define it where it was defined before"
            )
        # The newest: a job file that runs again in one process defines its classes again.
        cls = found[-1]
        remember_class(cls)
    return cls


def _subclasses(root: type) -> Iterator[type]:
    seen = {root}
    waiting = [root]
    while waiting:
        cls = waiting.pop()
        subclasses: list[type] = type.__subclasses__(cls)
        for subclass in subclasses:
            if subclass not in seen:
                seen.add(subclass)
                waiting.append(subclass)
                yield subclass
