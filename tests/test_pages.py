"""The reference pages' tables are made from the features, and say what is observed."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from netbuf_gym import pages, tasks
from netbuf_gym.env import Env
from netbuf_gym.errors import ConfigError
from netbuf_gym.vector import VectorEnv

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.slow
def test_the_documentation_is_up_to_date(tmp_path, capsys):
    assert pages.main([str(DOCS), "--check"]) == 0
    page = "text\n<!-- table: environments -->\nold\n<!-- end of table -->\nmore\n"
    (tmp_path / "a.md").write_text(page)
    assert pages.main([str(tmp_path), "--check"]) == 1 and (tmp_path / "a.md").read_text() == page
    assert pages.main([str(tmp_path)]) == 0 == pages.main([str(tmp_path), "--check"])
    assert "netbuf/CongestionWindow-v0" in (tmp_path / "a.md").read_text() and "more" in (tmp_path / "a.md").read_text()
    with pytest.raises(ConfigError, match="no table 'features x'"):
        pages.renewed(page.replace("environments", "features x"))


@pytest.mark.parametrize("record", tasks.records(), ids=lambda record: record.name)
def test_docstrings_hold_a_row_for_every_feature(record):
    page = record.rules.__doc__
    assert "{features" not in page
    for recipe in record.rules.recipes:
        for line in record.rules.feature_tables()[recipe].splitlines():
            assert line in page
        names = {feature.name.rstrip("_0123456789") for feature in record.rules(recipe).features}
        assert all(f"| {name} " in page for name in names)
    assert all(f"`{name}`" in Env.__doc__ for name in record.ids)


COUNT = re.compile(r"Recipes? (\S+?)(?: and (\S+?))?, [^|]{0,60}?(?:(\d+)|5 \+ 18 \* queues) features")


OURS = [record for record in tasks.records() if record.ids[0].startswith("netbuf/")]
"""Others' pages are theirs."""


@pytest.mark.parametrize("record", OURS, ids=lambda record: record.name)
def test_docstrings_count_features_and_actions_as_they_are(record):
    page, said = record.rules.__doc__, set()
    for first, second, count in COUNT.findall(page):
        for recipe in filter(None, (first, second)):
            said.add(recipe)
            assert record.rules(recipe).width == int(count or 5 + 18 * 2), recipe
    assert said >= set(record.rules.recipes) - {"thesis-text", "thesis-code"}, "of those the page has no count"
    if "acts_on" in record.rules.options and record.name == "receiver_window":
        spaces = re.findall(r'\| `"(\w+)"` +\| `(Discrete\(\d+\))`', page)
        assert len(spaces) == 6
        assert all(str(record.rules(acts_on=acts_on).action_space) == space for acts_on, space in spaces)


def test_the_sender_says_its_actions():
    page = " ".join(tasks.get("congestion_window").rules.__doc__.split())
    for recipe, said in (("default", "`Discrete(12)`"), ("ppcc", "recipe ppcc `Discrete(11)`")):
        rules = tasks.get("congestion_window").rules(recipe)
        assert said in page and said.endswith(f"`{rules.action_space}`")
        assert f"in {', '.join(f'{level:g}' for level in rules.levels)} |" in page


SMALL = {"name": "rlbm/default", "queue_packets": 2, "duration_s": 10, "rate_mbps": 20, "access_mbps": 200}
WORLDS = {
    "congestion_window": [{"scenario": "ppcc/4"}, {"scenario": "ppcc/4", "recipe": "ppcc"}],
    "receiver_window": [{"acts_on": "target_and_k"}, {"recipe": "nuwa"}],
    "host_buffers": [{"recipe": recipe, "scenario": "auter/training"} for recipe in ("default", "auter", "direct")],
    "queue_threshold": [{"scenario": SMALL, "recipe": recipe} for recipe in ("default", "thesis-text", "thesis-code")],
}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "kwargs"), [(task, one) for task, several in WORLDS.items() for one in several])
def test_floors_are_where_observations_end(task, kwargs):
    env = VectorEnv(8, task=task, **kwargs, history=1)
    rules = env.engine.task
    env.reset(seed=2)
    env.action_space.seed(1)
    seen = np.array([env.step(env.action_space.sample())[0] for _ in range(90)]).reshape(-1, rules.width)
    for feature, low in zip(rules.features, seen.min(axis=0), strict=True):
        assert low < 0 if feature.floor < 0 else low >= 0, feature
        assert feature.floor in (-1, 0)


def test_features_that_are_not_saved_with_models_change_no_schema():
    feature = tasks.Feature("x", 0, 1, "x")
    assert feature.to_dict() == replace(feature, floor=-1).to_dict() == {"name": "x", "low": 0, "high": 1, "meaning": "x"}
