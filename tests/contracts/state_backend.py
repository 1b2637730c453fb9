"""What every keyed state backend does; a test class per backend inherits it.

The facts are those of Flink's `StateBackendTestBase`, as far as its parts are ours.
"""

from tests.contracts.state_keys import StateKeys
from tests.contracts.state_kinds import StateKinds
from tests.contracts.state_snapshots import StateSnapshots


class StateBackendContract(StateKinds, StateKeys, StateSnapshots):
    """Inherit and define `make`."""
