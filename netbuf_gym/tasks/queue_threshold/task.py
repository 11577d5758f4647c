"""The queue-threshold task: a shared-buffer switch decides, interval by interval, how long its queues may grow.

Rules only, batch first (leading axis = switches). The docstring of `QueueThreshold` is the environment's reference page.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, describe_scenario
from netbuf_gym.plants.counters import Counters
from netbuf_gym.plants.plant import EVENT, INTERVAL
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.switches import CONGESTED, DROPS, AgentThresholds, Switch, compute_limit
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.features import feature_table
from netbuf_gym.tasks.flows import links_at
from netbuf_gym.tasks.queue_threshold.actions import (
    DROP_AGENT,
    EXPONENTS,
    GRIDS,
    KINDS,
    LEAST_ALPHA,
    LIMIT_LEVELS_S,
    LIMIT_S,
    MAX_GRID,
    PULSE_LEVELS_S,
    PULSE_LIMIT_S,
    apply_changes,
    convert_limits_to_alphas,
    count_levels,
    decode_alphas,
    decode_limits,
    encode_alphas,
    grid_levels,
)
from netbuf_gym.tasks.queue_threshold.observations import (
    QUEUE_FEATURES,
    SHARED_FEATURES,
    THESIS_QUEUE,
    THESIS_SHARED,
    observe_default,
    observe_thesis,
)
from netbuf_gym.tasks.queue_threshold.report import switch_report
from netbuf_gym.tasks.queue_threshold.telemetry import switch_kind
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker
from netbuf_gym.tasks.task import Panel, Task, outage_message
from netbuf_gym.utils.arguments import check_choice, check_real, check_sequence
from netbuf_gym.utils.sums import sequential_sum

BLUE, LILAC, RED = (31, 119, 180), (200, 160, 220), (214, 39, 40)


class QueueThreshold(Task[SwitchTracker]):
    """
    ## Description

    `netbuf/QueueThreshold-v0`: a switch learns to share its buffer. Ten senders reach one receiver through a port of
    10 Mbit/s; flows come and go, short ones (below 2 MB, priority 0) and long ones (priority 1), each priority in a queue
    of its own, and both queues share one buffer. Every 100 ms the agent sets how long each queue may grow: a packet is
    admitted to queue q while

        length of q < alpha_q * beta_q * (buffer - occupancy)

    and the buffer has room. If the limit is too low, bursts are lost and links idle; if it is too high, one priority starves
    the other and packets wait. The agent sets the alphas; the betas are fixed. The world is a packet-level simulation with
    real TCP; the traffic under one seed is the same whatever the agent does.

    The task and its recipes `"thesis-text"` and `"thesis-code"` come from RLBM ("Reinforcement Learning for Buffer
    Management", as described and as coded); the recipe `"default"` is ours and designed to carry over between
    rates and buffer sizes. Alphas of (1, 1) are the thesis' naive buffer and (8, 1) its sophisticated one; both are exactly
    reachable (`netbuf_gym.tasks.queue_threshold.FixedThresholds`).

    ## Action Space

    `Box(-1, 1, (queues,))`, or with `actions="grid"` `Discrete` over all combinations of a few alphas, for DQN:

    | Recipe      | alpha of an action a in -1 to 1               | Alphas of the grid                | Actions of two queues |
    |-------------|-----------------------------------------------|-----------------------------------|-----------------------|
    | default     | 2^-8 to 2^3, log-scaled; 5/11 is 1            | 2^-8, 2^-4, 1/4, 1/2, 1, 2, 8     | 49                    |
    | thesis-text | 0.001 to 1, linear: (a + 1) / 2               | 1/8, 2/8, ... 1                   | 64                    |
    | thesis-code | 2^-3 to 2^3, log-scaled; 0 is 1               | 1/8, 1/4, 1/2, 1, 2, 4, 8         | 49                    |

    The other kinds of action, with the recipe default only, name limits in time: what the ports send in 1 ms to 1 s. Alpha is
    computed from the limit and the buffer that is free at that moment, and stands until the next decision:

    * `actions="limits"`: limits, log-scaled.
    * `actions="changes"`: changes of the limits; 1 is a limit four times as wide, -1 a quarter. An episode begins at 1 s.
    * `actions="limit_grid"`: `Discrete`, 1, 5, 10, 20, 50, 200 or 1000 ms for each queue; 49 actions of two queues.
    * `actions="pulse_grid"`: `Discrete`, for each queue 1, 10, 20, 50 or 1000 ms, or a pulse: 5 ms for the first 1, 3 or
      10 ms, and 1000 ms after it; 64 actions of two queues. Where several queues pulse, all pulse for the longest time.

    A queue at its limit drops at its tail or at its head, as set by the scenario or by `drop`. With
    `drop="agent"` (recipe default) the action sets it: a box has one component more, above 0 for the head; a grid twice as
    many actions, the odd ones for the head. `congested` likewise sets whether packets of flows that speak ECN (`ecn=True` of
    `rlbm/*`) are dropped there or stored and marked; with `"agent"` the last component marks above 0, and a grid has twice as
    many actions again, of which the odd ones mark.

    Exponents are rounded to steps of 1/1024. Components outside [-1, 1], infinite ones included, are clipped; NaN or a
    wrong shape raises `ConfigError`, as does an integer that a grid does not have. Queue 0 varies slowest in a grid's
    numbers. The thesis' text gives alpha in (0, 1], its code an unbounded exponent: least alpha and range are ours.

    ## Observation Space

    `Box` of `history` feature vectors, flattened, oldest first. After a reset all of them are the first one.

    Recipe default, what a switch can count: 5 + 18 * queues features in [-1, 1], feature by feature with the queues' values
    side by side (`alpha_0, alpha_1, limit_0, ...`). What ports can send is their rate times the measured interval. Several
    ports are added up: a queue is the sum of the queues of its number at all ports, and its threshold is one port's times the
    number of ports; a cap of the scenario on queues (`queue_cap`) is a threshold's upper bound. A value from Low to High is
    mapped onto the numbers before the colons, on the scale that its meaning names. With two queues:

    {features of default}

    A value that an interval did not measure (no packet left the queue) keeps its last measured value; before the first it is
    0. Times since an event are at most 10 s, and 10 s before the event has happened. Of a flow the switch sees the SYN and the
    last segment (FIN) pass. The least queue is the minimum over the last intervals that make 100 ms and those that made 100 ms
    before them.

    Recipes thesis-*, the paper's five state variables in [0, 1] (ranges and order are ours), as they were when a flow last
    completed (the paper assumes that a switch learns of that); counts and rates cover the time from the start of
    that interval to that moment:

    {features of thesis-text}

    ## Rewards

    The reward is a sum of named terms, shown in `info["reward_terms"]`; S is FCT / ideal FCT, the ideal being propagation
    there and back and the flow's bytes at the slowest link's rate:

    * default: `switch_utility`: throughput (bits delivered / capacity) - slowdown (sum over flows completed of ln S,
      priority 1 weighing a tenth) - buffer (0.1 * occupancy * seconds) - loss, delay and burst (weights 0). An integral over
      time and events. All weights, by priority and queue too, are parameters.
    * thesis-text: `thesis_text`, -ln(WFS) + ln(1 + packets received / s), WFS the worst FCT - ideal FCT in seconds.
    * thesis-code: `thesis_code`, -log2(worst S) + log2(1 + Gbit/s).

    Others: `"alpha_fair"`, `"range_normalized"`, a dict of a name and parameters (`netbuf_gym.tasks.queue_threshold.rewards`),
    or a function or object of your own, see `netbuf_gym.rewards`.

    ## Starting State

    An empty network at time 0, of a scenario with one switch, whose admission becomes the one agent's; alphas as the scenario
    has them, (1, 1). A random scenario is drawn anew each episode.

    ## Episode End

    {episode end} `rlbm/*` last 60 s, 600 decisions.

    With the recipe thesis-code a decision lasts whole intervals until the worst slowdown has changed, so that an episode
    has as many decisions as there are such changes.

    The last step's `info` reports the whole episode, start-up included: `goodput_mbps`, `flows_started`,
    `flows_completed`, `fct_mean_s`, `slowdown_p99`, `slowdown_mean`, `slowdown_max` (ratios), `difference_p99_s`,
    `difference_max_s`, `drops`, `occupancy_mean`, `occupancy_p99`, `queue_mean_packets`, `probe_delay_mean_ms` (a ping of
    priority 0 once a second, one way), `duration_s`, `scenario`; and by priority `flows_completed_p0`, `fct_mean_s_p0`,
    `slowdown_p99_p0`, `slowdown_mean_p0`, `queue_mean_packets_0` and so on
    (`netbuf_gym.tasks.queue_threshold.switch_report`). Percentiles are nearest rank; NaN where no flow completed.

    ## Arguments

    | Parameter     | Type                | Default               | Description                                            |
    |---------------|---------------------|-----------------------|--------------------------------------------------------|
    | `actions`     | **str**             | `"continuous"`        | `"continuous"`, `"limits"`, `"changes"`, `"grid"`,     |
    |               |                     |                       | `"limit_grid"` or `"pulse_grid"`                       |
    | `betas`       | **list** of float   | the recipe's          | a fixed factor above 0 to 1 for each queue; default:   |
    |               |                     |                       | the scenario's, or all 1; thesis-*: 1, then 0.5        |
    |               |                     |                       | ("no beta" is `[1, 1]`)                                |
    | `drop`        | **str**             | `None`                | `"tail"`, `"head"`, `"agent"`: by its actions; None:   |
    |               |                     |                       | the scenario's                                         |
    | `congested`   | **str**             | `None`                | `"drop"`, `"mark"`, `"agent"`: likewise, of flows that |
    |               |                     |                       | speak ECN; None: the scenario's                        |
    {common arguments}

    ```python
    >>> import gymnasium as gym, netbuf_gym
    >>> env = gym.make("netbuf/QueueThreshold-v0", scenario={"name": "rlbm/default", "load": 0.8, "queue_packets": 200})
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step([1.0, 5 / 11])

    ```
    """

    name: ClassVar[str] = "queue_threshold"
    recipes: ClassVar[tuple[str, ...]] = ("default", "thesis-text", "thesis-code")
    default_history: ClassVar[dict[str, int]] = {"default": 4, "thesis-text": 1, "thesis-code": 1}
    recipe_rewards: ClassVar[dict[str, str]] = {
        "default": "switch_utility",
        "thesis-text": "thesis_text",
        "thesis-code": "thesis_code",
    }
    default_scenario: ClassVar[str] = "rlbm/default"
    options: ClassVar[tuple[str, ...]] = ("actions", "betas", "drop", "congested")
    discrete: ClassVar[dict[str, dict[str, Any]]] = {
        "default": {"actions": "pulse_grid"},
        "thesis-text": {"actions": "grid"},
        "thesis-code": {"actions": "grid"},
    }
    action_is: str | None = "a number for each queue"

    def __init__(
        self,
        recipe: str = "default",
        history: int | None = None,
        agents: int = 1,
        *,
        actions: str = "continuous",
        betas: Any = None,
        drop: str | None = None,
        congested: str | None = None,
        queues: int = 2,
    ):
        super().__init__(recipe, history, agents)
        if self.agents != 1:
            raise ConfigError(f"agents = {self.agents}; valid for {self.name}: 1, the switch")
        self.queues = queues
        self.interval_s = self.default_interval_s
        """Time between decisions, for rules that count time by decisions; the environment sets it when it makes the tracker."""
        self.actions = check_choice("actions", actions, KINDS)
        self.drop = None if drop is None else check_choice("drop", drop, (*DROPS, DROP_AGENT))
        self.congested = None if congested is None else check_choice("congested", congested, (*CONGESTED, DROP_AGENT))
        for name, value, everywhere in (
            ("actions", self.actions, ("continuous", "grid")),
            ("drop", self.drop, (None, *DROPS)),
            ("congested", self.congested, (None, *CONGESTED)),
        ):
            if value not in everywhere and recipe != "default":
                raise ConfigError(f'{name} = "{value}" with recipe {recipe!r}; valid: recipe "default"')
        self.places_drops, self.marks = self.drop == DROP_AGENT, self.congested == DROP_AGENT
        self.betas = self._check_betas(betas)
        self.kind = switch_kind(queues)
        self.until = EVENT if recipe == "thesis-code" else INTERVAL
        shared, own = (SHARED_FEATURES, QUEUE_FEATURES) if recipe == "default" else (THESIS_SHARED, THESIS_QUEUE)
        numbered = (replace(feature, name=f"{feature.name}_{q}") for feature in own for q in range(queues))
        self.features = (*shared, *numbered)
        self.grid: np.ndarray | None = None
        """Levels of each action without drop place and marks, float64; None without a grid.

        With `actions="grid"` alphas `(actions, queues)`; with the other grids limits and pulse durations `(actions, 2, queues)`
        (`grid_levels`).
        """
        choices = self.places_drops + self.marks
        places = 2**choices
        if self.actions.endswith("grid"):
            levels = count_levels(self.actions, recipe)
            if places * levels**queues > MAX_GRID:
                said = f'actions = "{self.actions}" has {places * levels**queues} actions of {queues} queues'
                raise ConfigError(f"{said}; valid: at most {MAX_GRID}")
            if self.actions == "grid":
                self.grid = np.array(list(itertools.product(GRIDS[recipe], repeat=queues)))
            else:
                self.grid = grid_levels(self.actions, queues)
            self.action_space = gym.spaces.Discrete(places * len(self.grid))
            self.action_is = None
        else:
            self.action_space = gym.spaces.Box(-1.0, 1.0, (queues + choices,), np.float32)
            chosen = [what for what, own in (("the drop place", self.places_drops), ("marks", self.marks)) if own]
            if chosen:
                self.action_is = f"a number for each queue and one for {' and one for '.join(chosen)}"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Panels for each queue with its limit, and for drops."""
        of_queues = [
            Panel(
                *(f"queue_packets_{q}", f"QUEUE {q} PACKETS", BLUE),
                *(f"threshold_packets_{q}", "LIMIT", LILAC),
                title=f"queue {q} (packets)",
            )
            for q in range(min(self.queues, 4))  # no room for more panels in a picture
        ]
        return (*of_queues, Panel("drops", "DROPS", RED, title="drops in an interval"))

    @classmethod
    def feature_tables(cls) -> dict[str, str]:
        """Return the feature table of each recipe, with two queues, for this page."""
        thesis = feature_table(THESIS_SHARED, THESIS_QUEUE, 2)
        return {"default": feature_table(SHARED_FEATURES, QUEUE_FEATURES, 2), "thesis-text": thesis, "thesis-code": thesis}

    def _check_betas(self, betas: Any) -> tuple[float, ...] | None:
        """Return one beta for each queue; None: the scenario's."""
        if betas is None:
            return None if self.recipe == "default" else (1.0,) + (0.5,) * (self.queues - 1)
        values = check_sequence("betas", betas, "numbers")
        if len(values) != self.queues:
            raise ConfigError(f"betas has {len(values)} values for {self.queues} queues; valid: as many")
        return tuple(check_real(f"betas[{q}]", value, 0, 1, low_open=True) for q, value in enumerate(values))

    @classmethod
    def world_arguments(cls, world: Scenario) -> dict[str, Any]:
        """Return the number of queues of the world's switch."""
        return {"queues": _require_one_switch(world).queues}

    def control(self, scenario: Scenario) -> Scenario:
        """Return the world with the thresholds of its switch controlled by the agent."""
        switch = _require_one_switch(scenario)
        if switch.queues != self.queues:
            raise ConfigError(
                f"{describe_scenario(scenario)} has a switch of {switch.queues} queues; valid: {self.queues}, as in the others"
            )
        if not sequential_sum(link.mean_mbps(scenario.duration_s) for link in links_at(scenario, switch.ports)) > 0:
            raise ConfigError(outage_message(scenario))
        changes: dict[str, Any] = {}
        if not isinstance(switch.admission, AgentThresholds):
            changes["admission"] = AgentThresholds(betas=self.betas or (1.0,) * self.queues)
        elif self.betas not in (None, switch.admission.betas):
            changes["admission"] = replace(switch.admission, betas=self.betas)
        for name, value in (("drop", self.drop), ("congested", self.congested)):
            if value not in (None, DROP_AGENT, getattr(switch, name)):
                changes[name] = value
        return replace(scenario, switches=(replace(switch, **changes),)) if changes else scenario

    def make_tracker(self, rows: int, interval_s: float) -> SwitchTracker:
        """Return the memory of each switch's telemetry."""
        self.interval_s = interval_s
        return SwitchTracker(rows, self.queues)

    def start(self, tracker: SwitchTracker, rows: slice, scenario: Scenario) -> None:
        switch = scenario.switches[0]
        admission = switch.admission
        assert isinstance(admission, AgentThresholds), "`control` makes them an agent's"
        tracker.reset(
            rows,
            capacity_bps=sequential_sum(_line_rate_mbps(link) for link in links_at(scenario, switch.ports)) * 1e6,
            capacity=switch.capacity,
            in_bytes=switch.in_bytes,
            packet_bytes=scenario.data_bytes,
            alphas=admission.alphas,
            betas=admission.betas,
            ports=len(switch.ports),
            queue_cap=switch.queue_cap,
            drop_head=switch.drop == "head",
        )

    def decode(self, action: np.ndarray, tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
        """Write the controls of checked actions to `out`, `(rows, 2 * queues + 3)`.

        The controls are alphas, alphas of cuts, the cuts' time, the drop place and marks.
        """
        queues = self.queues
        out[:, queues:] = np.nan
        for chooses, column in ((self.marks, -1), (self.places_drops, -2)):
            if chooses:
                out[:, column] = action % 2 if self.grid is not None else action[:, -1] > 0
                action = action // 2 if self.grid is not None else action[:, :-1]
        if self.actions in ("continuous", "grid"):
            out[:, :queues] = self.decode_alphas(action)
            tracker.note_decision(out[:, :queues].T)
            return out
        if self.grid is not None:
            limit_s, pulse_s = self.grid[action].swapaxes(0, 1)
            out[:, :queues] = convert_limits_to_alphas(limit_s, tracker)
            if pulse_s.any():
                cut = convert_limits_to_alphas(np.where(pulse_s > 0, PULSE_LIMIT_S, np.nan), tracker)
                longest_s = pulse_s.max(axis=1)
                out[:, queues : 2 * queues] = cut
                out[:, 2 * queues] = np.where(longest_s > 0, longest_s, np.nan)
                limit_s = np.where(pulse_s > 0, PULSE_LIMIT_S, limit_s)
        else:
            limit_s = decode_limits(action) if self.actions == "limits" else apply_changes(action, tracker.limit_s.T)
            tracker.limit_s[:] = limit_s.T
            out[:, :queues] = convert_limits_to_alphas(limit_s, tracker)
        tracker.note_limits(limit_s.T)
        return out

    def decode_alphas(self, action: np.ndarray) -> np.ndarray:
        """Return the alphas, `(rows, queues)`, of checked actions that name alphas and nothing else."""
        return decode_alphas(action, self.recipe) if self.grid is None else self.grid[action]

    def encode(self, alphas: Any) -> np.ndarray | np.int64:
        """Return the action of one switch closest to these alphas: a float32 array `(queues,)`, or a grid's integer.

        Raises:
            ConfigError: The alphas are not one number above 0 for each queue.
        """
        values = check_sequence("alphas", alphas, "numbers")
        if len(values) != self.queues:
            raise ConfigError(f"alphas has {len(values)} values for {self.queues} queues; valid: as many")
        wanted = np.array([check_real(f"alphas[{q}]", value, 0, 1e6, low_open=True) for q, value in enumerate(values)])
        if self.actions not in ("continuous", "grid"):
            raise ConfigError(f'actions = "{self.actions}" name times, not alphas; valid: "continuous" or "grid"')
        if self.places_drops:
            raise ConfigError(f'drop = "{DROP_AGENT}" makes the drop place part of actions; valid here: null, "tail" or "head"')
        if self.marks:
            raise ConfigError(f'congested = "{DROP_AGENT}" makes marking a part of actions; valid here: null, "drop" or "mark"')
        if self.grid is not None:
            return np.int64(np.abs(np.log(self.grid) - np.log(wanted)).sum(axis=1).argmin())
        return encode_alphas(wanted, self.recipe)

    def observe(self, tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
        """Write the feature vectors of the interval just ended, `(width, rows)`, to `out`: finite and within the space."""
        return observe_default(tracker, out) if self.recipe == "default" else observe_thesis(tracker, out)

    def report(self, scenario: Scenario, counters: list[Counters]) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.queue_threshold.report.switch_report`."""
        return [switch_report(scenario, own) for own in counters]

    def show(self, tracker: SwitchTracker, row: int) -> dict[str, float]:
        """Return queued packets in all and in each queue, thresholds in packets, alphas, drops and Mbit/s, over all ports."""
        unit = float(tracker.packet_units[row])
        queued, drops = float(tracker.queue.queue_packets[:, row].sum()), float(tracker.packets_dropped[row])
        left_mbit, elapsed_s = float(tracker.queue.drained_bytes[:, row].sum()) * 8e-6, float(tracker.elapsed_s[row])
        rate = left_mbit / elapsed_s if elapsed_s > 0 else math.nan
        state = {"queue_packets": queued, "drops": drops, "throughput_mbps": rate}
        for q in range(self.queues):
            alpha = float(tracker.queue.alpha[q, row])
            state[f"queue_packets_{q}"] = float(tracker.queue.queue_packets[q, row])
            state[f"alpha_{q}"] = alpha
            capacity = float(tracker.capacity[row])
            cap = float(tracker.cap_share[row]) * capacity
            limit = compute_limit(alpha, float(tracker.betas[q, row]), float(tracker.free[row]), cap)
            limit *= float(tracker.ports[row])
            state[f"threshold_packets_{q}"] = float(min(limit, capacity)) / unit
        return state

    def format_state(self, state: dict[str, float]) -> str:
        queues = "   ".join(
            f"queue {q} {state[f'queue_packets_{q}']:6.0f} of {state[f'threshold_packets_{q}']:7.1f}"
            for q in range(self.queues)
        )
        return f"t {state['time_s']:8.2f} s   {queues} packets   drops {state['drops']:6.0f}"

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that a saved model must agree with, actions, queues and betas included."""
        levels = {
            "continuous": EXPONENTS.get(self.recipe, (LEAST_ALPHA, 1.0)),
            "grid": GRIDS[self.recipe],
            "limit_grid": LIMIT_LEVELS_S,
            "pulse_grid": [*map(list, PULSE_LEVELS_S), PULSE_LIMIT_S],
        }.get(self.actions, LIMIT_S)
        return {
            **super().to_dict(),
            "actions": {"kind": self.actions, "levels": list(levels)},
            "drop": self.drop,
            **({} if self.congested is None else {"congested": self.congested}),
            "queues": self.queues,
            "betas": None if self.betas is None else list(self.betas),
        }


def _require_one_switch(scenario: Scenario) -> Switch:
    if len(scenario.switches) != 1:
        valid = "a scenario with one, e.g. rlbm/default"
        raise ConfigError(f"{describe_scenario(scenario)} has {len(scenario.switches)} switches; valid: {valid}")
    return scenario.switches[0]


def _line_rate_mbps(link: Link) -> float:
    """Return the line rate of a port, which a switch knows; for a varying one the highest, not the mean of the future."""
    highest = link.trace.peak_mbps if link.trace is not None else link.mean_mbps()
    return min(highest, link.throughput_limit_mbps)
