"""Settings: the shipped file holds every default; what is no setting is refused in one line."""

import os
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from kassign_spark.errors import SettingsError
from kassign_spark.launch.command_session import LOCAL_DEFAULTS
from kassign_spark.settings import Settings, load_settings

_CONF = Path(__file__).parents[1] / "conf"
_FILE = _CONF / "settings.toml"


def test_the_shipped_file_holds_every_default() -> None:
    assert load_settings(_FILE) == Settings()
    text = _FILE.read_text()
    for field in fields(Settings):
        # None cannot be written in TOML: such a setting is there as a comment.
        start = f"\n{field.name} = " if field.default is not None else f"\n# {field.name} = "
        assert start in text


def test_what_a_file_leaves_out_keeps_its_default(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("topics_per_task = 7\n")
    assert asdict(load_settings(tmp_path / "s.toml")) == {
        **asdict(Settings()),
        "topics_per_task": 7,
    }


@pytest.mark.parametrize("value", [0, -1, 2.5, "4", True])
def test_values_out_of_range(value: object) -> None:
    with pytest.raises(SettingsError, match=r"^setting topics_per_task: .* is not a whole number"):
        Settings(topics_per_task=value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("max_rounds = " + "9" * 5_000, "not valid TOML: "),
        ("max_rounds = 9999999999", "setting max_rounds: at most 2147483647"),
        ("max_rounds = 0x" + "f" * 5_000, "setting max_rounds: at most 2147483647"),
        ("a = " + "[" * 5_000, "not valid TOML: nested too deeply"),
        (
            "max_edges_per_task = 0",
            "max_edges_per_task: no longer a setting; ",
        ),
        ('engine = "fast"', "setting engine: 'fast' is none of auto, task, rounds"),
        ('"a\\nb" = 1', "unknown setting a\\nb; known: "),
    ],
)
def test_what_is_no_settings_file(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(SettingsError) as error:
        load_settings(tmp_path / "s.toml")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["racks_before_moves", "use_graphframes"])
def test_neither_true_nor_false(name: str) -> None:
    with pytest.raises(SettingsError, match=f"^setting {name}: 'yes' is neither true nor false"):
        Settings(**{name: "yes"})  # type: ignore[arg-type]


def test_the_local_defaults_are_those_of_the_file() -> None:
    lines = (_CONF / "spark-local.conf").read_text().splitlines()
    values = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    expected = dict(LOCAL_DEFAULTS)
    # The file cannot count cores.
    assert expected.pop("spark.sql.shuffle.partitions") == str(2 * (os.cpu_count() or 1))
    assert int(values.pop("spark.sql.shuffle.partitions")) > 0
    assert values == expected
