"""Speed of PPO on the congestion-window environment, and the share of its time that the environment takes.

    python benchmarks/training.py [--runs N] [--json FILE] [--update docs/benchmarks.md] [--scenario NAME ...]

1024 worlds, networks of (64, 64), the task's default history and interval, 4 epochs in minibatches of 8192, two threads
on two cores: `ppcc/4` and the randomised distribution `ppcc/random`. Each run is a process of its own, bound to two
cores; it trains for one update to warm up and is timed over the next ones, rollouts and updates included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from measure import Row, parser, report

COMMAND = "python benchmarks/training.py"
WORLDS, ROLLOUT_STEPS, CORES, UPDATES = 1024, 32, 2, 12


def train(scenario: str) -> dict[str, float]:
    """Trains in this process: environment steps a second of wall clock, and the environment's share of it."""
    cores = sorted(os.sched_getaffinity(0))[-CORES:]
    os.sched_setaffinity(0, cores)
    from netbuf_gym.zoo.ppo import BatchPPO  # isort: skip  first: the zoo tells OpenMP, before torch is loaded, not to spin
    import gymnasium as gym
    import torch
    from stable_baselines3.common.logger import Logger

    from netbuf_gym.integrations.sb3 import VectorEnvAdapter

    torch.set_num_threads(len(cores))
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=WORLDS, scenario=scenario, threads=len(cores))
    model = BatchPPO(
        "MlpPolicy",
        VectorEnvAdapter(env),
        n_steps=ROLLOUT_STEPS,
        batch_size=8192,
        n_epochs=4,
        policy_kwargs={"net_arch": [64, 64]},
        seed=1,
        device="cpu",
    )
    model.set_logger(Logger(None, []))  # its own would leave a folder in /tmp
    model.learn(WORLDS * ROLLOUT_STEPS)
    in_env, started = model.seconds_in_env, time.perf_counter()
    model.learn(WORLDS * ROLLOUT_STEPS * UPDATES, reset_num_timesteps=False)
    spent = time.perf_counter() - started
    return {
        "steps_per_s": WORLDS * ROLLOUT_STEPS * UPDATES / spent,
        "env_percent": 100 * (model.seconds_in_env - in_env) / spent,
    }


def main() -> None:
    arguments = parser(__doc__.split("\n")[0], runs=5)
    arguments.add_argument("--scenario", nargs="+", default=["ppcc/4", "ppcc/random"], help="what to train on")
    arguments.add_argument("--one", metavar="NAME", help="one run in this process; prints JSON")
    options = arguments.parse_args()
    if options.one:
        print(json.dumps(train(options.one)))
        return
    rows = []
    for scenario in options.scenario:
        command = [sys.executable, Path(__file__), "--one", scenario]
        runs = [
            json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            for _ in range(options.runs)
        ]
        asked = scenario == "ppcc/4"
        speed, share = ([run[key] for run in runs] for key in ("steps_per_s", "env_percent"))
        name = f"PPO on {scenario}, 2 cores"
        rows.append(Row(name, "env steps/s", speed, 50e3 if asked else None))
        rows.append(Row(f"{name}, time in the environment", "%", share, 15.0 if asked else 25.0, at_most=True))
    report("training", COMMAND, rows, options, [])


if __name__ == "__main__":
    main()
