"""The plugins of the whole suite.

Options of its runners are registered by these too: pytest reads only this file early when it runs
without a path.
"""

pytest_plugins = [
    "pytester",
    "tests.conformance.options",
    "tests.kafka_fixtures",
    "tests.kafka_guard",
]
