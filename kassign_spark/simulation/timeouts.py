"""The timeouts that decide when an event is noticed."""

from dataclasses import asdict, dataclass

from kassign_spark.errors import InputError


@dataclass(frozen=True)
class Timeouts:
    """Milliseconds, with the defaults of Kafka's clients since 3.0 and of its brokers.

    Attributes:
        session_timeout_ms: ``session.timeout.ms``, after which a silent member is dropped.
        max_poll_interval_ms: ``max.poll.interval.ms``; also how long a rebalance waits for members
            to join again.
        metadata_max_age_ms: ``metadata.max.age.ms``: how often the leader looks at the topics.
        initial_rebalance_delay_ms: ``group.initial.rebalance.delay.ms`` of the broker: how long an
            empty group waits for more members.
        heartbeat_interval_ms: ``group.consumer.heartbeat.interval.ms``, of groups of the new
            protocol only.
        assignment_interval_ms: ``group.consumer.assignment.interval.ms``: such a group's targets
            are computed at most that often.

    Raises:
        InputError: a value is not a whole number of milliseconds of 32 bits, or too small.
    """

    session_timeout_ms: int = 45_000
    max_poll_interval_ms: int = 300_000
    metadata_max_age_ms: int = 300_000
    initial_rebalance_delay_ms: int = 3_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = LEAST[name]
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"{name} is {value!r}; give whole milliseconds, at least {least}")
            if value > _MOST:
                raise InputError(f"{name} is {value}; give at most {_MOST} milliseconds")


_MOST = 2**31 - 1
LEAST = {
    "session_timeout_ms": 1,
    "max_poll_interval_ms": 1,
    "metadata_max_age_ms": 0,
    "initial_rebalance_delay_ms": 0,
    "heartbeat_interval_ms": 1,
    "assignment_interval_ms": 0,
}
