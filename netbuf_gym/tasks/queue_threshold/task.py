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
from netbuf_gym.scenarios.switches import (
    CONGESTED,
    DROPS,
    SERVICES,
    VICTIMS,
    AgentThresholds,
    FlowTable,
    Switch,
    compute_limit,
)
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.features import feature_table
from netbuf_gym.tasks.flows import links_at
from netbuf_gym.tasks.queue_threshold.actions import (
    CHOICES,
    DROP_AGENT,
    EXPONENTS,
    GRIDS,
    KINDS,
    LEAST_ALPHA,
    LEVERS,
    LIMIT_LEVELS_S,
    LIMIT_S,
    MAX_GRID,
    PULSE_LEVELS_S,
    PULSE_LIMIT_S,
    SCHEDULERS,
    apply_changes,
    convert_limits_to_alphas,
    count_levels,
    decode_alphas,
    decode_limits,
    encode_alphas,
    grid_levels,
    make_scheduler,
    scheduler_controls,
)
from netbuf_gym.tasks.queue_threshold.observations import (
    LEVER_FEATURES,
    QUEUE_FEATURES,
    SHARED_FEATURES,
    THESIS_QUEUE,
    THESIS_SHARED,
    observe_default,
    observe_levers,
    observe_thesis,
)
from netbuf_gym.tasks.queue_threshold.report import switch_report
from netbuf_gym.tasks.queue_threshold.telemetry import switch_kind
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker
from netbuf_gym.tasks.task import Panel, Task, outage_message
from netbuf_gym.utils.arguments import check_choice, check_integer, check_real, check_sequence
from netbuf_gym.utils.sums import sequential_sum

