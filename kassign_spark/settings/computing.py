"""Every setting, with its default; read from a TOML file, overridden by ``dataclasses.replace``."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from kassign_spark.errors import SettingsError
from kassign_spark.limits import TASKS, read_text


@dataclass(frozen=True)
class Settings:
    """What a caller can choose: how an assignment is computed, and what counts more in it.

    Only ``racks_before_moves`` changes a result, and ``max_partitions_per_task`` plans by weight.

    Attributes:
        racks_before_moves: whether the general pass, at the best balance, saves partitions without
            a replica in their member's rack before it saves moves, or the other way round.
        topics_per_task: a group of more topics is cut into pieces of so many, each expanded
            into partitions and written by a task of its own.
        batches: groups that fit a task are answered in so many tasks; left out, in as many as
            suit the rows that there are and the cores.
        max_edges_per_task: a group whose members subscribe differently, with more pairs of a topic
            and a subscriber, is not answered inside one task: its connected components are
            settled there, and those that have themselves more pairs of a topic class and a
            subscriber in rounds over DataFrames, which are slower at any size. Memory sets it:
            some 450 bytes a pair, in a Python worker. 0 forces rounds for all.
        partitions_per_slice: a group of more partitions whose members subscribe alike is cut into
            slices of about a quarter of so many for the sticky assignors, which tasks share.
        max_partitions_per_task: a group of more partitions whose members subscribe differently is
            settled by its counts alone, and its partitions are named by DataFrame steps. Planned by
            weight, a group of more, alike or not, has only what may move planned inside a task.
        max_rounds: rounds after which the general pass gives up, with an error.
        use_graphframes: whether connected components come from GraphFrames; left out, they do
            where it is there.

    Raises:
        SettingsError: a value is of the wrong type or out of range.
    """

    racks_before_moves: bool = False
    topics_per_task: int = 32
    batches: int | None = None
    max_edges_per_task: int = 2_000_000
    partitions_per_slice: int = 2_000_000
    max_partitions_per_task: int = 2_000_000
    max_rounds: int = 1_000
    use_graphframes: bool | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and getattr(type(self), name) is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise SettingsError(f"setting {name}: {value!r} is not a whole number >= {least}")
            if value > (most := TASKS if name == "batches" else _MOST):
                raise SettingsError(f"setting {name}: at most {most}")
        for name, kind in (("racks_before_moves", bool), ("use_graphframes", bool | None)):
            if not isinstance(value := getattr(self, name), kind):
                raise SettingsError(f"setting {name}: {value!r} is neither true nor false")


_MOST = 2**31 - 1
_LEAST = {
    "topics_per_task": 1,
    "batches": 1,
    "max_edges_per_task": 0,
    "partitions_per_slice": 1,
    "max_partitions_per_task": 0,
    "max_rounds": 1,
}


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
        given = tomllib.loads(read_text(path))
    except OSError as error:
        raise SettingsError(f"settings file {path}: {error.strerror}") from None
    except ValueError as error:  # of tomllib, of the encoding, or of a number without end
        raise SettingsError(f"settings file {path}: not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"settings file {path}: not valid TOML: nested too deeply") from None
    known = [field.name for field in fields(Settings)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SettingsError(
            f"settings file {path}: unknown setting {', '.join(unknown)}; known: {', '.join(known)}"
        )
    return Settings(**given)
