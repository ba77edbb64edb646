"""A check of clients' settings against the rules of their versions."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.results import to_result
from kassign_spark.schemas import table_of
from kassign_spark.settings.broker_rules import BROKER_NUMBERS, BROKER_SETTINGS, broker_rules
from kassign_spark.settings.client_rules import (
    CLIENT_NUMBERS,
    CLIENT_SETTINGS,
    GROUP_ID,
    INSTANCE_ID,
    PROTOCOL,
    STRATEGY,
    client_rules,
)
from kassign_spark.settings.client_types import VALUE_TYPES, wrong_values
from kassign_spark.settings.client_versions import version_number
from kassign_spark.settings.setting_rules import ADVICE, REFUSED, Rule, setting_value, trim_setting

CLIENTS = table_of("clients", "client string, client_version string, setting string, value string")
"""One row per client and setting, as in its properties file."""

_SHOWN = [*CLIENT_SETTINGS, *BROKER_SETTINGS]
"""Settings that have values which are no secrets."""
SETTINGS = [*dict.fromkeys([*_SHOWN, *(value_type.setting for value_type in VALUE_TYPES)])]
"""All that some rule looks at."""
_NUMBERS = [*CLIENT_NUMBERS, *BROKER_NUMBERS]
_VERSION = "client_version"
_OF_LIBRDKAFKA = r"^((range|roundrobin|cooperative-sticky)\s*(,\s*|\z))+"
"""Its names of assignors; Java's client has classes."""


def check_settings(clients: DataFrame) -> DataFrame:
    """List problems of the settings of consumers, by the rules of their Java client.

    Rules: the types, ranges and choices of all settings that the client knows; heartbeat below
    session, three heartbeats in a session; the broker's limits of the session timeout; request
    timeout above the session timeout before 2.0; `group.instance.id` well formed and used by one
    client of a group; clients of Java and of librdkafka in one group; `group.id` not blank;
    assignor classes that the version has, none twice; what `group.protocol` allows, and
    what has no effect or a surprise with the new one; and a broker's `group.consumer.*` and a
    group's `consumer.*` settings (KIP-848): their client_version is the broker's. A setting that is
    left out has the default of the client's version. Settings without a rule, and null values, are
    not looked at.

    Args:
        clients: one row per client and setting: client string (any name, unique), client_version
            string (such as ``3.9.1``, the same in all rows of a client), setting string, value
            string. A client all on defaults has one row with a null setting.

    Returns:
        client string, setting string, value string (as given, or the default at fault; null: not
        set), severity string: `refused` by the client's constructor or by the broker, or `advice`,
        detail string. Empty: nothing to say. A client of no known version gets one row with the
        setting `client_version` and no other check; one setting given with different values gets
        one row, and its least value (by text) is checked. Values that may be secret, such as those
        of settings without a rule, are never in it: they are null.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    rows = conform(clients, CLIENTS).where("setting IS NULL OR value IS NOT NULL")
    by_client = _group_by_client(rows)
    rules = [*client_rules(), *broker_rules()]
    with_version = by_client.where(F.col("version").isNotNull())
    known_findings = with_version.select(
        "client", F.explode(F.concat(_findings(rules), wrong_values())).alias("finding")
    )
    unknown = by_client.where(F.col("version").isNull()).select(
        "client",
        F.lit(_VERSION).alias("setting"),
        F.array_join("versions", ", ").alias("value"),
        F.lit(REFUSED).alias("severity"),
        F.lit("not one version such as 3.9.1; this client was not checked").alias("detail"),
    )
    every = (
        known_findings.select("client", "finding.*")
        .unionByName(unknown)
        .unionByName(_ambiguous(rows))
    )
    return to_result(every, "check_settings", has_cluster_id=False)


def refused_as_consumer(clients: DataFrame) -> DataFrame:
    """Find clients that would be refused with `group.protocol=consumer`.

    Args:
        clients: as in ``check_settings``.

    Returns:
        group_id string: `group.id` of the client, detail string: which client, and why. Empty:
        all of them can change over as they are.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    rows = conform(clients, CLIENTS)
    others = rows.where(~F.col("setting").eqNullSafe(PROTOCOL))
    every = rows.select("client", _VERSION).distinct()
    asking = every.select("*", F.lit(PROTOCOL).alias("setting"), F.lit("consumer").alias("value"))
    findings = check_settings(others.unionByName(asking))
    is_too_old = (F.col("setting") == PROTOCOL) & (F.col("severity") == ADVICE)
    groups = rows.where(F.col("setting") == GROUP_ID).select(
        "client", F.regexp_replace("value", r"^[\x00-\x20]+|[\x00-\x20]+\z", "").alias("group_id")
    )
    detail = """concat('client "', client, '", ', setting, ': ', detail) as detail"""
    wrong = findings.where((F.col("severity") == REFUSED) | is_too_old)
    return wrong.join(groups.distinct(), on="client", how="inner").selectExpr("group_id", detail)


