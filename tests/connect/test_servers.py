"""A server that does not exist, and clients that are nothing else."""

import os
import subprocess
import sys

import pytest

from kassign_spark.errors import KassignError
from kassign_spark.launch import command_session
from kassign_spark.spark.sessions import rpc_message
from tests.docs.reader import ROOT

_NOBODY = """
import os
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy
from kassign_spark import KassignError, assign, read_snapshot

spark = SparkSession.builder.remote("sc://127.0.0.1:1").getOrCreate()
spark.client.set_retry_policies([DefaultPolicy(max_retries=0)])
rows = spark.range(1)
for call in (lambda: read_snapshot("fleet", spark), lambda: assign(rows, rows)):
    try:
        call()
    except KassignError as error:
        print(type(error).__name__, error, sep=": ")
os._exit(0)  # else the client tries for minutes to tell the server
"""


@pytest.mark.usefixtures("own_processes")
def test_a_server_that_is_not_there() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-uc", _NOBODY],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    read, assigned = ran.stdout.splitlines()
    message = "the server of Spark Connect does not answer: failed to connect to all addresses"
    assert read.startswith(f"InputError: folder fleet: {message}")
    assert assigned.startswith(f"SessionError: {message}")


def test_a_call_that_the_server_does_not_know() -> None:
    text = (
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNIMPLEMENTED"
        '\n\tdetails = "Method not found: spark.connect.X/Y"\n\tdebug_error_string = "..."\n>'
    )
    message = rpc_message(text) or ""
    beginning = "the server of Spark Connect does not know this call (Method not found"
    assert message.startswith(beginning)
    assert message.endswith("the server must be of that version or later")
    assert rpc_message("another text") is None


def test_a_command_where_there_is_a_client_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_session.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(command_session, "find_spec", lambda name: None)
    with (
        pytest.raises(KassignError, match="pip uninstall pyspark-client") as raised,
        command_session.open_session(),
    ):
        pass
    assert "\n" not in str(raised.value)
