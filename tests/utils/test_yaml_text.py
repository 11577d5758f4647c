"""Bounds of YAML that users hand in."""

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import yaml_text


def make_laughs(levels, width=10):
    lines = ["a0: &a0 [" + ",".join("x" * width) + "]"]
    lines += [f"a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * width) + "]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        make_laughs(9),
        make_laughs(30, 2),
        "a: &a {x: 1}\n" + "\n".join(f"b{i}: {{<<: *a, y: {i}}}" for i in range(6000)),
        "a: &a [1, 2, 3]\nb: [" + ",".join(["*a"] * 3000) + "]",
        "{a: &a {k: v}, b: &b [*a, *a, *a, *a, *a, *a, *a, *a], c: &c [" + "*b, " * 30 + "], d: [" + "*c, " * 30 + "]}",
    ],
)
def test_aliases_that_stand_for_too_much_are_refused(text):
    with pytest.raises(ConfigError, match=r"mine stands for more than 10,000 values by its aliases; valid: "):
        yaml_text.check_aliases(text, "mine")


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: {c: *a}}", "&x [1, [2, *x]]"])
def test_what_holds_itself_is_refused(text):
    with pytest.raises(ConfigError, match="it holds itself, by its alias"):
        yaml_text.check_aliases(text)


@pytest.mark.parametrize(
    "text",
    ["", "a: 1", "a: [&b x, *b]", make_laughs(3), "a: '*b & c'", "a: [", "*nobody & nothing", "[" * 5000 + "&a x, *a", "&a *a"],
)
def test_other_text_passes(text):
    yaml_text.check_aliases(text)


@pytest.mark.parametrize(("value", "size"), [("[1, 2, 3]", 4), ("{a: 1}", 3), ("x", 1), ("[[], {}]", 3)])
def test_values_are_counted_as_yaml_expands_them(value, size):
    most = yaml_text.MAX_ALIASED_VALUES // size
    yaml_text.check_aliases(f"a: &a {value}\nb: [{'*a, ' * most}]")
    with pytest.raises(ConfigError):
        yaml_text.check_aliases(f"a: &a {value}\nb: [{'*a, ' * (most + 1)}]")


def test_large_files_are_refused_unread(tmp_path):
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(ConfigError, match="it has more than 16,777,216 bytes"):
        yaml_text.read_yaml_text(path)
    path.write_text("a: \u00e9\n", encoding="utf-8")
    assert yaml_text.read_yaml_text(path) == "a: \u00e9\n"
