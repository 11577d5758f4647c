import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import tables


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
    assert tables.format_number(value) == text


def test_percent():
    assert tables.format_percent(-0.01234) == "-1.23 %"
    assert tables.format_percent(float("nan")) == "-"


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


KINDS = {"name": ("a", "b, c"), "worlds": int, "mean": float}


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = [{"name": "a", "worlds": 3, "mean": 0.25}, {"name": "b, c", "worlds": 0, "mean": float("inf")}]
    path = tmp_path / "t.csv"
    assert tables.read_table(path, "made", KINDS) == []
    path.write_text(tables.csv_table(tuple(KINDS), rows, "made"))
    assert tables.read_table(path, "made", KINDS) == rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with ''; valid: '# made', or no such file"),
        ("# other\nname,worlds,mean\n", "begins with '# other'"),
        ("# made\n", "line 2: column 1 = ''; valid: the columns name, worlds, mean"),
        ("# made\nname,mean,worlds\n", "line 2: column 2 = 'mean'; valid: the columns name, w"),
        ("# made\nname,worlds,mean\na,1,2\nc,1,2\n", "line 4: name = 'c'; valid: one of a, b, c"),
        ("# made\nname,worlds,mean\na,1.5,2\n", "line 3: worlds = '1.5'; valid: a whole number"),
        ("# made\nname,worlds,mean\na,1,2 %\n", "line 3: mean = '2 %'; valid: a number"),
        ("# made\nname,worlds,mean\na,1\n", "line 3: mean = ''; valid: a number"),
        ("# made\nname,worlds,mean\na,1,2,3\n", "line 3: has 4 cells; valid: 3, name, worlds, mean"),
        ("# made\nname,worlds,mean\n" + "a" * 140_000, "is no table .*; valid: name, worlds, mean, or no such file"),
    ],
)
def test_a_damaged_table_is_refused_by_file_line_and_column(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ConfigError, match=rf"output = '.*t\.csv'.*{said}") as refused:
        tables.read_table(tmp_path / "t.csv", "made", KINDS)
    assert "\n" not in str(refused.value)
