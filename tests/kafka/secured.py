"""Listeners that ask for a login or for TLS, with secrets made anew for each run."""

import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka.broker import Broker, Listener

USER = "planner"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # who comes by the plain listener
    "allow.everyone.if.no.acl.found": "true",
}


@dataclass(frozen=True)
class Credentials:
    """What a client needs for the listeners SASL and TLS."""

    certificate: Path
    """PEM, the broker's own."""
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """Of the user ``planner``."""

    def sasl_properties(self, password: str | None = None) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} required username="{USER}" '
            f'password="{password or self.password}";',
        }

    def tls_properties(self) -> dict[str, str]:
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificate),
        }


@dataclass(frozen=True)
class SecuredBroker(Broker):
    """A running node with the listeners SASL and TLS."""

    credentials: Credentials


def secured_listeners(folder: Path) -> tuple[Credentials, dict[str, Listener]]:
    """Make a certificate in ``folder``, and two listeners: SASL (PLAIN) and TLS."""
    credentials = Credentials(folder / "broker.pem")
    store_password = secrets.token_hex(16)
    store = ["-keystore", str(folder / "broker.p12"), "-storepass", store_password, "-alias", "b"]
    pair = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-validity", "2"]
    _keytool(*pair, "-ext", "SAN=dns:localhost,ip:127.0.0.1", *store)
    _keytool("-exportcert", "-rfc", "-file", str(credentials.certificate), *store)
    sasl = Listener(
        "SASL_PLAINTEXT",
        {
            "sasl.enabled.mechanisms": "PLAIN",
            "plain.sasl.jaas.config": f'{_PLAIN} required user_{USER}="{credentials.password}";',
        },
    )
    tls = Listener(
        "SSL",
        {
            "ssl.keystore.location": str(folder / "broker.p12"),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": store_password,
        },
    )
    return credentials, {"SASL": sasl, "TLS": tls}


def _keytool(*arguments: str) -> None:
    subprocess.run(["keytool", *arguments], check=True, capture_output=True, timeout=60)
