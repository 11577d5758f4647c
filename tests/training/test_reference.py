"""Help reads the configuration without Hydra: it must say what Hydra composes."""

import dataclasses

import pytest
from omegaconf import OmegaConf

from netbuf_gym.training import config_reference
from netbuf_gym.training.config import Source, compose_config, load
from netbuf_gym.training.schema import CONF, JOBS


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONF)))
def test_every_file_is_read_as_omegaconf_reads_it(path):
    assert config_reference.read_yaml(path) == OmegaConf.to_container(OmegaConf.load(path))


def test_numbers_and_mistakes_in_yaml_are_read_as_omegaconf_reads_them(tmp_path):
    path = tmp_path / "x.yaml"
    for text in ("a: 1e-3", "a: -1E5", "a: 1.5e3", "a: 1_000", "a: .5", "a: 1e", "a: e3", "a: [1, two, '3', '${e.f}']", ""):
        path.write_text(text)
        assert config_reference.read_yaml(path) == OmegaConf.to_container(OmegaConf.load(path)), text
    for wrong in ("a: [1", "a: 'b", "  a: 1\n b: 2", "a: [1] 2", "- a", "a"):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="x"):
            config_reference.read_yaml(path)


@pytest.mark.parametrize("job", JOBS)
def test_defaults_are_those_that_hydra_composes(job):
    composed = OmegaConf.to_container(compose_config(job, [], Source())[0])
    assert config_reference.compose_defaults(job) == composed
    flat = {key.name: key.default for key in config_reference.list_keys(job)}
    config = load(job, [])
    assert set(flat) == set(_flat(OmegaConf.to_container(config), JOBS[job]))
    for name, default in flat.items():
        if "${" not in str(default):
            assert OmegaConf.select(config, name) == default


def _flat(config, cls, prefix=""):
    for one in dataclasses.fields(cls):
        value = config[one.name]
        if isinstance(value, dict) and str(one.type).endswith("Config"):
            yield from (f"{one.name}.{key}" for key in value)
        else:
            yield f"{prefix}{one.name}"


COMPOSED = ("algo", "env", "scenario", "reward", "experiment")
"""Groups whose choices tests/training/test_zoo_config.py composes."""


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_every_key_has_a_meaning_and_every_group_its_choices(job):
    assert [key.name for key in config_reference.list_keys(job) if not key.meaning] == []
    text = config_reference.format_reference(job)
    for group, default in config_reference.read_groups(job).items():
        found = config_reference.read_choices(group)
        assert default is None or default in found
        for choice in found:
            assert choice in text
            if group not in COMPOSED:
                assert load(job, [f"{group}={choice}"])
    assert all(f"{key.name}={config_reference.format_value(key.default)}" in text for key in config_reference.list_keys(job))
