"""Building blocks of the rules for settings: refusals by version, and advice.

Every rule was tried on the clients of the versions around its limits. Rules look at columns that
``client_settings`` makes: ``version`` (``client_versions.version_number``), ``given`` (a map of
what is set), and for the whole-number settings ``number`` (a map, null where a text is not a
number).
"""

from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.settings.client_versions import version_of

REFUSED, ADVICE, UNKNOWN = "refused", "advice", "unknown"
BLANKS_AROUND = r"^[\x00-\x20]+|[\x00-\x20]+\z"
"""Characters that Java's ``String.trim`` removes."""
HARMLESS_NUMBER = "|[+-]?[0-9][0-9_.,]{0,29} ?[A-Za-z]{0,12}"
"""Numbers that can be shown: not a password on the wrong line."""


class Rule(NamedTuple):
    """A rule that a client breaks where ``broken`` is true; null counts as false."""

    setting: str
    severity: str
    broken: Column
    detail: Column
    value: Column | None
    """The value at fault where it is not the given text, such as a default."""


def refusal(
    setting: str, broken: Column, detail: Column | str, value: Column | None = None
) -> Rule:
    """Return a rule about values that the client's constructor or the broker refuses."""
    return Rule(setting, REFUSED, broken, F.lit(detail), value)


def recommendation(
    setting: str, broken: Column, detail: Column | str, value: Column | None = None
) -> Rule:
    """Return a rule about values that they accept, but that are better avoided."""
    return Rule(setting, ADVICE, broken, F.lit(detail), value)


def setting_value(setting: str) -> Column:
    """Return the text that a setting is set to, or null."""
    return F.try_element_at("given", F.lit(setting))


def trim_setting(setting: str) -> Column:
    """Return a setting's value as Kafka reads it: without blanks around it (``String.trim``)."""
    return F.regexp_replace(setting_value(setting), BLANKS_AROUND, "")


def no_number(setting: str, applies: Column) -> Rule:
    """Return the rule that a setting is a whole number."""
    is_none = setting_value(setting).isNotNull() & number(setting).isNull()
    value = F.when(
        trim_setting(setting).rlike(rf"^(?:{HARMLESS_NUMBER})\z"), setting_value(setting)
    )
    return refusal(setting, applies & is_none, "not a whole number of 32 bits", value)


def number(setting: str) -> Column:
    """Return the number that a setting is set to; null where it is none, or not set."""
    return F.try_element_at("number", F.lit(setting))


def since(version: str) -> Column:
    """Return whether a client has a version or a later one."""
    return F.col("version") >= version_of(version)
