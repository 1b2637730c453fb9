"""Counts words while they come: the smallest job with a key.

python -m runtime examples/wordcount.py
"""

from __future__ import annotations

from runtime import StreamExecutionEnvironment

LINES = [
    "the river runs to the sea",
    "the sea is never full",
    "to the place the river runs from it runs again",
]


def split(line: str) -> list[tuple[str, int]]:
    """Each word of a line, counted once."""
    return [(word, 1) for word in line.split()]


def add(total: tuple[str, int], one: tuple[str, int]) -> tuple[str, int]:
    """A word's count with one more."""
    return total[0], total[1] + one[1]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    words = env.from_collection(LINES).name("lines").flat_map(split).name("words")
    words.key_by(lambda pair: pair[0]).reduce(add).name("counts").print()
    env.execute("word count")


if __name__ == "__main__":
    main()
