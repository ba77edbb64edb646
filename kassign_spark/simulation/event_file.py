"""Events, timeouts and sweeps as a person writes them: YAML, or JSON lines.

A YAML file is a list of events, or has the keys ``timeouts``, ``events`` and ``sweeps``. A line of
JSON is an event, ``{"timeouts": {...}}`` or ``{"sweep": {...}}``. Events are numbered in the order
of the file. What cannot be read is refused with its line.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from kassign_spark.display import format_value, is_unicode
from kassign_spark.errors import InputError
from kassign_spark.limits import EVENTS as MOST_EVENTS
from kassign_spark.limits import SWEEPS, read_text
from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.simulation.events import EVENTS
from kassign_spark.simulation.questions import Sweep, parse_sweep
from kassign_spark.simulation.timeouts import LEAST, Timeouts

_SECTIONS = ("timeouts", "events", "sweeps")
_FIELDS = [f.name for f in EVENTS.columns if f.name not in ("event", "line")]
_LARGEST = 2**63 - 1

Entry = tuple[int, str, Any]
"""A line, the section and what it holds: plain values."""

_MOST_LISTED = 5
"""Problems of a file that an error lists."""


class EventFile(NamedTuple):
    """The content of a file of events.

    Attributes:
        rows: one event each, by the columns of ``events.EVENTS``.
        timeouts: those of the file, defaults for the others.
        sweeps: what-if questions about the state before all events.
    """

    rows: list[dict[str, Any]]
    timeouts: Timeouts
    sweeps: list[Sweep]

    def events(self, spark: SparkSession, *, cluster_id: bool) -> DataFrame:
        """Make the table ``events.EVENTS``, with or without the column ``cluster_id``.

        Raises:
            InputError: an event names a cluster where there is no such column.
        """
        fields = [
            StructField(f.name, LongType() if isinstance(f.dataType, IntegerType) else f.dataType)
            for f in EVENTS.columns
            if cluster_id or f.name != CLUSTER_ID
        ]
        if not cluster_id and (
            with_cluster := [r for r in self.rows if r.get(CLUSTER_ID) is not None]
        ):
            raise InputError(
                f"line {with_cluster[0]['line']}: cluster_id: the snapshot does not name clusters"
            )
        return spark.createDataFrame(
            [tuple(row.get(f.name) for f in fields) for row in self.rows], StructType(fields)
        )


def read_events(path: str | Path) -> EventFile:
    """Read a file of events: ``.yaml`` and ``.yml`` are YAML, all others JSON lines.

    Raises:
        InputError: the file cannot be read, or something in it is not what it should be; every
            line that is at fault is named.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise InputError(f"events file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"events file {path}: is not UTF-8 text") from None
    read = _yaml_entries if Path(path).suffix.lower() in (".yaml", ".yml") else _json_entries
    problems: list[str] = []
    rows: list[dict[str, Any]] = []
    timeouts: dict[str, Any] = {}
    sweeps: list[Sweep] = []
    for line, section, value in read(text, problems):
        try:
            if section == "timeouts":
                timeouts.update(_check_fields(value, LEAST, "timeouts"))
                Timeouts(**timeouts)
            elif section == "sweeps":
                sweeps.append(parse_sweep(value, line=line))
            else:
                event = _check_fields(value, _FIELDS, "an event")
                rows.append({**event, "event": len(rows) + 1, "line": line})
        except InputError as error:
            problems.append(f"line {line}: {error}")
    if problems:
        more = len(problems) - _MOST_LISTED
        problems[_MOST_LISTED:] = [f"and {more:,} more"] if more > 0 else []
        raise InputError(f"events file {path}: {'; '.join(problems)}")
    for name, entries, most in (("events", rows, MOST_EVENTS), ("sweeps", sweeps, SWEEPS)):
        if len(entries) > most:
            raise InputError(f"events file {path}: {len(entries):,} {name}; at most {most:,}")
    if not rows and not sweeps:
        raise InputError(f"events file {path}: holds no events and no sweeps")
    return EventFile(rows, Timeouts(**timeouts), sweeps)


def _check_fields(value: Any, known: Any, subject: str) -> dict[str, Any]:
    """Check names and types; what the values mean is checked where they are used."""
    if not isinstance(value, Mapping):
        raise InputError(f"{subject} is a mapping of names to values, not {format_value(value)}")
    for name, setting in value.items():
        if name not in known:
            raise InputError(f"unknown name {format_value(name)}; known are {', '.join(known)}")
        is_fine, kind = _FORMS[EVENTS.columns[name].dataType.typeName()]
        if setting is not None and not is_fine(setting):
            raise InputError(f"{name} is {format_value(setting)}; must be {kind}")
    return dict(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_unicode(value)


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_FORMS = {
    "integer": (_is_integer, "a whole number"),
    "array": (_is_list_of_text, "a list of names"),
    "string": (_is_text, "text"),
}


def _json_entries(text: str, problems: list[str]) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=_without_repeats)
        except InputError as error:
            problems.append(f"line {number}: {error}")
        except json.JSONDecodeError as error:
            problems.append(f"line {number}: no JSON: {error.msg}")
        except ValueError:  # a number without end
            problems.append(f"line {number}: no JSON: a number is too long")
        except RecursionError:
            problems.append(f"line {number}: no JSON: nested too deeply")
        else:
            for section, name in (("timeouts", "timeouts"), ("sweeps", "sweep")):
                if isinstance(value, dict) and list(value) == [name]:
                    yield number, section, value[name]
                    break
            else:
                yield number, "events", value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(f"{max(names, key=names.count)} appears twice")
    return mapping


def _yaml_entries(text: str, problems: list[str]) -> Iterator[Entry]:
    try:
        import yaml
    except ImportError:
        raise InputError(
            "reading YAML needs PyYAML: pip install 'kassign-spark[yaml]'; JSON lines need nothing"
        ) from None
    constructor = yaml.constructor.SafeConstructor()
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        if root is None:
            return
        sections = [("events", root)]
        if isinstance(root, yaml.MappingNode):
            sections = [(_construct(constructor, key), value) for key, value in root.value]
        for section, node in sections:
            line = node.start_mark.line + 1
            if section not in _SECTIONS:
                problems.append(
                    f"line {line}: unknown section {format_value(section)}; "
                    f"known are {', '.join(_SECTIONS)}"
                )
            elif section != "timeouts" and not isinstance(node, yaml.SequenceNode):
                problems.append(f"line {line}: {section} is a list")
            else:
                for item in [node] if section == "timeouts" else node.value:
                    line = item.start_mark.line + 1
                    try:
                        value = _yaml_value(constructor, item)
                    except InputError as error:
                        problems.append(f"line {line}: {error}")
                    else:
                        yield line, section, value
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        message = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        problems.append(f"{where}no YAML: {message}")
    except RecursionError:
        problems.append("no YAML: nested too deeply")
    except InputError as error:
        problems.append(str(error))


def _yaml_value(constructor: Any, node: Any) -> Any:
    value = _construct(constructor, node)
    if isinstance(value, dict) and len(value) < len(node.value):
        names = [key.value for key, _ in node.value]
        raise InputError(f"{max(names, key=names.count)} appears twice")
    return value


def _construct(constructor: Any, node: Any) -> Any:
    import yaml

    try:
        return constructor.construct_object(node, deep=True)
    except (yaml.YAMLError, RecursionError):
        raise
    # PyYAML lets through whatever int(), float(), date() and its own look-ups raise.
    except Exception:
        raise InputError("no YAML: a value is not what its tag or its form says") from None
