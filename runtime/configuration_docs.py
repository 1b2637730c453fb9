"""Writes `docs/configuration.md`: `python -m runtime.configuration_docs`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from runtime.command_line import FLAG_KEYS
from runtime.config import SECTIONS
from runtime.config_options import ConfigOption, options_of

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

HEAD = """# Configuration

Generated from the settings classes by `python -m runtime.configuration_docs`; do not edit.

Keys are Flink 2's where Flink has one, else `riverrun.<area>.<name>`. They are set by
`--set key=value` on the command line, by `env.configure(Configuration)` in the job, and many by a
flag or a method of their own. A flag outranks `--set`, that outranks the job, that the default.
There is no configuration file. Durations are texts such as `10s`, `200ms` or `1 min`; a bare
number is milliseconds.
"""


def document() -> str:
    """The whole text."""
    flags = {key: "--" + flag.strip("_").replace("_", "-") for flag, key in FLAG_KEYS.items()}
    parts = [HEAD]
    for name, section in SECTIONS.items():
        title = name.capitalize() or "Job"
        what = inspect.getdoc(section) or ""
        rows = [_row(one, flags) for one in options_of(section).values()]
        table = ["| key | value | default | meaning |", "|---|---|---|---|", *rows]
        parts.append(f"## {title}\n{what}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Writes the document."""
    DOCUMENT.write_text(document())
    sys.stdout.write(f"{DOCUMENT}\n")


def _row(one: ConfigOption[object], flags: dict[str, str]) -> str:
    default = one.kind.show(one.default) or "none"
    flag = f" (`{flags[one.key]}`)" if one.key in flags else ""
    allowed = one.kind.allowed.replace("|", "\\|")
    return f"| `{one.key}`{flag} | {allowed} | `{default}` | {one.doc} |"


if __name__ == "__main__":
    main()
