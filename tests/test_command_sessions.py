"""Commands need nothing of Spark once their session is gone, which as processes they stop."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.small_fleet import write_small_fleet

_WEIGHTS = "topic,partition,weight\n" + "".join(
    f"{topic},{partition},{partition + 1}\n"
    for topic, count in (("orders", 5), ("payments", 3))
    for partition in range(count)
)
_ARGUMENTS = {
    "validate": ["FLEET"],
    "assign": ["FLEET", "--output", "OUT"],
    "rebalance": ["FLEET", "--output", "OUT"],
    "predict": ["FLEET"],
    "compare": ["FLEET"],
    "explain": ["FLEET"],
    "diff": ["FLEET", "FLEET"],
    "graph": ["FLEET", "--output", "OUT"],
    "advise": ["FLEET"],
    "touched_by": ["FLEET", "orders"],
    "migrate": ["FLEET"],
    "plan": ["FLEET", "--weights", "WEIGHTS", "--output", "OUT"],
    "history": ["--log", "LOG"],
    "tradeoff": ["FLEET", "--weights", "WEIGHTS"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sessions")
    write_small_fleet(folder / "FLEET")
    (folder / "WEIGHTS").mkdir()
    (folder / "WEIGHTS" / "weights.csv").write_text(_WEIGHTS)
    return folder


@pytest.mark.parametrize("command", _ARGUMENTS)
def test_the_rest_is_python(
    spark: SparkSession,
    folder: Path,
    tmp_path: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def stopped_afterwards(*_: str, **__: bool) -> Iterator[SparkSession]:
        yield spark
        monkeypatch.setattr(SparkContext, "_active_spark_context", None)

    monkeypatch.setattr("kassign_spark.commands.common.open_session", stopped_afterwards)
    names = {"FLEET": folder / "FLEET", "WEIGHTS": folder / "WEIGHTS", "OUT": tmp_path / "out"}
    names["LOG"] = Path(__file__).parents[1] / "examples" / "group-log"
    code = cli.main(
        [command.replace("_", "-"), *(str(names.get(word, word)) for word in _ARGUMENTS[command])]
    )
    printed = capsys.readouterr()
    # On the error stream nothing but that it takes long, where it does.
    assert code in (0, 1), printed.err
    assert printed.out
