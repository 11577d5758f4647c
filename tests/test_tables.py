import pytest

from netbuf_gym import tables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (0.0, "0"),
        (7, "7"),
        (1.23456, "1.235"),
        (12.3456, "12.35"),
        (123456.7, "123457"),
        (0.00123456, "0.001235"),
        (0.000123456, "0.0001235"),
        (-0.5, "-0.5000"),
        (1.5e9, "1.5e+09"),
    ],
)
def test_number(value, text):
    assert tables.number(value) == text


def test_percent():
    assert tables.percent(-0.01234) == "-1.23 %"
    assert tables.percent(float("nan")) == "-"


def test_text_table_sets_numbers_to_the_right_and_words_to_the_left():
    text = tables.text_table(["name", "value"], [["a", "1"], ["longer", "+10.5 %"]])
    assert text.split("\n") == [
        "name      value",
        "------  -------",
        "a             1",
        "longer  +10.5 %",
    ]


def test_text_table_without_rows_is_its_header():
    assert tables.text_table(["a", "b"], []) == "a  b\n-  -"


def test_markdown_table_escapes_bars():
    text = tables.markdown_table(["name", "n"], [["a|b", "1"]])
    assert text == "| name | n |\n| --- | ---: |\n| a\\|b | 1 |"
