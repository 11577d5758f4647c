"""Export of trained agents: folders for model hubs or rl_zoo3, and networks as ONNX."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
import yaml

from netbuf_gym import tasks
from netbuf_gym.controllers import Decider, Policy, Rules
from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.evaluation import rollout
from netbuf_gym.leaderboard import rows, submission
from netbuf_gym.training.checkpoints import checkpoint, packing, versions
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent, make_rules
from netbuf_gym.training.config import to_plain
from netbuf_gym.utils.files import make_folder, write_atomic, write_json
from netbuf_gym.zoo import library
from netbuf_gym.zoo.agent import Agent
from netbuf_gym.zoo.library import TIMING_ARGUMENTS

CARD, NETWORK = "README.md", "policy.onnx"
OPSET = 18
RL_ZOO3 = {"ppo_kl": "ppo"}
"""Names of learners in rl_zoo3 where they differ."""
CHECKED_DECISIONS = 1000
"""Number of decisions on which the network must agree with the model."""
ACTION_TOLERANCE = 1e-4
"""Largest absolute difference of actions that are numbers."""


def export_folder(agent: str, output: Path, onnx: bool = False) -> list[Path]:
    """Write an agent's folder: card, model, configuration, versions and measurements, with `onnx` its network too.

    Args:
        agent: Name of an agent of the package, model file, or run folder.
        output: New or empty folder.
        onnx: Whether to write the network as ONNX.

    Returns:
        Files that were written.

    Raises:
        CheckpointError: No such agent, a damaged one, or one that does not fit.
        ConfigError: A folder that is not empty; a network that decides otherwise than the model.
        MissingExtraError: ONNX is asked for and not installed.
        OSError: A file cannot be written.
    """
    _require_new(output)
    saved = checkpoint.read_model(library.find_agent_path(agent))
    network = export_onnx(Agent(agent)) if onnx else None
    with _new_folder(output) as made:
        config = packing.pack_model(saved, made / library.MODEL)
        write_atomic(made / "config.yaml", yaml.safe_dump(to_plain(config), sort_keys=False))
        own = saved.path.parent
        for name in ("metrics.json", submission.EVALUATION):
            if (own / name).is_file():
                shutil.copyfile(own / name, made / name)
        if network is not None:
            write_atomic(made / NETWORK, network)
        write_json(made / versions.NAME, versions.resolve_versions(saved.path, saved.versions, saved.config.seed))
        write_atomic(made / CARD, format_card(agent, saved))
    return sorted(output.iterdir())


def _require_new(output: Path) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"output = {str(output)!r} holds something already; valid: a new folder, or an empty one")


@contextlib.contextmanager
def _new_folder(output: Path) -> Iterator[Path]:
    """Yield a temporary folder, which is renamed to `output` at the end, or removed on an error."""
    make_folder(output.parent, "output")
    made = output.parent / f".{output.name}.{os.getpid()}"
    made.mkdir()
    try:
        yield made
        if output.exists():
            output.rmdir()  # it was empty
        made.rename(output)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def export_rl_zoo3(agent: str, output: Path) -> tuple[Path, str]:
    """Write an agent in rl_zoo3's layout: ALGO/ENV_1/ENV.zip, and config.yml and args.yml in ALGO/ENV_1/ENV.

    Args:
        agent, output: See `export_folder`.

    Returns:
        The model file, and the rl_zoo3 command that plays it.

    Raises:
        CheckpointError, ConfigError, OSError: See `export_folder`.
    """
    _require_new(output)
    saved = checkpoint.read_model(library.find_agent_path(agent))
    env, algo = saved.env["id"], RL_ZOO3.get(str(saved.config.algo.name), str(saved.config.algo.name))
    name = env.replace("/", "-")
    model = Path(algo, f"{name}_1", f"{name}.zip")
    with _new_folder(output) as made:
        about = made / model.with_suffix("")
        about.mkdir(parents=True)
        config = packing.pack_model(saved, made / model)
        own = {"n_envs": config.algo.num_envs, "n_timesteps": saved.progress["timesteps"], "policy": config.algo.policy}
        kwargs = {key: value for key, value in saved.env["kwargs"].items() if key not in TIMING_ARGUMENTS}
        args = {"algo": algo, "env": env, "env_kwargs": kwargs, "seed": config.seed, "gym_packages": ["netbuf_gym"]}
        for file, content in {"config.yml": own, "args.yml": args}.items():
            write_atomic(about / file, yaml.safe_dump(content, sort_keys=False))
    own_words = f"--algo {algo} --env {env} --gym-packages netbuf_gym -f {shlex.quote(str(output))}"
    return output / model, f"python -m rl_zoo3.enjoy {own_words} --exp-id 1 --no-render"


def format_card(agent: str, saved: checkpoint.SavedModel) -> str:
    """Return an agent's model card: metadata for hubs as front matter, then Markdown text for readers."""
    env, algo = saved.env["id"], str(saved.config.algo.name)
    name = agent.strip("/") if agent.strip("/") in library.names() else saved.path.parent.resolve().name
    measured = list_metrics(saved)
    result = {
        "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
        "dataset": {"name": env, "type": env},
        "metrics": [{"type": kind, "name": said, "value": value, "verified": False} for kind, said, value in measured],
    }
    front = {
        "library_name": "stable-baselines3",
        "tags": [env, algo, "reinforcement-learning", "deep-reinforcement-learning", "stable-baselines3", "netbuf-gym"],
        "model-index": [{"name": name, "results": [result] if measured else []}],
    }
    text = library.read_card(saved.path.parent) or f"# {algo} on {env}\n\nTrained for {saved.progress['timesteps']:,} steps.\n"
    use = f"""## Use

```python
from netbuf_gym import zoo

agent = zoo.load("{library.MODEL}")  # of this folder: pip install netbuf-gym[train]
env = agent.make_env()
observation, info = env.reset(seed=1)
action, _ = agent.predict(observation)
```
"""
    made = versions.format_versions(versions.resolve_versions(saved.path, saved.versions, saved.config.seed))
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n\n{text}\n{made}\n\n{use}"


