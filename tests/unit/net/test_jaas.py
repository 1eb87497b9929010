"""sasl.jaas.config as Java's tokenizer reads it; what is wrong is said without showing it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.jaas import LoginModule, parse_jaas, write_jaas
from pyspark_kafkaproto.net.secret import Secret


def parsed(text):
    return parse_jaas("sasl.jaas.config", Secret(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('p="plain"', "plain"),
        ("p='single'", "single"),
        ("p=bare", "bare"),
        ("p = spaced", "spaced"),
        (r'p="a\"b\\c"', 'a"b\\c'),
        (r'p="tab\tnew\nline"', "tab\tnew\nline"),
        (r'p="\101\7"', "A\x07"),
        ('p="semi;colon = // no comment"', "semi;colon = // no comment"),
        ('p="it\'s"', "it's"),
        ('p="pässwörd ☃"', "pässwörd ☃"),
        ('p=""', ""),
        ('/* why */ p="x" // because\n', "x"),
    ],
)
def test_values_are_read_with_quotes_and_escapes(text, value):
    module = parsed(f"a.b.Module required {text};")
    assert module.name == "a.b.Module"
    assert module.options == {"p": value}


def test_several_options_over_several_lines():
    module = parsed('a.Module\n  REQUIRED\n  username="u"\n  password="p" ;\n')
    assert module.options == {"username": "u", "password": "p"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "semicolon"),
        ("a.Module required", "semicolon"),
        ('a.Module required password="hunter2"', "semicolon"),
        ('a.Module password="hunter2";', "one of required"),
        ('a.Module required password="hunter2;', "not closed"),
        ('a.Module required password="hun"ter2";', "not closed"),
        ('a.Module required password="hun"ter2"x";', r"\" stands for a quote"),
        ("a.Module required password=;", "expected <option>"),
        ("a.Module required password hunter2;", "expected <option>"),
        ("a.Module required; b.Module required;", "several login modules"),
    ],
)
def test_what_cannot_be_read_is_not_shown(text, said):
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    assert said in str(caught.value)
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_no_repr_shows_the_options():
    assert "hunter2" not in repr(parsed('a.Module required password="hunter2";'))


@given(st.dictionaries(st.from_regex(r"[a-zA-Z_]\w*", fullmatch=True), st.text()))
def test_what_is_written_is_read_again(options):
    module = LoginModule("a.b.Module", options)
    text = write_jaas(module).reveal()
    assert parsed(text) == module
    assert not {"\n", "\r"} & set(text)  # Java would end a quote there, and a file its line


def test_what_is_written_shows_nothing_by_itself():
    written = write_jaas(LoginModule("a.b.Module", {"password": 'hun"ter2'}))
    assert written.reveal() == r'a.b.Module required password="hun\"ter2";'
    assert "ter2" not in f"{written} {written!r}"
