"""What a style rule reports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of one rule at one place; `symbol` is the qualified name where there is one."""

    rule: str
    path: str
    line: int
    message: str
    symbol: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """The names under which an exception may be listed: the file, or a symbol in it."""
        return (self.path, f"{self.path}:{self.symbol}") if self.symbol else (self.path,)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"
