"""Raises an alert when a small payment is followed by a large one within a minute.

    python -m runtime examples/fraud_detection.py

Keyed state remembers the small payment of each account; an event-time timer forgets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from connectors.datagen import DataGeneratorSource
from runtime import (
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
    WatermarkStrategy,
)

SMALL = 1.0
LARGE = 500.0
MINUTE_MS = 60_000


class Payment(NamedTuple):
    """Money that left an account, at a time in milliseconds."""

    account: str
    ts: int
    amount: float


class FraudDetector(KeyedProcessFunction[str, Payment, str]):
    """Flags a large payment right behind a small one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.small_until = runtime_context.get_state(ValueStateDescriptor("small-until", int))

    def process_element(self, value: Payment, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        until = self.small_until.value()
        if until is not None:
            if value.amount > LARGE:
                yield f"ALERT {value.account}: {value.amount:.2f} at {value.ts / 1000:.0f} s"
            # The next payment decides, whatever it is.
            ctx.timer_service().delete_event_time_timer(until)
            self.small_until.clear()
        if value.amount < SMALL:
            until = value.ts + MINUTE_MS
            ctx.timer_service().register_event_time_timer(until)
            self.small_until.update(until)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
        self.small_until.clear()


def make_payment(number: int) -> Payment:
    """Payment `number` of five accounts: one each 5 s, a few of them tiny or huge."""
    amounts = (20.0, 0.5, 75.0, 900.0, 12.5, 0.1, 600.0)
    return Payment(f"account-{number * 7 % 5}", 5_000 * number, amounts[number * number % 11 % 7])


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda payment, _: payment.ts
    )
    generated = DataGeneratorSource(make_payment, count=100, rate_limiter=100)
    payments = env.from_source(generated, watermarks, "payments")
    # One subtask, so that the payments of an account keep their order.
    payments.set_parallelism(1)
    alerts = payments.key_by(lambda payment: payment.account).process(FraudDetector())
    alerts.name("fraud detector").uid("fraud-detector").print()
    env.execute("fraud detection")


if __name__ == "__main__":
    main()
