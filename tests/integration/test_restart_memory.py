"""A job that starts again does not keep what its failed attempts held."""

import weakref

from runtime import (
    KeyedProcessFunction,
    RestartStrategies,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)

ATTEMPTS = 4


class Held:
    """A value in state."""


class Fails(KeyedProcessFunction[int, int, int]):
    """Holds a value in state and fails, until the last attempt sees what is left of the others."""

    held: list[weakref.ref[Held]]
    left: list[int]

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor: ValueStateDescriptor[Held] = ValueStateDescriptor("value")
        self.value = runtime_context.get_state(descriptor)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        self.left.append(sum(held() is not None for held in self.held))
        held = Held()
        self.value.update(held)
        self.held.append(weakref.ref(held))
        if len(self.held) < ATTEMPTS:
            raise ValueError("planned")


def test_the_state_of_failed_attempts_is_gone_when_the_next_begins() -> None:
    """Each new start would add the size of the state to the process."""
    Fails.held, Fails.left = [], []
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(ATTEMPTS, 1))
    env.from_collection([1]).key_by(lambda number: number).process(Fails()).print()
    env.execute("fails")
    assert Fails.left == [0] * ATTEMPTS
