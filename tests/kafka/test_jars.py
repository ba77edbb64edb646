"""Class paths are kept, and asked for again when they no longer hold."""

from pathlib import Path

import pytest

from tests.kafka import jars


def test_a_class_path_is_resolved_again_when_a_jar_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def resolve(coordinates: tuple[str, ...], excludes: tuple[str, ...]) -> list[Path]:
        asked.append((coordinates, excludes))
        jar = tmp_path / f"{len(asked)}.jar"
        jar.touch()
        return [jar]

    monkeypatch.setattr(jars, "_CACHE", tmp_path / "cache")
    monkeypatch.setattr(jars, "_resolve", resolve)
    first = jars.class_path(("org:name:1",))
    assert jars.class_path(("org:name:1",)) == first
    assert len(asked) == 1
    assert jars.class_path(("org:name:2",)) != first
    first[0].unlink()
    assert jars.class_path(("org:name:1",)) == [tmp_path / "3.jar"]


def test_what_cannot_be_resolved_is_named(
    own_processes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jars, "_CACHE", tmp_path)
    with pytest.raises(RuntimeError, match="cannot resolve nowhere:nothing"):
        jars.class_path(("nowhere:nothing",))
    assert list(tmp_path.iterdir()) == []


def test_the_oracle_is_the_pinned_client(own_processes: None) -> None:
    assert jars.clients_jar().name.endswith(f"kafka-clients-{jars.KAFKA_VERSION}.jar")
    names = [jar.name for jar in jars.broker_class_path()]
    assert any(jars.clients_jar().name == name for name in names)
