"""Every setting, with its default; read from a TOML file, overridden by ``dataclasses.replace``."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from kassign_spark.errors import SettingsError


@dataclass(frozen=True)
class Settings:
    """What a caller can choose about *how* an assignment is computed, never about its result.

    Attributes:
        topics_per_task: a group of more topics is cut into pieces of so many, each expanded
            into partitions and written by a task of its own.

    Raises:
        SettingsError: a value is of the wrong type or out of range.
    """

    topics_per_task: int = 32

    def __post_init__(self) -> None:
        value = self.topics_per_task
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SettingsError(f"setting topics_per_task: {value!r} is not a whole number >= 1")


def load_settings(path: str | Path) -> Settings:
    """Read settings from a TOML file; a setting that the file leaves out keeps its default.

    Raises:
        SettingsError: the file cannot be read, is no TOML, or has an unknown setting or bad value.
    """
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {path}: not valid TOML: {error}") from None
    known = [field.name for field in fields(Settings)]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SettingsError(
            f"settings file {path}: unknown setting {', '.join(unknown)}; known: {', '.join(known)}"
        )
    return Settings(**given)
