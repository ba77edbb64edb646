"""Kafka consumer-group partition assignment for whole fleets, as Spark DataFrames.

Functions take and give DataFrames. Groups never see each other's rows: the key of everything is
(cluster_id, group_id). ``cluster_id`` may be left out of all tables of a call; its result has it
where they have it.

The tables that are named in what follows, each column with its type. `?`: may be null or absent;
further columns are passed over. A count fits an int; any whole-number type will do.

- ``schemas.MEMBERS``: cluster_id string?, group_id string, member_id string,
  group_instance_id string?, rack_id string?, topics `array<string>`?, topics_pattern string?,
  generation int?, member_seq int?, assignor string?, topics_regex string?, group_type string?,
  capacity double?, client string?, is_leader boolean?, client_id string?,
  subscription binary?.
  A member has ``topics`` or ``topics_pattern``; one of a group of the new protocol may have
  ``topics_regex`` beside its topics.
- ``schemas.TOPICS``: cluster_id string?, topic string, num_partitions int,
  replica_racks `array<array<string>>`?, topic_id string?. Or one row per partition:
  cluster_id string?, topic string, partition int.
- ``schemas.OWNED`` and ``schemas.ASSIGNMENT``: cluster_id string?, group_id string,
  member_id string, topic string, partition int. What one rebalance gives, the next one takes.
  ``owned`` may have position int?, the place in the list that the member sends.
- ``schemas.WEIGHTS``: cluster_id string?, group_id string?, topic string, partition int,
  weight double, move_cost double?.
- ``schemas.OFFSETS``: cluster_id string?, group_id string?, topic string, partition int,
  begin_offset bigint, end_offset bigint, committed_offset bigint?, as_of timestamp.
- ``CANDIDATES``: cluster_id string?, group_id string, member_id string, assignors `array<string>`:
  ``partition.assignment.strategy``, the preferred one first; null is the client's default.
- ``LEADERS``: cluster_id string?, topic string, partition int, leader int?: a broker's id.
- ``events.EVENTS``: cluster_id string?, event int, kind string, line int?, group_id string?,
  member_id string?, group_instance_id string?, rack_id string?, topics `array<string>`?,
  topics_pattern string?, assignors `array<string>`?, new_member_id string?, downtime_ms int?,
  topic string?, num_partitions int?, topics_regex string?, stop string?, computed_before_ms int?,
  replica_racks `array<array<string>>`?, session_timeout_ms int?, max_poll_interval_ms int?,
  metadata_max_age_ms int?, initial_rebalance_delay_ms int?, heartbeat_interval_ms int?,
  assignment_interval_ms int?.

``Assignor`` is the type of a strategy: a function from ``Eligible`` and ``Settings`` to the columns
of ``schemas.ASSIGNMENT``. ``ASSIGNORS`` has Kafka's own by name; one of yours is as good.

Errors derive from ``KassignError``: ``SchemaError`` (columns), ``InputError`` (values),
``SettingsError``, ``OutputError``, ``ClusterError``, ``WorkerError`` (Spark's Python workers run
another interpreter) and ``NotConvergedError``, in ``kassign_spark.errors``; the text is one line
for a person.

The modules ``kassign_spark.inputs``, ``.plans``, ``.graph``, ``.simulation``, ``.log``,
``.history``, ``.brokers``, ``.producer`` and ``.settings`` list the same functions by topic.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kassign_spark.assignors import ASSIGNORS as ASSIGNORS
    from kassign_spark.assignors import Assignor as Assignor
    from kassign_spark.assignors.weighted.options import Bounds as Bounds
    from kassign_spark.assignors.weighted.options import Limit as Limit
    from kassign_spark.brokers import coordinator_load as coordinator_load
    from kassign_spark.brokers import coordinator_partition as coordinator_partition
    from kassign_spark.brokers import coordinators as coordinators
    from kassign_spark.errors import KassignError as KassignError
    from kassign_spark.graph import Eligibility as Eligibility
    from kassign_spark.graph import FleetGraph as FleetGraph
    from kassign_spark.graph import bottlenecks as bottlenecks
    from kassign_spark.graph import eligibility as eligibility
    from kassign_spark.graph import fleet_graph as fleet_graph
    from kassign_spark.graph import group_clusters as group_clusters
    from kassign_spark.graph import touched_by as touched_by
    from kassign_spark.groups.eligible import Eligible as Eligible
    from kassign_spark.history import explain_history as explain_history
    from kassign_spark.history import rebalances as rebalances
    from kassign_spark.history import storms as storms
    from kassign_spark.inputs import resolve_patterns as resolve_patterns
    from kassign_spark.inputs import touched_groups as touched_groups
    from kassign_spark.log import GroupLog as GroupLog
    from kassign_spark.log import read_group_log as read_group_log
    from kassign_spark.measures.balance import balance as balance
    from kassign_spark.measures.violations import violations as violations
    from kassign_spark.plans import check_migration as check_migration
    from kassign_spark.plans import choose_assignors as choose_assignors
    from kassign_spark.plans import deliver as deliver
    from kassign_spark.plans import listener_calls as listener_calls
    from kassign_spark.plans import partition_weights as partition_weights
    from kassign_spark.plans.assign import assign as assign
    from kassign_spark.plans.by_weight import plan_by_weight as plan_by_weight
    from kassign_spark.plans.by_weight import tradeoff as tradeoff
    from kassign_spark.plans.diff import diff as diff
    from kassign_spark.plans.predict import predict as predict
    from kassign_spark.plans.predict import predict_rebalance as predict_rebalance
    from kassign_spark.plans.rebalance import rebalance as rebalance
    from kassign_spark.plans.summary import summarize as summarize
    from kassign_spark.producer import member_traffic as member_traffic
    from kassign_spark.producer import moved_keys as moved_keys
    from kassign_spark.producer import null_key_shares as null_key_shares
    from kassign_spark.producer import partition_for_key as partition_for_key
    from kassign_spark.producer import partition_traffic as partition_traffic
    from kassign_spark.producer import place_records as place_records
    from kassign_spark.settings import check_settings as check_settings
    from kassign_spark.settings.computing import Settings as Settings
    from kassign_spark.simulation import Sweep as Sweep
    from kassign_spark.simulation import Timeouts as Timeouts
    from kassign_spark.simulation import parse_sweep as parse_sweep
    from kassign_spark.simulation import simulate as simulate
    from kassign_spark.simulation import summarize_events as summarize_events
    from kassign_spark.simulation import sweep as sweep
    from kassign_spark.tables.snapshots import Snapshot as Snapshot
    from kassign_spark.tables.snapshots import read_snapshot as read_snapshot
    from kassign_spark.tables.snapshots import write_snapshot as write_snapshot
    from kassign_spark.validation.validate import validate as validate
    from kassign_spark.whatif.advise import advise as advise
    from kassign_spark.whatif.compare import compare as compare
    from kassign_spark.whatif.explain import explain as explain
    from kassign_spark.whatif.migrate import Migration as Migration
    from kassign_spark.whatif.migrate import migrate as migrate

__version__ = "0.1.0"
_HOMES = {
    "assignors": "ASSIGNORS Assignor",
    "assignors.weighted.options": "Bounds Limit",
    "brokers": "coordinator_load coordinator_partition coordinators",
    "errors": "KassignError",
    "graph": "Eligibility FleetGraph bottlenecks eligibility fleet_graph group_clusters touched_by",
    "groups.eligible": "Eligible",
    "history": "explain_history rebalances storms",
    "inputs": "resolve_patterns touched_groups",
    "log": "GroupLog read_group_log",
    "measures.balance": "balance",
    "measures.violations": "violations",
    "plans": "check_migration choose_assignors deliver listener_calls partition_weights",
    "plans.assign": "assign",
    "plans.by_weight": "plan_by_weight tradeoff",
    "plans.diff": "diff",
    "plans.predict": "predict predict_rebalance",
    "plans.rebalance": "rebalance",
    "plans.summary": "summarize",
    "producer": "member_traffic moved_keys null_key_shares partition_for_key partition_traffic "
    "place_records",
    "settings": "check_settings",
    "settings.computing": "Settings",
    "simulation": "Sweep Timeouts parse_sweep simulate summarize_events sweep",
    "tables.snapshots": "Snapshot read_snapshot write_snapshot",
    "validation.validate": "validate",
    "whatif.advise": "advise",
    "whatif.compare": "compare",
    "whatif.explain": "explain",
    "whatif.migrate": "Migration migrate",
}
_MODULE_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a name on first use (PEP 562): a task or a command needs few of them."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
