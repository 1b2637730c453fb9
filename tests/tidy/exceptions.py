"""The places that may break a rule, each with its reason; a limit is never raised instead."""

_BROKER_TOOL = "The local broker is a development tool beside any job: it starts real processes"

# (rule, "path" or "path:Qualified.name") -> why the rule would make this place worse.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("clock", "connectors/kafka/local/waiting.py"): f"{_BROKER_TOOL} and waits for them.",
    ("sleep", "connectors/kafka/local/waiting.py"): f"{_BROKER_TOOL} and waits for them.",
}
