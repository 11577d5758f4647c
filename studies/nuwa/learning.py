"""Learning curves: runs of `netbuf-gym train`, each in a process of its own, which goes on where it was interrupted."""

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
from studies.nuwa.settings import POINTS, Settings

FOLDER = "training"
POLL_S = 0.2
LAST_WORDS_S = 60.0
"""What an interrupted learner may take to write its checkpoint; then it is killed, and goes on from the one before."""
AGAIN_S = 4.0
"""Between interruptions: a process in the background is deaf to the first until it has put a handler of its own."""
WORLDS = 256
"""How many a learner steps at a time, the same for all."""
SHAPES: dict[str, tuple[str, ...]] = {
    "a2c": (),
    "dqn": (),
    "ppo": ("algo.kwargs.batch_size=2048",),
    "ppo_lstm": ("algo.kwargs.batch_size=2048",),
}
"""What follows from that number: batches that divide what is collected for an update."""


def overrides(settings: Settings, network: str, algorithm: str, seed: int) -> list[str]:
    """A run's arguments for `netbuf-gym train`: the paper's recipe on one network."""
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


def steps_of(settings: Settings) -> list[int]:
    """Where learning curves have their points."""
    return [round(settings.steps * (point + 1) / POINTS) for point in range(POINTS)]


def curve(settings: Settings, network: str, algorithm: str, seed: int, folder: Path, stop: threading.Event) -> np.ndarray:
    """Trains, unless that is done, and gives the return at each of `steps_of`, NaN before the first episode has ended.

    Raises:
        ConfigError: The learner failed; says what it said.
        Stopped: `stop` was set; the same call goes on.
    """
    run_dir = folder / FOLDER / f"{network}-{algorithm}-{seed}"
    if not (run_dir / "model.zip").is_file():
        begun = (run_dir / "config.yaml").is_file()
        words = [f"resume={run_dir}"] if begun else [*overrides(settings, network, algorithm, seed), f"run_dir={run_dir}"]
        _train(words, stop)
    steps, values = curves.read(run_dir)
    return np.interp(steps_of(settings), steps, values, left=np.nan) if steps else np.full(POINTS, np.nan)


def _train(words: list[str], stop: threading.Event) -> None:
    command = [sys.executable, "-m", "netbuf_gym", "train", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=_environment()) as process:
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
    """Asks a learner to write its checkpoint and end, again where it was not listening yet; see `LAST_WORDS_S`."""
    for _ in range(round(LAST_WORDS_S / AGAIN_S)):
        if process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(AGAIN_S)


def _environment() -> dict[str, str]:
    """One thread for each learner: several of them run side by side."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
