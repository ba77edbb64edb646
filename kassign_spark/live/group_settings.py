"""Settings of groups of the new protocol, as far as one may read them (DescribeConfigs)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kassign_spark.live.admin import batches, send

_OF_CONSUMER_GROUPS = "consumer."
"""The other settings of a group are for when it is of another type."""


class DescribedSettings(NamedTuple):
    """What the cluster said of some groups' settings.

    Attributes:
        rows: group_id, setting, value: what applies, whether set for the group or the broker's
            default.
        reasons: of groups whose settings are not in the rows, by name.
    """

    rows: list[tuple[str, str, str | None]]
    reasons: dict[str, str]


def describe_group_settings(admin: Any, names: Sequence[str]) -> DescribedSettings:
    """Ask for the settings of groups, many in a request; any broker knows them all.

    Args:
        admin: kafka-python's admin client.
        names: groups of the new protocol.
    """
    from kafka import errors
    from kafka.admin import ConfigResourceType
    from kafka.protocol.admin import DescribeConfigsRequest

    found = DescribedSettings([], {})
    for batch in batches(names):
        resources = [(ConfigResourceType.GROUP, name, None) for name in batch]
        for result in send(admin, DescribeConfigsRequest(resources=resources)).results:
            if result.error_code:
                error = errors.for_code(result.error_code)
                found.reasons[result.resource_name] = str(error(result.error_message or ""))
                continue
            found.rows.extend(
                (result.resource_name, config.name, config.value)
                for config in sorted(result.configs, key=lambda config: config.name)
                if config.name.startswith(_OF_CONSUMER_GROUPS)
            )
    return found
