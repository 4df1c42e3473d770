"""`odradek doctor` at the secured listeners of our broker and of Apache Kafka: certificates, mechanisms, rights."""

from __future__ import annotations

import re
from pathlib import Path

from odradek.client import AclOperation, AclResourceType, AclRule, NewTopic
from tests.client.cli.commands import run
from tests.peers.certificates import Authority
from tests.peers.secured_server import USERS, SecuredServer

PLAIN = "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=alice"


async def examine(address: str, *properties: str, status: int) -> list[str]:
    flags = [flag for one in properties for flag in ("--command-property", one)]
    out, err = await run("doctor", "--bootstrap-server", address, *flags, status=status)
    assert err == ""
    printed = [line.decode() for line in out]
    assert not any(password in line for password in USERS.values() for line in printed)
    return printed


def found(lines: list[str], pattern: str) -> str:
    [line] = [line for line in lines if re.search(pattern, line)]
    return line


async def test_tls(secured: SecuredServer, tmp_path: Path) -> None:
    address = secured.address("SSL")
    store = secured.authority.client("admin").write_pem(tmp_path / "admin.pem")
    known = ("security.protocol=SSL", f"ssl.truststore.location={secured.ca}")
    lines = await examine(address, *known, f"ssl.keystore.location={store}", status=0)
    line = found(lines, "the certificate is trusted: CN=broker, for localhost, issued by CN=Test CA, valid until 20")
    assert line.startswith(f"ok       {address}: ")
    assert found(lines, "rights: on the cluster this principal has all; ")  # User:CN=admin, a super user
    lines = await examine(address, *known, status=0)
    assert found(lines, "rights: on the cluster this principal has none; ")  # User:ANONYMOUS


async def test_a_certificate_that_is_not_trusted_and_one_with_other_names(
    secured: SecuredServer, tmp_path: Path
) -> None:
    (tmp_path / "other.pem").write_text(Authority("other").pem)
    location = f"ssl.truststore.location={tmp_path / 'other.pem'}"
    [line] = await examine(secured.address("SSL"), "security.protocol=SSL", location, status=1)
    assert "problem" in line
    assert f"is not trusted ({secured.reason_of_unknown_ca}); it is CN=broker, for localhost, issued by" in line
    assert line.endswith("Add the CA of the broker's certificate to the trust store.")
    by_ip = f"127.0.0.1:{secured.ports['SSL']}"
    known = f"ssl.truststore.location={secured.ca}"
    [line] = await examine(by_ip, "security.protocol=SSL", known, status=1)
    assert "the broker's certificate is not for 127.0.0.1, but for localhost; it is CN=broker" in line


async def test_a_listener_that_demands_a_user_names_its_mechanisms(secured: SecuredServer) -> None:
    lines = await examine(secured.address("SHORT"), status=1)
    line = found(lines, "demands authentication by SASL; it offers ")
    assert {"SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"} <= set(re.findall(r"[A-Z0-9-]{6,}", line))
    assert "Set security.protocol to SASL_PLAINTEXT, sasl.mechanism and the user" in line


async def test_a_user_and_a_wrong_password(secured: SecuredServer) -> None:
    may = {"resource_name": "doctor-orders", "principal": "User:alice", "resource_type": AclResourceType.TOPIC}
    rules = [AclRule(operation=operation, **may) for operation in (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)]  # type: ignore[arg-type] # by name
    async with secured.admin() as admin:
        (await admin.create_topics([NewTopic("doctor-orders", 1)])).values_or_raise()
        (await admin.create_acls(rules)).values_or_raise()
        address = secured.address("SASL_PLAINTEXT")
        common = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN")
        lines = await examine(address, *common, f'{PLAIN} password="{USERS["alice"]}";', status=0)
        authenticated = found(lines, "authenticated with PLAIN; the listener offers ")
        assert authenticated.startswith(f"ok       {address}: ")
        rights = found(lines, "rights: ")
        assert (
            "rights: on the cluster this principal has none; of 1 topic that it sees it may read 1, write 0, delete 0"
            in rights
        )
        [line] = await examine(address, *common, f"{PLAIN} password=wr0ng;", status=1)
        assert "authenticate as alice with PLAIN: the broker refused: Authentication failed" in line
        assert "wr0ng" not in line
        (await admin.delete_acls([rule.filter for rule in rules])).values_or_raise()