def list_metrics(saved: checkpoint.SavedModel) -> list[tuple[str, str, float]]:
    """Return kind, name and value of each measurement of an agent on its benchmark and on its ranking suite."""
    task = str(saved.env["schema"]["task"])
    key, found = tasks.get(task).measures.score, []
    for scenario, part in library.read_metrics(saved.path.parent).get("scenarios", {}).items():
        values = [value for value in part.get("agent", {}).get(key, []) if value is not None]
        if values:
            said = f"{key} on {scenario}, mean of {len(values)} training seeds"
            found.append((key, said, round(float(np.mean(values)), 6)))
    file = saved.path.parent / submission.EVALUATION
    if file.is_file():
        data = rows.read_result(file)
        for one in data["controllers"].values():
            value = one["families"]["all"][data["score"]]
            found.append((data["score"], f"{data['score']} on suite {data['suite']}", value))
    return found


class GreedyPolicy(th.nn.Module):
    """Module that maps observations, (n, width), to a policy's likeliest actions, as `predict` returns them.

    A recurrent policy also takes and returns its memory, (layers, n, width) twice, and takes episode starts, (n,).
    """

    def __init__(self, policy: Any):
        super().__init__()
        self.policy, self.space = policy, policy.action_space
        self.remembers = hasattr(policy, "lstm_actor")

    def forward(self, observation: th.Tensor, *memory: th.Tensor) -> Any:
        policy = self.policy
        if hasattr(policy, "q_net"):
            return policy.q_net(observation).argmax(dim=1)
        features = policy.extract_features(observation, policy.pi_features_extractor)
        if not self.remembers:
            return self._likeliest(policy.mlp_extractor.forward_actor(features))
        hidden, cell, starts = memory
        kept = (1 - starts).reshape(1, -1, 1)
        latent, (hidden, cell) = policy.lstm_actor(features[None], (kept * hidden, kept * cell))
        return self._likeliest(policy.mlp_extractor.forward_actor(latent[0])), hidden, cell

    def _likeliest(self, latent: th.Tensor) -> th.Tensor:
        out = self.policy.action_net(latent)
        if hasattr(self.space, "nvec"):
            return th.stack([part.argmax(dim=1) for part in th.split(out, self.space.nvec.tolist(), dim=1)], dim=1)
        if hasattr(self.space, "n"):
            return out.argmax(dim=1)
        return th.clamp(out, th.as_tensor(self.space.low), th.as_tensor(self.space.high))


