"""Every setting, with its default; read from a TOML file, overridden by ``dataclasses.replace``."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from kassign_spark.errors import SettingsError
from kassign_spark.limits import TASKS, read_text


@dataclass(frozen=True)
class Settings:
    """The caller's choices: how an assignment is computed, and its priorities.

    Only ``racks_before_moves`` changes a result.

    Attributes:
        racks_before_moves: whether the general pass, at the best balance, saves partitions without
            a replica in their member's rack before it saves moves, or the other way round.
        engine: how the sticky assignors answer a group. `task`: whole, inside one task. `rounds`:
            cut into blocks or slices that tasks share, in rounds over DataFrames. `auto`: in a
            task, if it takes ``bytes_per_task`` there at most. Groups of equal subscriptions in
            which racks count are always answered in a task.
        bytes_per_task: memory of one Python worker that a group may take, as estimated by
            ``assignors.task_groups``; a group that takes more goes in rounds.
        topics_per_task: a group with more topics is cut into pieces of this size, each expanded
            into partitions and written by a task of its own.
        batches: number of tasks for groups that fit in one task; if left out, as many as
            suit the rows that there are and the cores.
        max_rounds: rounds after which the general pass gives up, with an error.
        use_graphframes: whether connected components come from GraphFrames; left out, they do
            where it is there.

    Raises:
        SettingsError: a value is of the wrong type or out of range.
    """

    racks_before_moves: bool = False
    engine: str = "auto"
    bytes_per_task: int = 1_600_000_000
    topics_per_task: int = 32
    batches: int | None = None
    max_rounds: int = 1_000
    use_graphframes: bool | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and getattr(type(self), name) is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise SettingsError(f"setting {name}: {value!r} is not a whole number >= {least}")
            if value > (most := _MOST.get(name, 2**31 - 1)):
                raise SettingsError(f"setting {name}: at most {most}")
        if self.engine not in ENGINES:
            raise SettingsError(f"setting engine: {self.engine!r} is none of {', '.join(ENGINES)}")
        for name, kind in (("racks_before_moves", bool), ("use_graphframes", bool | None)):
            if not isinstance(value := getattr(self, name), kind):
                raise SettingsError(f"setting {name}: {value!r} is neither true nor false")


ENGINES = ("auto", "task", "rounds")
_MOST = {"batches": TASKS, "bytes_per_task": 2**50}
_LEAST = {
    "bytes_per_task": 0,
    "topics_per_task": 1,
    "batches": 1,
    "max_rounds": 1,
}


_DROPPED = ("max_edges_per_task", "max_partitions_per_task", "partitions_per_slice")


def load_settings(path: str | Path) -> Settings:
    """Read settings from a TOML file; a setting that the file leaves out keeps its default.

    Args:
        path: of the file; its keys are the fields of ``Settings``.

    Returns:
        The settings.

    Raises:
        SettingsError: the file cannot be read, is no TOML, or has an unknown setting or bad value.
    """
    try:
        values = tomllib.loads(read_text(path))
    except OSError as error:
        raise SettingsError(f"settings file {path}: {error.strerror}") from None
    except ValueError as error:  # of tomllib, of the encoding, or of a number without end
        raise SettingsError(f"settings file {path}: not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"settings file {path}: not valid TOML: nested too deeply") from None
    names = [field.name for field in fields(Settings)]
    unknown = sorted(set(values) - set(names))
    dropped = [name for name in unknown if name in _DROPPED]
    if dropped:
        raise SettingsError(
            f"settings file {path}: {', '.join(dropped)}: no longer a setting; memory decides now: "
            'bytes_per_task, or engine = "task" or "rounds" for all groups'
        )
    if unknown:
        raise SettingsError(
            f"settings file {path}: unknown setting {', '.join(unknown)}; known: {', '.join(names)}"
        )
    return Settings(**values)
