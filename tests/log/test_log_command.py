"""What ``kassign-spark log`` refuses before it reads anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kassign_spark import cli

_NOWHERE = """
<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers>
    <filesystem name="nowhere"><artifact pattern="{folder}/[artifact].[ext]"/></filesystem>
  </resolvers>
</ivysettings>
"""
"""Repositories as they are where there is no network: none has anything."""


@pytest.mark.usefixtures("own_processes")
def test_a_package_that_cannot_be_had_is_one_line(tmp_path: Path) -> None:
    settings = tmp_path / "ivy.xml"
    settings.write_text(_NOWHERE.format(folder=tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars.ivySettings {settings}\n")
    package = "org.example:not-there_2.13:1.0"
    refused = subprocess.run(
        [sys.executable, "-m", "kassign_spark", "log", "--bootstrap-server", "127.0.0.1:1",
         "--save", str(tmp_path / "log"), "--package", package],
        env=os.environ | {"SPARK_CONF_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    # Ivy itself says on the other stream whose settings it reads.
    assert refused.stderr == (
        f"kassign-spark: error: the Spark package {package} cannot be had from the repositories "
        "that Spark asks (Maven Central first); name a version that can with --package, or run "
        "under spark-submit with --jars\n"
    )
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("package", ["spark-sql-kafka", "a:b", "a:b:1,c", "a::1", ""])
def test_a_package_is_a_coordinate(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["log", "--bootstrap-server", "127.0.0.1:1", "--save", "x", "--package", package]
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    output = capsys.readouterr().err.splitlines()[-1]
    assert f"{package!r} is no Maven coordinate, GROUP:ARTIFACT:VERSION" in output