def export_onnx(agent: Agent, checked: int = CHECKED_DECISIONS) -> bytes:
    """Export an agent's network as ONNX, and check that it decides as the model does.

    Inputs are `observation`, float32 (n, width), and for an agent with memory `hidden` and `cell`, (layers, n, width), and
    `starts`, (n,); outputs are `action`, and with memory `next_hidden` and `next_cell`.

    Args:
        agent: The agent.
        checked: Number of decisions that are compared.

    Raises:
        ConfigError: The network decides otherwise than the model.
        MissingExtraError: ONNX is not installed.
    """
    import io

    with require_extra("ONNX", "onnx"):
        import onnx  # noqa: F401
        import onnxruntime
    greedy = GreedyPolicy(agent.controller.model(make_rules(agent.controller.saved)).policy).eval()
    width = int(np.prod(agent.observation_space.shape or (1,)))
    inputs: list[th.Tensor] = [th.zeros(2, width)]
    names, out = ["observation"], ["action"]
    if greedy.remembers:
        layers, _, size = greedy.policy.lstm_hidden_state_shape
        inputs += [th.zeros(layers, 2, size), th.zeros(layers, 2, size), th.zeros(2)]
        names, out = [*names, "hidden", "cell", "starts"], [*out, "next_hidden", "next_cell"]
    axes = {name: {1 if name.endswith(("hidden", "cell")) else 0: "n"} for name in (*names, *out)}
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about itself
        kwargs = {"input_names": names, "output_names": out, "dynamic_axes": axes, "opset_version": OPSET}
        th.onnx.export(greedy, tuple(inputs), file, dynamo=False, **kwargs)  # type: ignore[arg-type]
    network = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    _require_agreement(agent, network, greedy.remembers, checked)
    return file.getvalue()


def _require_agreement(agent: Agent, network: Any, remembers: bool, checked: int) -> None:
    """Raise ConfigError unless a network decides as an agent does, in episodes that the agent plays."""
    task = str(tasks.find_task(agent.env_id))
    beside = _NetworkComparison(agent, network, remembers, checked)
    for seed in range(20):
        rollout.evaluate(beside, task, agent.env_kwargs.get("scenario"), [seed])
        if beside.decisions >= checked:
            break
    if beside.different:
        counted = f"{beside.different} of {beside.decisions:,} decisions"
        raise ConfigError(f"{agent.name}: its network as ONNX decides otherwise in {counted}; valid: the same action in all")


class _NetworkComparison(Decider):
    """An agent that plays, with its network deciding on the same observations for comparison."""

    def __init__(self, agent: Agent, network: Any, remembers: bool, checked: int):
        self.name, self._agent, self._network, self._remembers = "beside", agent.controller, network, remembers
        self.decisions, self.different, self._checked = 0, 0, checked
        self._memory: list[np.ndarray] = []

    @property
    def env(self) -> dict[str, Any]:
        return self._agent.env

    def start(self, rules: Rules, seeds: Any) -> Policy:
        policy = SavedAgent.start(self._agent, rules, seeds)
        self._memory = []

        def decide_twice(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            actions, after = policy(observations, state, starts)
            if self.decisions < self._checked:
                given = {"observation": observations.astype(np.float32)}
                if self._remembers:
                    shapes = [np.zeros_like(part) for part in after]
                    memory = self._memory or shapes
                    given |= {"hidden": memory[0], "cell": memory[1], "starts": starts.astype(np.float32)}
                found, *self._memory = self._network.run(None, given)
                alike = np.isclose(found, actions, rtol=0, atol=ACTION_TOLERANCE).reshape(len(actions), -1).all(axis=1)
                self.decisions += len(actions)
                self.different += int((~alike).sum())
            return actions, after

        return decide_twice
