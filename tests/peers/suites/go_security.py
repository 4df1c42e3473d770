"""franz-go with TLS, client certificates and every mechanism of SASL, right and wrong: the Go module in `security/`."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from joserfc import jwt
from joserfc.jwk import ECKey

from odradek.broker.config.jaas import MODULES
from odradek.client import Admin, ScramUpsertion
from tests.peers.certificates import Authority
from tests.peers.server import Server, free_port
from tests.peers.suites import go_modules
from tests.peers.suites.outcomes import Outcomes

_SOURCE = Path(__file__).parent / "security"
_SECONDS = 300
_PASSWORD = 'a "quoted" pass, word='
_AUDIENCE = "kafka"
_PROTOCOLS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SCRAM_ONLY": "SASL_PLAINTEXT",
}


class GoSecurity:
    name = "franz-go-security"
    version = "of franz-go v1.22.2"

    def __init__(self) -> None:
        self._owned = tempfile.TemporaryDirectory(prefix="odradek-security-")
        self._files = Path(self._owned.name)
        self._ports = {listener: free_port() for listener in _PROTOCOLS}
        authority, foreign = Authority(), Authority("foreign")
        authority.write(self._files)
        foreign.write(self._files, "foreign-ca")
        authority.server().write(self._files)
        authority.client().write(self._files, "client")
        authority.expired(client=True).write(self._files, "expired-client")
        foreign.client().write(self._files, "foreign-client")
        self._key = ECKey.generate_key("P-256", {"kid": "one", "alg": "ES256", "use": "sig"})
        (self._files / "keys.json").write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}))

    def properties(self, port: int) -> Mapping[str, str]:
        listeners = [f"{name}://localhost:{number}" for name, number in self._ports.items()]
        protocols = [f"{name}:{protocol}" for name, protocol in _PROTOCOLS.items()]
        escaped = _PASSWORD.replace('"', '\\\\"')
        return {
            "listeners": ",".join([f"PLAINTEXT://127.0.0.1:{port}", *listeners]),
            "listener.security.protocol.map": ",".join(["PLAINTEXT:PLAINTEXT", *protocols]),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._files / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._files / "ca.pem"),
            "listener.name.mtls.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MODULES),
            "listener.name.scram_only.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "sasl.oauthbearer.jwks.endpoint.url": (self._files / "keys.json").as_uri(),
            "sasl.oauthbearer.expected.audience": _AUDIENCE,
            **{
                f"listener.name.{name}.plain.sasl.jaas.config": f'{MODULES["PLAIN"]} required user_alice="{escaped}";'
                for name in ("sasl_plaintext", "sasl_ssl")
            },
        }

    def prepare(self, directory: Path, broker: Server) -> None:
        shutil.copytree(_SOURCE, directory)
        asyncio.run(_add_user(broker.bootstrap))

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        environment = {
            "PLAINTEXT": broker.bootstrap,
            **{name: f"localhost:{port}" for name, port in self._ports.items()},
            "FILES": str(self._files),
            "PASSWORD": _PASSWORD,
            **self._tokens(),
        }
        return go_modules.run_tests(directory, ["."], environment, timeout=_SECONDS, log=log, skip=skip, only=only)

    def _tokens(self) -> dict[str, str]:
        another = ECKey.generate_key("P-256")
        return {
            "TOKEN_VALID": _token(self._key),
            "TOKEN_EXPIRED": _token(self._key, lifetime=-600),
            "TOKEN_OF_ANOTHER_ISSUER": _token(another),
            "TOKEN_FOR_ANOTHER_AUDIENCE": _token(self._key, audience="somebody else"),
        }


async def _add_user(bootstrap: str) -> None:
    users = [ScramUpsertion("alice", _PASSWORD, name) for name in MODULES if name.startswith("SCRAM")]
    async with Admin(bootstrap) as admin:
        (await admin.alter_user_scram_credentials(users)).values_or_raise()


def _token(key: ECKey, *, lifetime: int = 600, audience: str = _AUDIENCE) -> str:
    """A signed token of alice that ends after `lifetime` seconds."""
    ends = int(time.time()) + lifetime
    claims = {"sub": "alice", "iat": ends - abs(lifetime), "exp": ends, "aud": audience}
    return jwt.encode({"alg": "ES256", "kid": "one"}, claims, key)