LEVER_OPTIONS = ("scheduler", "victims", "flow_slots", "flow_service")
"""Arguments of the recipe levers alone."""

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
    | default,    | 2^-8 to 2^3, log-scaled; 5/11 is 1            | 2^-8, 2^-4, 1/4, 1/2, 1, 2, 8     | 49                    |
    | levers      |                                               |                                   |                       |
    | thesis-text | 0.001 to 1, linear: (a + 1) / 2               | 1/8, 2/8, ... 1                   | 64                    |
    | thesis-code | 2^-3 to 2^3, log-scaled; 0 is 1               | 1/8, 1/4, 1/2, 1, 2, 4, 8         | 49                    |

    The other kinds of action, with the recipes default and levers, name limits in time: what the ports send in 1 ms to 1 s.
    Alpha is computed from the limit and the buffer that is free at that moment, and stands until the next decision:

    * `actions="limits"`: limits, log-scaled.
    * `actions="changes"`: changes of the limits; 1 is a limit four times as wide, -1 a quarter. An episode begins at 1 s.
    * `actions="limit_grid"`: `Discrete`, 1, 5, 10, 20, 50, 200 or 1000 ms for each queue; 49 actions of two queues.
    * `actions="pulse_grid"`: `Discrete`, for each queue 1, 10, 20, 50 or 1000 ms, or a pulse: 5 ms for the first 1, 3 or
      10 ms, and 1000 ms after it; 64 actions of two queues. Where several queues pulse, all pulse for the longest time.

    A queue at its limit drops at its tail or at its head, as set by the scenario or by `drop`. With `drop="agent"` (recipes
    default and levers) the action sets it: a box has one component more, above 0 for the head; a grid twice as many actions,
    the odd ones for the head. `congested` likewise sets whether packets of flows that speak ECN (`ecn=True` of `rlbm/*`) are
    dropped there or stored and marked; with `"agent"` the last component marks above 0, and a grid has twice as many actions
    again, of which the odd ones mark.

    The recipe levers adds what the best rivals of thresholds have. Each queue of each port has a table of flows
    (`netbuf_gym.scenarios.FlowTable`), `flow_slots` slots that are sent in turn, and the action also sets, for all ports,

    * `scheduler`: turns between queues by packet (`"round_robin"`), by bytes (`"drr"`), by bytes with four times the next
      queue's weight (`"weighted"`), or the lowest queue first (`"strict_priority"`);
    * `victims`: whether drops and marks hit `"any"` flow, or only `"large"` ones, whose slot has an equal share of the queue or
      more.

    Both become components of a box, in front of the drop place, and name their levels by equal parts of -1 to 1 in this order.
    A grid has 8 times as many actions (512 of two queues with pulses): marks vary fastest, then drop place, victims, scheduler
    and limits. With a value other than `"agent"` the choice is fixed and no part of the action. `flow_slots=0`: no table, and
    `"any"` victims.

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

    Recipe levers, behind these (its feature vector has 5 + 21 * queues):

    {features of levers}

    Recipes thesis-*, the paper's five state variables in [0, 1] (ranges and order are ours), as they were when a flow last
    completed (the paper assumes that a switch learns of that); counts and rates cover the time from the start of
    that interval to that moment:

    {features of thesis-text}

    ## Rewards

    The reward is a sum of named terms, shown in `info["reward_terms"]`; S is FCT / ideal FCT, the ideal being propagation
    there and back and the flow's bytes at the slowest link's rate:

    * default, levers: `switch_utility`: throughput (bits delivered / capacity) - slowdown (sum over flows completed of ln S,
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
    `flows_completed`, `fct_mean_s`, `slowdown_p99`, `slowdown_mean`, `slowdown_max` (ratios), `slowdown_log_mean`,
    `fct_utility`, `difference_p99_s`, `difference_max_s`, `drops`, `occupancy_mean`, `occupancy_p99`,
    `queue_mean_packets`, `probe_delay_mean_ms` (a ping of priority 0 once a second, one way), `duration_s`, `scenario`;
    and by priority `flows_completed_p0`, `fct_mean_s_p0`, `slowdown_p99_p0`, `slowdown_mean_p0`, `slowdown_log_mean_p0`,
    `queue_mean_packets_0` and so on (`netbuf_gym.tasks.queue_threshold.switch_report`). Percentiles are nearest rank; NaN
    where no flow completed.

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
    | `scheduler`   | **str**             | `"agent"` (levers)    | `"round_robin"`, `"drr"`, `"weighted"`,                |
    |               |                     |                       | `"strict_priority"` or `"agent"`; recipe levers        |
    | `victims`     | **str**             | `"agent"` (levers)    | `"any"`, `"large"` or `"agent"`; recipe levers         |
    | `flow_slots`  | **int**             | `None`                | slots of the flow table of each queue, 0 to 65536, 0:  |
    |               |                     |                       | no table; None: the scenario's, or 256; recipe levers  |
    | `flow_service`| **str**             | `None`                | `"drr"`: slots in turn, `"fifo"`: first in, first out; |
    |               |                     |                       | None: the scenario's, or `"drr"`; recipe levers        |
    {common arguments}

    ```python
    >>> import gymnasium as gym, netbuf_gym
    >>> env = gym.make("netbuf/QueueThreshold-v0", scenario={"name": "rlbm/default", "load": 0.8, "queue_packets": 200})
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step([1.0, 5 / 11])

    ```
    """

    name: ClassVar[str] = "queue_threshold"
    recipes: ClassVar[tuple[str, ...]] = ("default", LEVERS, "thesis-text", "thesis-code")
    default_history: ClassVar[dict[str, int]] = {"default": 4, LEVERS: 4, "thesis-text": 1, "thesis-code": 1}
    recipe_rewards: ClassVar[dict[str, str]] = {
        "default": "switch_utility",
        LEVERS: "switch_utility",
        "thesis-text": "thesis_text",
        "thesis-code": "thesis_code",
    }
    default_scenario: ClassVar[str] = "rlbm/default"
    options: ClassVar[tuple[str, ...]] = (
        *("actions", "betas", "drop", "congested"),
        *LEVER_OPTIONS,
    )
    discrete: ClassVar[dict[str, dict[str, Any]]] = {
        "default": {"actions": "pulse_grid"},
        LEVERS: {"actions": "pulse_grid"},
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
        scheduler: str | None = None,
        victims: str | None = None,
        flow_slots: int | None = None,
        flow_service: str | None = None,
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
        self.scheduler = None if scheduler is None else check_choice("scheduler", scheduler, (*SCHEDULERS, DROP_AGENT))
        self.victims = None if victims is None else check_choice("victims", victims, (*VICTIMS, DROP_AGENT))
        self.flow_slots = None if flow_slots is None else check_integer("flow_slots", flow_slots, 0, 65_536)
        self.flow_service = None if flow_service is None else check_choice("flow_service", flow_service, SERVICES)
        like_default = ("default", LEVERS)
        for name, value, everywhere, recipes in (
            ("actions", self.actions, ("continuous", "grid"), like_default),
            ("drop", self.drop, (None, *DROPS), like_default),
            ("congested", self.congested, (None, *CONGESTED), like_default),
            *((name, getattr(self, name), (None,), (LEVERS,)) for name in LEVER_OPTIONS),
        ):
            if value not in everywhere and recipe not in recipes:
                valid = " or ".join(f'"{one}"' for one in recipes)
                said = f'"{value}"' if isinstance(value, str) else value
                raise ConfigError(f"{name} = {said} with recipe {recipe!r}; valid: recipe {valid}")
        if self.flow_slots == 0:
            if self.victims not in (None, "any"):
                raise ConfigError(f'victims = "{self.victims}" with flow_slots = 0; valid: "any", or flow_slots of 1 and more')
            self.victims = "any"
        if recipe == LEVERS:
            self.scheduler, self.victims = self.scheduler or DROP_AGENT, self.victims or DROP_AGENT
        self.choices = tuple(choice for choice in CHOICES if getattr(self, choice.name) == DROP_AGENT)
        """Choices that actions make beside the thresholds."""
        self.places_drops, self.marks = self.drop == DROP_AGENT, self.congested == DROP_AGENT
        self.betas = self._check_betas(betas)
        self.kind = switch_kind(queues, levers=recipe == LEVERS)
        self._scheduler_controls = scheduler_controls(queues)
        self.until = EVENT if recipe == "thesis-code" else INTERVAL
        shared, own = (SHARED_FEATURES, QUEUE_FEATURES) if recipe in like_default else (THESIS_SHARED, THESIS_QUEUE)
        further = LEVER_FEATURES if recipe == LEVERS else ()
        numbered = (replace(feature, name=f"{feature.name}_{q}") for feature in (*own, *further) for q in range(queues))
        self.features = (*shared, *numbered)
        self.grid: np.ndarray | None = None
        """Levels of each action without `choices`, float64; None without a grid.

        With `actions="grid"` alphas `(actions, queues)`; with the other grids limits and pulse durations `(actions, 2, queues)`
        (`grid_levels`).
        """
        places = math.prod(choice.levels for choice in self.choices)
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
            self.action_space = gym.spaces.Box(-1.0, 1.0, (queues + len(self.choices),), np.float32)
            if self.choices:
                chosen = " and one for ".join(choice.meaning for choice in self.choices)
                self.action_is = f"a number for each queue and one for {chosen}"

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
        default = feature_table(SHARED_FEATURES, QUEUE_FEATURES, 2)
        levers = feature_table((), LEVER_FEATURES, 2, start=len(SHARED_FEATURES) + 2 * len(QUEUE_FEATURES))
        return {"default": default, LEVERS: levers, "thesis-text": thesis, "thesis-code": thesis}

    def _check_betas(self, betas: Any) -> tuple[float, ...] | None:
        """Return one beta for each queue; None: the scenario's."""
        if betas is None:
            return None if self.recipe in ("default", LEVERS) else (1.0,) + (0.5,) * (self.queues - 1)
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
        if self.recipe == LEVERS:
            changes |= self._set_levers(switch)
        return replace(scenario, switches=(replace(switch, **changes),)) if changes else scenario

    def _set_levers(self, switch: Switch) -> dict[str, Any]:
        """Return the changes of a switch that give it the flow table, and the scheduler and victims where actions set none."""
        table = switch.flow_table if switch.flow_table is not None else FlowTable()
        if self.flow_service is not None:
            table = replace(table, service=self.flow_service)
        if self.flow_slots:
            table = replace(table, slots=self.flow_slots)
        changes: dict[str, Any] = {"flow_table": None if self.flow_slots == 0 else table}
        if self.victims != DROP_AGENT:
            changes["victims"] = self.victims
        if self.scheduler is not None and self.scheduler != DROP_AGENT:
            changes["scheduler"] = make_scheduler(self.scheduler, self.queues)
        return changes

    def make_tracker(self, rows: int, interval_s: float) -> SwitchTracker:
        """Return the memory of each switch's telemetry."""
        self.interval_s = interval_s
        return SwitchTracker(rows, self.queues, levers=self.recipe == LEVERS)

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
            shares=switch.scheduler.compute_shares(self.queues),
        )

    def decode(self, action: np.ndarray, tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
        """Write the controls of checked actions to `out`, `(rows, 2 * queues + 3)`.

        The controls are alphas, alphas of cuts, the cuts' time, the drop place and marks; with the recipe levers `queues + 2`
        more: the scheduler, quanta and victims.
        """
        queues = self.queues
        out[:, queues:] = np.nan
        for choice in reversed(self.choices):
            if self.grid is not None:
                action, level = np.divmod(action, choice.levels)
            else:
                action, level = action[:, :-1], choice.read(action[:, -1])
            if choice.name == "scheduler":
                out[:, 2 * queues + 3 : 3 * queues + 4] = self._scheduler_controls[level]
            else:
                out[:, 2 * queues + {"drop": 1, "congested": 2, "victims": queues + 4}[choice.name]] = level
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

    def number_action(self, levels: np.ndarray, **chosen: int) -> np.ndarray:
        """Return the numbers of a grid's actions, given those of the queues' levels and a level of each choice, 0 if left out.

        Levels of choices that actions do not make are ignored.
        """
        for choice in self.choices:
            levels = levels * choice.levels + chosen.get(choice.name, 0)
        return levels

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
        for name, meaning, valid in (
            ("scheduler", "the scheduler", SCHEDULERS),
            ("victims", "the victims", VICTIMS),
        ):
            if getattr(self, name) == DROP_AGENT:
                raise ConfigError(f'{name} = "{DROP_AGENT}" makes {meaning} part of actions; valid here: {", ".join(valid)}')
        if self.places_drops:
            raise ConfigError(f'drop = "{DROP_AGENT}" makes the drop place part of actions; valid here: null, "tail" or "head"')
        if self.marks:
            raise ConfigError(f'congested = "{DROP_AGENT}" makes marking a part of actions; valid here: null, "drop" or "mark"')
        if self.grid is not None:
            return np.int64(np.abs(np.log(self.grid) - np.log(wanted)).sum(axis=1).argmin())
        return encode_alphas(wanted, self.recipe)

    def observe(self, tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
        """Write the feature vectors of the interval just ended, `(width, rows)`, to `out`: finite and within the space."""
        observers = {"default": observe_default, LEVERS: observe_levers}
        return observers.get(self.recipe, observe_thesis)(tracker, out)

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
            **({name: getattr(self, name) for name in LEVER_OPTIONS} if self.recipe == LEVERS else {}),
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
