"""The plugins of the whole suite.

Options of its runners are registered by these too: pytest reads only this file early when it runs
without a path.
"""

import signal

from hypothesis import settings

pytest_plugins = [
    "pytester",
    "tests.conformance.options",
    "tests.kafka_fixtures",
    "tests.kafka_guard",
]

# How long an example takes depends on what else runs; each test has a limit as a whole.
settings.register_profile("riverrun", deadline=None)
settings.load_profile("riverrun")

# Where the suite was started in the background SIGINT is ignored, and so it would be in every
# process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
