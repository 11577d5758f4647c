"""Learning curves: resumable runs of `netbuf-gym train`, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.rollout import Stopped
from netbuf_gym.training import curves
from studies.nuwa.nuwa_settings import POINTS, Settings

FOLDER = "training"
POLL_S = 0.2
LAST_WORDS_S = 60.0
"""Seconds an interrupted learner has to write its checkpoint; then it is killed, and resumes from the previous one."""
AGAIN_S = 4.0
"""Seconds between interrupts: a background process ignores them until it has installed its own handler."""
WORLDS = 256
"""Parallel worlds of a learner, the same for all learners."""
SHAPES: dict[str, tuple[str, ...]] = {
    "a2c": (),
    "dqn": (),
    "ppo": ("algo.kwargs.batch_size=2048",),
    "ppo_lstm": ("algo.kwargs.batch_size=2048",),
}
"""Overrides that `WORLDS` requires: batch sizes that divide the steps collected for an update."""


def build_overrides(settings: Settings, network: str, algorithm: str, seed: int) -> list[str]:
    """Return a run's arguments for `netbuf-gym train`: the paper's recipe on one network."""
    own = [] if settings.duration_s is None else [f"scenario.kwargs.duration_s={settings.duration_s:g}"]
    return [
        "experiment=nuwa_recipe",
        f"algo={algorithm}",
        f"algo.num_envs={WORLDS}",
        *SHAPES[algorithm],
        f"scenario=nuwa/{network}",
        *own,
        f"total_timesteps={settings.steps}",
        f"seed={seed}",
        "progress=false",
        "tensorboard=false",
    ]


def list_steps(settings: Settings) -> list[int]:
    """Return the environment steps at which learning curves have points."""
    return [round(settings.steps * (point + 1) / POINTS) for point in range(POINTS)]


def train_curve(settings: Settings, network: str, algorithm: str, seed: int, folder: Path, stop: threading.Event) -> np.ndarray:
    """Train unless already done, and return the return at each of `list_steps`; NaN before the end of the first episode.

    Raises:
        ConfigError: The learner failed; the message ends with the last line of its stderr.
        Stopped: `stop` was set; the same call resumes the training.
    """
    run_dir = folder / FOLDER / f"{network}-{algorithm}-{seed}"
    if not (run_dir / "model.zip").is_file():
        begun = (run_dir / "config.yaml").is_file()
        words = [f"resume={run_dir}"] if begun else [*build_overrides(settings, network, algorithm, seed), f"run_dir={run_dir}"]
        _train(words, stop)
    steps, values = curves.read_curve(run_dir)
    return np.interp(list_steps(settings), steps, values, left=np.nan) if steps else np.full(POINTS, np.nan)


def _train(words: list[str], stop: threading.Event) -> None:
    command = [sys.executable, "-m", "netbuf_gym", "train", *words]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=_build_environment()
    ) as process:
        try:
            while process.poll() is None and not stop.is_set():
                try:
                    process.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    continue
            _interrupt(process)
        finally:
            process.kill()
        said = process.stderr.read() if process.stderr else ""
    if stop.is_set() or process.returncode == 130:
        raise Stopped
    if process.returncode:
        last = said.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        raise ConfigError(f"netbuf-gym train {' '.join(words)}: {last[0]}")


def _interrupt(process: subprocess.Popen[str]) -> None:
    """Interrupt a learner every `AGAIN_S` until it has written its checkpoint and ended, for `LAST_WORDS_S` at most."""
    for _ in range(round(LAST_WORDS_S / AGAIN_S)):
        if process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(AGAIN_S)


def _build_environment() -> dict[str, str]:
    """Return an environment of one thread per learner, since several learners run side by side."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
