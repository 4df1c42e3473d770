r"""`ssl.principal.mapping.rules`. The expected names are what Kafka 4.3.1's `SslPrincipalMapper` returned."""

from __future__ import annotations

import random

import pytest
from py4j.protocol import Py4JJavaError

from odradek.broker.security.tls.mapping_rules import MappingRules, UnmappedNameError
from odradek.broker.security.tls.settings import TlsSettingsError
from tests.effort import cases as tried
from tests.peers.java_machine import JavaMachine

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,L=Town,ST=Land,C=DE"
NAMES = [
    DUKE,
    "CN=kafka1,OU=KAFKA",
    "CN=Zoë,OU=Admin",
    "",
    "CN=a\\,b,O=x/y",
    "UID=u1,CN=Duke,O=A B,C=US",
    "aaaa",
    "CN=a\nb",
]
MAPPED = [
    ("DEFAULT", DUKE, DUKE),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DUKE, "Duke"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DUKE, "duke"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1@Org/U", DUKE, "DUKE@ORG"),
    ("RULE:^CN=(.*?),OU=X.*$/$1/L, RULE:^CN=(.*?),.*O=(.*?),.*$/$1@$2/, DEFAULT", DUKE, "Duke@Org"),
    ("RULE:^CN=(.*?),OU=X.*$/$1/L,DEFAULT", DUKE, DUKE),
    ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L", "UID=u1,CN=Duke,O=A B,C=US", "duke"),
    ("RULE:^.*,O=x\\/y$/sl\\/ash/", "CN=a\\,b,O=x/y", "sl/ash"),
    ("RULE:(.*)/u-$1/", "aaaa", "u-aaaau-"),
    ("RULE:a*/b/U", "aaaa", "BB"),
    ("RULE:CN=(.*?)/$1/", "CN=kafka1,OU=KAFKA", "kafka1,OU=KAFKA"),
    ("RULE:^(.)(.)(.*)$/$2$3$12/", "aaaa", "aaaa2"),
    ("RULE:^CN=(.*?),(.*)$/$3 $1/", "CN=kafka1,OU=KAFKA", "$3 kafka1"),
    ("RULE:^CN=(?<who>.*?),.*$/${who}/", DUKE, "Duke"),
    ("RULE:^CN=(.*?),.*$/\\$1/", DUKE, "$1"),
    ("RULE:(x)?.*/[$1]/", "aaaa", "[][]"),
    ("RULE:.*/\\/x/", "", "/x"),
    (", ,DEFAULT", "aaaa", "aaaa"),
]
INVALID = [
    "NONSENSE",
    "default",
    "RULE:abc",
    "RULE:a/b",
    "RULE:^CN=(.*?)/$1/X",
    "RULE:.*/x/y/",
    "RULE:(/x/",
]
LATE_IN_KAFKA = [
    ("RULE:.*/a$/", "a number must follow"),
    ("RULE:.*/$1/", "the pattern has no group"),
    ("RULE:(?<a>.*)/${b}/", "the pattern has no group"),
    ("RULE:(.)\\1.*/$1/", "RE2 refuses"),
    ("RULE:(?=a).*/x/", "RE2 refuses"),
]


@pytest.mark.parametrize(("rules", "subject", "expected"), MAPPED)
def test_the_first_rule_that_matches_decides(rules: str, subject: str, expected: str) -> None:
    assert MappingRules(rules).name(subject) == expected


@pytest.mark.parametrize("rules", ["", "RULE:^CN=(.*?),OU=X.*$/$1/", "RULE:CN=Duke/x/"])
def test_a_name_that_no_rule_matches_is_refused(rules: str) -> None:
    with pytest.raises(UnmappedNameError, match=r"^no rule of ssl.principal.mapping.rules applies"):
        MappingRules(rules).name(DUKE)


@pytest.mark.parametrize("rules", INVALID)
def test_what_kafka_refuses_is_refused(rules: str) -> None:
    with pytest.raises(TlsSettingsError, match=r"^ssl.principal.mapping.rules: "):
        MappingRules(rules)


@pytest.mark.parametrize(("rules", "why"), LATE_IN_KAFKA)
def test_what_kafka_would_refuse_with_the_first_client_is_refused_at_the_start(rules: str, why: str) -> None:
    with pytest.raises(TlsSettingsError, match=rf"^ssl.principal.mapping.rules: .*{why}"):
        MappingRules(rules)


def test_a_pattern_takes_linear_time() -> None:
    with pytest.raises(UnmappedNameError):
        MappingRules("RULE:^(a|aa)+$/x/").name("a" * 4000 + "!")  # exponential in Java and in Python


def random_rules(source: random.Random) -> str:
    pieces = ["CN=", "(.*?)", "(.*)", "[a-z]+", ".*", ",", "OU=", "^", "$", "(a|b)", "x?", "\\/", "\\w", "é"]
    pattern = "".join(source.choice(pieces) for _ in range(source.randrange(6)))
    parts = ["$1", "$2", "$0", "$10", "a", "B", "é", "\\/", "\\$", "\\\\", " "]
    replacement = "".join(source.choice(parts) for _ in range(source.randrange(5)))
    rule = f"RULE:{pattern}/{replacement}/{source.choice(['', 'L', 'U'])}"
    return rule if source.random() < 0.6 else f"{rule}{source.choice([', ', ',', ' ,'])}{source.choice(MAPPED)[0]}"


@pytest.mark.process
@pytest.mark.java
def test_kafka_maps_the_table_and_other_rules_likewise() -> None:
    source = random.Random(7)
    cases = [(rules, subject) for rules, subject, _ in MAPPED]
    cases += [(random_rules(source), source.choice(NAMES)) for _ in range(tried(1000))]
    compared = 0
    with JavaMachine() as machine:
        mapper = machine.named("org.apache.kafka.common.security.ssl.SslPrincipalMapper")
        for rules in INVALID:
            with pytest.raises(Py4JJavaError):
                mapper.fromRules(rules)
        for rules, subject in cases:
            try:
                ours: str | None = MappingRules(rules).name(subject)
            except UnmappedNameError:
                ours = None
            except TlsSettingsError:
                continue  # at the start here, with the first client there
            try:
                kafkas: str | None = str(mapper.fromRules(rules).getName(subject))
            except Py4JJavaError as error:
                assert "NoMatchingRule" in str(error.java_exception), (rules, subject)  # noqa: PT017
                kafkas = None
            assert ours == kafkas, (rules, subject)
            compared += 1
    assert compared > len(cases) // 2
