"""KEY=VALUE without Hydra: read as Hydra reads it, and written so that Hydra reads it back."""

import random
import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import overrides
from netbuf_gym.utils.scripts import split_arguments
from netbuf_gym.utils.suggestions import did_you_mean, find_nearest

PARTS = (
    *("a", "b", "1", "0", "2", "_", ".", "-", "+", "e", "'", '"', "[", "]", "{", "}", ",", ":", " ", "\\", "/", "true", "null"),
    *("nan", "inf", "$", "=", "(", ")", "1e3", "x", "*", "|", "?", "@", "%"),
)
HYDRA = OverridesParser.create()


def by_hydra(text):
    try:
        parsed = HYDRA.parse_override(f"k={text}")
    except Exception:
        return "refused"
    return "refused" if parsed.is_sweep_override() else parsed.value()


def by_us(text):
    try:
        return overrides.read_override(f"k={text}")[1]
    except ConfigError as error:
        assert "\n" not in str(error)
        return "refused"


@pytest.mark.slow
def test_values_are_read_as_hydra_reads_them():
    chance = random.Random(1)
    texts = ["".join(chance.choice(PARTS) for _ in range(chance.randint(0, 7))).strip() for _ in range(6000)]
    texts += ["[a, b]", "[[1,2],[]]", "{a: 1, b: [x, 'y z']}", "'it\\'s'", '"say \\"so\\""', "'a\\\\'"]
    texts += ["a\\,b", "1_000", "-.5", "1.", "+3"]
    texts = [text for text in texts if "${" not in text and not text.endswith(":")]  # interpolations; a colon keeps spaces
    assert [text for text in texts if repr(by_hydra(text)) != repr(by_us(text))] == []
    read = [by_us(text) for text in texts]
    assert 0.1 < sum(value == "refused" for value in read) / len(read) < 0.95


def test_texts_are_written_so_that_they_come_back():
    chance = random.Random(2)
    for _ in range(2000):
        text = "".join(chance.choice((*PARTS, "é", "#", ";", "&", "`", "!", "~")) for _ in range(chance.randint(1, 9)))
        if "${" in text:
            continue  # which OmegaConf reads once more
        (word,) = shlex.split(overrides.format_override("k", text))
        assert HYDRA.parse_override(word).value() == text == overrides.read_override(word)[1], word
        assert overrides.unquote_text(overrides.quote_text(text)) == text
    assert overrides.format_override("model", "runs/a-b/2026") == "model=runs/a-b/2026"
    assert overrides.format_override("model", "a b") == "\"model='a b'\""


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("k", "not of the form key=value"),
        ("=1", "names no key"),
        ("k=[1", "has no end"),
        ("k=[a.cc:b=2]", "'=' is not expected behind 'a.cc:b' in a list; valid: a comma or the list's end"),
        ("k=a,b", "list in brackets"),
        ("k='a", "no closing '"),
        ("k=[a,,b]", "empty value"),
        ("k=" + "[" * 100_000, "cannot be read"),
        ("k=" + "1" * 5000, "cannot be read"),
        ("k=a(b", "not expected"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_line(argument, message):
    with pytest.raises(ConfigError, match=message) as error:
        overrides.read_override(argument)
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


def test_arguments_are_read_by_known_keys():
    read = overrides.read_overrides(["seeds=3", " jobs = 1e2", "runs='a b'", "on=true"], ("seeds", "jobs", "runs", "on"))
    assert read == {"seeds": 3, "jobs": 100.0, "runs": "a b", "on": True} and isinstance(read["seeds"], int)
    for text in ("a,b", "[a,b]", " [a, b]"):
        assert overrides.read_overrides([f"names={text}"], ["names"], lists=["names"]) == {"names": ["a", "b"]}
    assert overrides.read_overrides(["names=a"], ["names"], lists=["names"]) == {"names": ["a"]}
    assert overrides.read_overrides([], ["names"]) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["worlds"], "argument 'worlds' is unknown; did you mean 'worlds='? valid: worlds=, output=$"),
        (["=3"], "argument '=3' is unknown; valid: worlds=, output=$"),
        (["world=3"], "argument 'world=3' is unknown; did you mean 'worlds='? valid: worlds=, output=$"),
        (["worlds=3", "worlds=3"], "worlds is given twice; valid: once$"),
        (["worlds=3,4"], "argument 'worlds=3,4' cannot be read: it names several values"),
        (["output=a,,b"], "argument 'output=.a,,b.' cannot be read: the list holds an empty value"),
    ],
)
def test_arguments_that_cannot_be_read_are_said_in_a_line(arguments, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        overrides.read_overrides(arguments, ("worlds", "output"), lists=["output"])


def test_arguments_of_others_are_handed_on_as_they_stand():
    words = ["epochs=3", "algo=ppo", "+tuned=a", "word", "=3", "epochs=4", "algo.gamma=0.9", "folder"]
    found = overrides.select_overrides(words, ("epochs", "folder"))
    assert found == (["epochs=3", "epochs=4"], ["algo=ppo", "+tuned=a", "word", "=3", "algo.gamma=0.9", "folder"])


def test_the_nearest_word():
    valid = ["algo", "algo.name", "algo.kwargs.gamma", "total_timesteps", "env.threads"]
    for word, meant in (
        ("alg", "algo"),
        ("algo.gama", "algo.kwargs.gamma"),
        ("gamma", "algo.kwargs.gamma"),
        ("total_timestep", "total_timesteps"),
        ("ENV.treads", "env.threads"),
        ("colour", None),
        ("", None),
    ):
        assert find_nearest(word, valid) == meant
    assert did_you_mean("alg", valid) == "did you mean 'algo'? " and did_you_mean("x" * 10_000, valid) == ""
    assert did_you_mean(3, valid) == ""


@pytest.mark.parametrize(
    ("text", "value"), [("10", 10), ("1e1", 10), ("20.0", 20), (".5e1", 5), ("-3", -3), (" 7 ", 7), ("1E+2", 100)]
)
def test_a_whole_float_is_read_as_an_integer(text, value):
    assert overrides.read_whole(text) == value and isinstance(overrides.read_whole(text), int)
    assert overrides.write_whole(f"[{text.strip()},a1e1.b,0.5]") == f"[{value},a1e1.b,0.5]"


@pytest.mark.parametrize("text", ["1.5", "1e-1", "x", "", "inf", "nan", "1e"])
def test_other_texts_are_no_integers(text):
    with pytest.raises(ValueError):
        overrides.read_whole(text)
    assert overrides.write_whole(text) == text


def test_integers_of_programs_may_be_written_as_floats():
    known = {"seeds": "5", "out": "", "first": "0"}
    assert split_arguments(["seeds=2e1", "out=1e1", "algo.lr=1e0"], known) == (
        {"seeds": "20", "out": "1e1", "first": "0"},
        ["algo.lr=1e0"],
    )
