"""Speed of PPO and PPO-LSTM on the congestion-window environment, and the share of its time that the environment takes.

    python benchmarks/training.py [--runs N] [--json FILE] [--update FILE] [--scenario NAME ...] [--learner NAME ...]

1024 worlds, networks of (64, 64), of PPO-LSTM behind LSTMs of 64 for actor and critic each, the task's default history and
interval, 4 epochs in minibatches of 8192, two threads on two cores: `ppcc/4` and the randomised distribution `ppcc/random`.
Each run is a process of its own, bound to two cores; it trains for one update to warm up and is timed over the next ones,
rollouts and updates included. A second of processor time is one of either core: what it does says more on a busy machine.

A faster learner leaves the environment a larger share. What the environment is to take is therefore a share beside the learner
of one commit, `KEPT_LEARNER`, which is read from the repository's history and trained on today's environment.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from measure import Row, parser, report

COMMAND = "python benchmarks/training.py"
WORLDS, ROLLOUT_STEPS, CORES, UPDATES = 1024, 32, 2, 12


KEPT_LEARNER = "54368972:zoo/ppo.py"
"""Module in the repository's history whose `BatchPPO` the environment's share is measured beside."""

# module or file in the history and class, policy, arguments of the policy
LEARNERS: dict[str, tuple[str, str, dict[str, object]]] = {
    "PPO": ("netbuf_gym.training.algorithms.ppo:BatchPPO", "MlpPolicy", {}),
    "PPO of 54368972": (f"{KEPT_LEARNER}:BatchPPO", "MlpPolicy", {}),
    "PPO-LSTM": ("netbuf_gym.training.algorithms.ppo_lstm:BatchRecurrentPPO", "MlpLstmPolicy", {"lstm_hidden_size": 64}),
}


def read_history(file: str) -> str | None:
    """Return the text of a file of a commit, `COMMIT:PATH`; None where the history is not there."""
    done = subprocess.run(["git", "show", file], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def find_learner(place: str) -> Any:
    """Return the class of a learner."""
    module, _, name = place.rpartition(":")
    if module != KEPT_LEARNER:
        return getattr(importlib.import_module(module), name)
    kept = ModuleType("kept_learner")
    sys.modules[kept.__name__] = kept
    exec(compile(read_history(module) or "", module, "exec"), vars(kept))
    return getattr(kept, name)


def train(learner: str, scenario: str) -> dict[str, float]:
    """Trains in this process: environment steps a second of wall clock and of processor time, the environment's share."""
    cores = sorted(os.sched_getaffinity(0))[-CORES:]
    os.sched_setaffinity(0, cores)
    import netbuf_gym.training  # noqa: F401  # isort: skip  first: it tells OpenMP, before torch is loaded, not to spin
    import gymnasium as gym
    import torch
    from stable_baselines3.common.logger import Logger

    from netbuf_gym.integrations.sb3 import VectorEnvAdapter

    torch.set_num_threads(len(cores))
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=WORLDS, scenario=scenario, threads=len(cores))
    place, policy, policy_kwargs = LEARNERS[learner]
    model = find_learner(place)(
        policy,
        VectorEnvAdapter(env),
        n_steps=ROLLOUT_STEPS,
        batch_size=8192,
        n_epochs=4,
        policy_kwargs={"net_arch": [64, 64], **policy_kwargs},
        seed=1,
        device="cpu",
    )
    model.set_logger(Logger(None, []))  # its own would leave a folder in /tmp
    model.learn(WORLDS * ROLLOUT_STEPS)
    in_env, started, processor = model.seconds_in_env, time.perf_counter(), time.process_time()
    model.learn(WORLDS * ROLLOUT_STEPS * UPDATES, reset_num_timesteps=False)
    spent = time.perf_counter() - started
    return {
        "steps_per_s": WORLDS * ROLLOUT_STEPS * UPDATES / spent,
        "steps_per_processor_s": WORLDS * ROLLOUT_STEPS * UPDATES / (time.process_time() - processor),
        "env_percent": 100 * (model.seconds_in_env - in_env) / spent,
    }


def main() -> None:
    arguments = parser(__doc__.split("\n")[0], runs=5)
    arguments.add_argument("--scenario", nargs="+", default=["ppcc/4", "ppcc/random"], help="what to train on")
    arguments.add_argument("--learner", nargs="+", default=[*LEARNERS], choices=LEARNERS, help="what is trained")
    arguments.add_argument("--one", nargs=2, metavar=("LEARNER", "NAME"), help="one run in this process; prints JSON")
    options = arguments.parse_args()
    if options.one:
        print(json.dumps(train(*options.one)))
        return
    rows, notes = [], []
    for learner, scenario in itertools.product(options.learner, options.scenario):
        kept = LEARNERS[learner][0].startswith(KEPT_LEARNER)
        if kept and read_history(KEPT_LEARNER) is None:
            notes.append(f"{learner} was left out on {scenario}: the repository's history is not there")
            continue
        command = [sys.executable, Path(__file__), "--one", learner, scenario]
        runs = [
            json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            for _ in range(options.runs)
        ]
        keys = ("steps_per_s", "steps_per_processor_s", "env_percent")
        speed, by_processor, share = ([run[key] for run in runs] for key in keys)
        name = f"{learner} on {scenario}, 2 cores"
        if not kept:
            asked = None if learner == "PPO" and scenario != "ppcc/4" else 50e3 if learner == "PPO" else 5e3
            rows.append(Row(name, "env steps/s", speed, asked))
        most = (15.0 if scenario == "ppcc/4" else 25.0) if kept else None
        rows.append(Row(f"{name}, time in the environment", "%", share, most, at_most=True))
        if not kept:
            rows.append(Row(f"{name}, by processor time", "env steps/s of a core", by_processor))
    report("training", COMMAND, rows, options, notes)


if __name__ == "__main__":
    main()
