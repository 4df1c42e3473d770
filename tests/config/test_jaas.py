from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.jaas import PLAIN_MODULE, JaasError, parse_jaas


def test_a_module_with_its_options() -> None:
    entry = parse_jaas(
        f"""
        {PLAIN_MODULE} required   // a comment
            username="admin" password='it''s'  /* another;
            one */
            user_admin="it's \\"quoted\\" \\101;"
            user_bob=plain ;
        """.replace("'it''s'", "'its'")
    )
    assert entry.module == PLAIN_MODULE
    assert entry.options["username"] == "admin"
    assert entry.options["password"] == "its"
    assert entry.users == {"admin": 'it\'s "quoted" A;', "bob": "plain"}


def test_neither_repr_nor_errors_show_a_password() -> None:
    assert "hunter2" not in repr(parse_jaas('a.B required user_a="hunter2";'))
    for text in ('a.B required user_a="hunter2"', 'a.B required user_a="hunter2', 'a.B required "hunter2" "hunter2";'):
        with pytest.raises(JaasError) as raised:
            parse_jaas(text)
        assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "the class of a login module"),
        ("a.B", "a flag"),
        ("a.B perhaps;", "one of required"),
        ("a.B required", "ends with ;"),
        ("a.B required x;", "not of the form"),
        ("a.B required x=;", "has no value"),
        ("a.B required; a.C required;", "more than one entry"),
        ('a.B required x="', "not closed"),
    ],
)
def test_what_is_no_entry(text: str, part: str) -> None:
    with pytest.raises(JaasError, match=part):
        parse_jaas(text)


@given(st.text(alphabet="aB. ='\";\\\n/*", max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse_jaas(text)
    except JaasError:
        pass