def _group_by_client(rows: DataFrame) -> DataFrame:
    """Return one row per client: client, versions, version, given, number and two of its group.

    same_instance: clients of its instance id; has_other_library: whether clients of Java and of
    librdkafka are in it.
    """
    values = rows.groupBy("client", "setting").agg(F.min("value").alias("value"))
    entries = "collect_list(if(setting is null, null, struct(setting, value)))"
    settings = values.groupBy("client").agg(
        F.expr(f"map_from_entries(array_sort({entries})) as given")
    )
    versions = rows.groupBy("client").agg(F.array_sort(F.collect_set(_VERSION)).alias("versions"))
    is_one = F.size("versions") == 1
    clients = versions.join(
        settings, on=versions["client"].eqNullSafe(settings["client"]), how="inner"
    )
    instance = Window.partitionBy(trim_setting(GROUP_ID), trim_setting(INSTANCE_ID))
    group = Window.partitionBy(trim_setting(GROUP_ID))
    return clients.select(
        versions["client"],
        "versions",
        version_number(F.when(is_one, F.get("versions", F.lit(0)))).alias("version"),
        "given",
        F.create_map(
            *(part for name in _NUMBERS for part in (F.lit(name), _whole_number(name)))
        ).alias("number"),
        F.when(
            setting_value(GROUP_ID).isNotNull() & setting_value(INSTANCE_ID).isNotNull(),
            F.count("*").over(instance),
        ).alias("same_instance"),
        (
            setting_value(GROUP_ID).isNotNull()
            & (F.count_if(trim_setting(STRATEGY).rlike(_OF_LIBRDKAFKA)).over(group) > 0)
            & (F.count_if(trim_setting(STRATEGY).contains("Assignor")).over(group) > 0)
        ).alias("has_other_library"),
    )


def _whole_number(setting: str) -> Column:
    """Return the value as Java's ``Integer.parseInt`` reads it, blanks around it aside, or null."""
    text = trim_setting(setting)
    number = F.when(text.rlike(r"^[+-]?[0-9]{1,18}\z"), text).cast("bigint")
    return F.when(number.between(-(2**31), 2**31 - 1), number)


def _findings(rules: list[Rule]) -> Column:
    """Return an array of the rules that are broken, as setting, value, severity, detail."""
    cases = [
        F.when(
            rule.broken,
            F.struct(
                F.lit(rule.setting).alias("setting"),
                (
                    setting_value(rule.setting) if rule.value is None else rule.value.cast("string")
                ).alias("value"),
                F.lit(rule.severity).alias("severity"),
                rule.detail.alias("detail"),
            ),
        )
        for rule in rules
    ]
    return F.array_compact(F.array(*cases))


def _ambiguous(rows: DataFrame) -> DataFrame:
    values = rows.where("setting IS NOT NULL").groupBy("client", "setting")
    several = values.agg(F.array_sort(F.collect_set("value")).alias("values"))
    return several.where(F.size("values") > 1).select(
        "client",
        "setting",
        # Another one may be a password.
        F.when(F.col("setting").isin(_SHOWN), F.array_join("values", ", ")).alias("value"),
        F.lit(REFUSED).alias("severity"),
        F.lit("given with different values; give one").alias("detail"),
    )
