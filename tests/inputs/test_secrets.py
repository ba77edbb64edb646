"""No value of a properties file and no login of an address is in anything that is said."""

import base64
import traceback
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from kassign_spark import cli
from kassign_spark.errors import ClusterError, InputError, SettingsError
from kassign_spark.live.admin import check_address
from kassign_spark.live.client_properties import admin_settings, read_properties
from kassign_spark.log.kafka_source import explain_source_error, kafka_options
from kassign_spark.spark.spark_errors import spark_message
from kassign_spark.tables.catalog_paths import is_catalog_path

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_KEY = base64.encodebytes(bytes(range(1, 250))).decode()
"""As the lines of a PEM key: the last one ends with =, as a key without a value does."""
_PEM = f"-----BEGIN PRIVATE KEY-----\n{_KEY}-----END PRIVATE KEY-----"

_FILES = {
    "a key over several lines": (f"security.protocol=SSL\nssl.keystore.key={_PEM}\n", 3),
    "a key alone": (_PEM, 1),
    "a password": ("Hunter-2\n", 1),
    "a password and a blank": ("Hunter 2 s3cret", 1),
    "a password with dots": ("hunter.two", 1),
    "a password with =": ("# mine\n\nHunter2=s3cret\n", 3),
    "a password with :": ("hunter2:s3cret", 1),
    "a login over several lines": (
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_PLAIN} required\n  username="hunter1"\n  "hunter2";\n',
        4,
    ),
    "a setting without =": ("ssl.hunter2\n", 1),
}
_SECRETS = ("unter", "s3cret", "MII", *(line for line in _KEY.splitlines()), _KEY[:8])


def _shows_nothing(*texts: str) -> None:
    for text in texts:
        assert not [secret for secret in _SECRETS if secret in text], text


@pytest.mark.parametrize("name", _FILES, ids=range(len(_FILES)))
def test_what_is_no_setting_is_named_by_its_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, line = _FILES[name]
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(SettingsError, match=f"line {line} is not a key=value") as error:
        admin_settings(read_properties(path))
    with pytest.raises(SettingsError, match=f"line {line} is not a key=value") as for_spark:
        kafka_options("127.0.0.1:1", read_properties(path))
    config = ["--bootstrap-server", "127.0.0.1:1", "--command-config", str(path), "--verbose"]
    for command in (
        ["snapshot", *config, "--output", str(tmp_path / "x")],
        ["snapshot", *config, "--from-log", "--output", str(tmp_path / "x")],
        ["history", *config],
        ["log", *config, "--save", str(tmp_path / "x")],
    ):
        assert cli.main(command) == 2
    printed = capfd.readouterr()
    assert printed.err.count(f"line {line} is not a key=value") >= 4
    _shows_nothing(*printed, repr(error.value), repr(for_spark.value))
    _shows_nothing("".join(traceback.format_exception(error.value)))


@pytest.mark.parametrize(
    "jaas",
    [
        f"{_PLAIN} required username=u password=p hunter2=x;",
        f"{_PLAIN} required username=u password=correct hunter2=s3cret;",
        f"{_PLAIN} required username=u password=hunter;2 s3cret;",
        "hunter2",
    ],
)
def test_a_login_that_cannot_be_read(jaas: str) -> None:
    sasl = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    with pytest.raises(SettingsError, match=r"sasl\.jaas\.config") as error:
        admin_settings({**sasl, "sasl.jaas.config": jaas})
    _shows_nothing(repr(error.value))


@pytest.mark.parametrize(
    "escape", ["hunter2\\u12=x", "a.b=hunter2\\uwxyz", "x=1\nHunter\\uD83D="], ids=range(3)
)
def test_a_broken_escape(escape: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(escape)
    with pytest.raises(SettingsError, match=r"line \d has ") as error:
        read_properties(path)
    _shows_nothing(repr(error.value))


_ADDRESSES = [
    "hunter1:s3cret@host:1",
    "hunter1@host:1",
    "a:1,hunter1:sec,hunter2@host:1",
    "SASL_SSL://hunter1:s3cret@host:1",
    "hunter1:p@ss s3cret@host:1",
    "hunter1:s3cret%40host:1",
    "hunter1:s3cret@",
]


@pytest.mark.parametrize("address", _ADDRESSES)
def test_the_login_of_an_address(
    address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        ClusterError, match=r"'\.\.\.@(host:1)?': has a login before its @"
    ) as error:
        check_address(address)
    output = ["--output", str(tmp_path / "x")]
    for command in (
        ["snapshot", "--bootstrap-server", address, *output],
        ["snapshot", "--from-log", "--bootstrap-server", address, *output],
        ["history", "--bootstrap-server", address],
        ["log", "--bootstrap-server", address, "--save", "x"],
    ):
        assert cli.main(command) == 2
    printed = capfd.readouterr()
    assert printed.err.count("has a login") == 4
    _shows_nothing(*printed, repr(error.value))


@pytest.mark.parametrize(
    "arguments",
    [
        ["snapshot", "hunter1:s3cret@host:1", "--output", "x"],
        ["hunter1:s3cret@host:1"],
        ["history", "--log", "x", "--since", "hunter1:sec ret@host:1"],
        ["report", "x", "--output", "y", "--show=hunter1:s3cret@host:1"],
    ],
)
def test_a_login_where_none_is_meant(
    arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    _shows_nothing(*capfd.readouterr())


@pytest.mark.parametrize(
    "path",
    [
        "s3a://HUNTER1:s3cret@bucket/x",
        "s3a://hunter1:9/s3cret+@bucket/x",
        "s3n://hunter1@bucket",
        "https://hunter1:s3cret@host/x",
        "jdbc:postgresql://hunter1:s3cret@host/x",
        "hunter1:s3cret@host:9092",
    ],
)
def test_a_path_with_a_login_is_refused(path: str) -> None:
    with pytest.raises(InputError, match=r"^path \.\.\.@\w+(:9092|/x)?: has a login") as error:
        is_catalog_path(path)
    _shows_nothing(str(error.value).lower())


@pytest.mark.parametrize(
    "path",
    ["a@b", "x/a:b@c", "hdfs://nn:8020/a@b", "abfss://container@account.dfs/x", "file:/tmp/a@b",
     "s3a://bucket/run@2026", "s3a://bucket/12:30@x", "/data/a:b@c"],
)  # fmt: skip
def test_other_paths_may_have_an_at_sign(path: str) -> None:
    assert not is_catalog_path(path)
    assert is_catalog_path("table:a.b@2026-11-26 12:00:00")


def test_what_spark_and_java_say() -> None:
    text = (
        "No FileSystem for s3a://hunter1:s3cret@bucket: jdbc:x://h/d?user=hunter1&password=s3cret"
    )
    _shows_nothing(spark_message(PySparkException(text)))
    address = {"kafka.bootstrap.servers": "host:1"}
    _shows_nothing(
        str(explain_source_error(ValueError("Invalid value s3cret for sasl.mechanism"), address))
    )
