"""Properties files are read as Java reads them, and no value of one is ever shown."""

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kassign_spark.errors import SettingsError
from kassign_spark.live.client_properties import admin_settings, read_properties

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}


def _read(folder: Path, text: str) -> dict[str, str]:
    path = folder / "client.properties"
    path.write_bytes(text.encode("iso-8859-1"))
    return read_properties(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("# c\n! d\n\n  a = b \r\nc:d\n", {"a": "b ", "c": "d"}),
        ("a b c", {"a": "b c"}),
        ("a\t=\tb", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=1,\\\n   2,\\\r\n\t3", {"a": "1,2,3"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# no comment", {"a": "b# no comment"}),
        (r"a\ b\:c\=d=\u00e9\t\q", {"a b:c=d": "é\tq"}),
        ("a=é", {"a": "é"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("a\xa0\x85\x1c=b", {"a\xa0\x85\x1c": "b"}),
        (r"a=\uD83D\uDE00", {"a": "\U0001f600"}),
    ],
)
def test_java_properties(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert _read(tmp_path, text) == expected


def test_java_reads_the_same(spark: Any, tmp_path: Path) -> None:
    text = (
        "# comment\n key.1 : v\\\n   w\\u0041\\\\ \n!x\nb\\=c=d=e\nempty=\nonly\n"
        "path=C:\\\\temp\\\\a\nspaces   =  lead and trail  \nlast=\\\n"
    )
    mine = _read(tmp_path, text)
    java = spark._jvm.java.util.Properties()
    java.load(spark._jvm.java.io.FileInputStream(str(tmp_path / "client.properties")))
    assert mine == {key: java.getProperty(key) for key in java.stringPropertyNames()}
    assert len(mine) == 7


def test_nothing_given_is_plaintext() -> None:
    assert admin_settings({}) == {"security_protocol": "PLAINTEXT"}


def test_plain_login() -> None:
    jaas = f'{_PLAIN} required\n  username="me"  password = "a\\"b\\\\c;d=e " ;'
    settings = admin_settings({**_SASL, "sasl.jaas.config": jaas, "request.timeout.ms": " 5000"})
    assert settings.pop("ssl_context").check_hostname
    assert settings == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": 'a"b\\c;d=e ',
        "request_timeout_ms": 5000,
    }
    assert "b\\c" not in repr(settings)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_login(mechanism: str) -> None:
    jaas = f"{_SCRAM} required username=me password=secret;"
    settings = admin_settings(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
        }
    )
    assert settings == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
    }


_SECRET = "hunter-two"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"ssl.secret": _SECRET}, "ssl.secret: security.protocol is not one that uses SSL"),
        (
            {"no.such": _SECRET, "group.id": _SECRET},
            "group.id is not supported; a key is none of a Kafka client's",
        ),
        ({"security.protocol": _SECRET}, "security.protocol must be one of PLAINTEXT, SSL, "),
        ({"bootstrap.servers": _SECRET}, "bootstrap.servers: give the address as --bootstrap"),
        ({"request.timeout.ms": _SECRET}, "request.timeout.ms must be a number of milliseconds"),
        ({**_SASL, "sasl.mechanism": _SECRET}, "sasl.mechanism must be one of PLAIN, SCRAM-"),
        (_SASL, f"sasl.jaas.config must read: {_PLAIN} required "),
        (
            {**_SASL, "sasl.jaas.config": f'{_SCRAM} required username="u" password="{_SECRET}";'},
            f"sasl.jaas.config must read: {_PLAIN} required ",
        ),
        (
            {**_SASL, "sasl.jaas.config": f'{_PLAIN} required username="u" password="{_SECRET}"'},
            f"sasl.jaas.config must read: {_PLAIN} required ",
        ),
        (
            {**_SASL, "sasl.jaas.config": f'{_PLAIN} required username="{_SECRET}";'},
            "sasl.jaas.config needs a username and a password",
        ),
        (
            {**_SASL, "sasl.jaas.config": f"{_PLAIN} required username=u password=p x={_SECRET};"},
            "sasl.jaas.config has other options than username and password",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": _SECRET},
            "ssl.truststore.type must be PEM",
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": _SECRET,
            },
            "ssl.truststore.location: the file cannot be read",
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": _SECRET,
            },
            "ssl.truststore.certificates: no PEM that can be used",
        ),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": _SECRET},
            "ssl.endpoint.identification.algorithm must be https or empty",
        ),
    ],
)
def test_what_cannot_be_used_is_named_by_its_key_only(
    properties: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingsError) as error:
        admin_settings(properties)
    assert str(error.value).startswith("client properties: " + message)
    assert _SECRET not in repr(error.value)
    assert error.value.__cause__ is None


def test_every_problem_is_in_one_message() -> None:
    with pytest.raises(SettingsError) as error:
        admin_settings({"no.such": "1", "retry.backoff.ms": "x", "security.protocol": "TLS"})
    assert str(error.value).count(";") == 2


def test_values_read_from_a_file_do_not_show(tmp_path: Path) -> None:
    properties = _read(tmp_path, f"sasl.jaas.config={_SECRET}")
    assert properties == {"sasl.jaas.config": _SECRET}
    assert _SECRET not in repr(properties)


@pytest.mark.parametrize("text", ["a=\\u12", "a\\uwxyz=1"])
def test_a_broken_escape(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="without four hex digits"):
        _read(tmp_path, text)


@pytest.mark.parametrize("text", ["a=\\uD83D", "\\uDE00=1", "a=\\uDE00\\uD83D"])
def test_half_a_character(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        SettingsError,
        match=r"^client properties file .*client.properties: line 1 has half a surrogate pair$",
    ):
        _read(tmp_path, text)


def test_certificates_that_are_no_ascii() -> None:
    tls = {"security.protocol": "SSL", "ssl.truststore.type": "PEM"}
    with pytest.raises(SettingsError, match="certificates: no PEM that can be used"):
        admin_settings({**tls, "ssl.truststore.certificates": "é"})


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.properties cannot be read: No such file"):
        read_properties(tmp_path / "none.properties")


@pytest.fixture(scope="module")
def key_pair(own_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One PEM file with an encrypted key and its certificate, as a keystore of type PEM is."""
    folder = tmp_path_factory.mktemp("pem")
    if shutil.which("openssl") is None:
        pytest.skip("only the openssl command makes an encrypted PEM key; it is not installed")
    request = ["req", "-x509", "-newkey", "rsa:2048", "-subj", "/CN=client", "-days", "2"]
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(
        ["openssl", *request, "-passout", f"pass:{_SECRET}", *made],
        check=True,
        capture_output=True,
        timeout=60,
    )
    both = folder / "both.pem"
    both.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return both


def _tls(key_pair: Path, **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_pair),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": key_pair.with_name("cert.pem").read_text(),
        **{f"ssl.{key.replace('_', '.')}": value for key, value in more.items()},
    }


def test_a_client_with_a_certificate_of_its_own(key_pair: Path) -> None:
    settings = admin_settings(
        _tls(key_pair, key_password=_SECRET, endpoint_identification_algorithm="")
    )
    context = settings["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert not context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1, "the given authority and no other"
    assert _SECRET not in repr(settings)


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_wrong_key_password(key_pair: Path, password: str) -> None:
    with pytest.raises(SettingsError, match=r"ssl\.keystore\.location or ssl\.key\.password: no"):
        admin_settings(_tls(key_pair, key_password=password))
