"""The host-buffers task: a host decides at intervals how large its layers of network buffers are.

Rules only, batch first (leading axis = hosts). The docstring of `HostBuffers` is the environment's reference page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, describe_scenario, quote
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.actions import FactorActions
from netbuf_gym.tasks.features import Feature
from netbuf_gym.tasks.host_buffers.actions import (
    FACTORS,
    LAYERS,
    STEPS,
    ControlActions,
    decode_auter,
    decode_choice,
    decode_default,
    decode_direct,
    make_control_actions,
    make_factor_actions,
)
from netbuf_gym.tasks.host_buffers.hosts import (
    apply_settings,
    change_hosts,
    compute_offer,
    ensure_hosts,
    find_agent_hosts,
    initial_settings,
)
from netbuf_gym.tasks.host_buffers.observations import (
    AUTER_FEATURES,
    CONTROL_FEATURES,
    DEFAULT_FEATURES,
    observe_auter,
    observe_control,
    observe_default,
)
from netbuf_gym.tasks.host_buffers.report import episode_reports
from netbuf_gym.tasks.host_buffers.settings import CHOICES, DEFAULT
from netbuf_gym.tasks.host_buffers.telemetry import HOST, make_choosing_kind
from netbuf_gym.tasks.host_buffers.tracker import CONTROL, Tracker
from netbuf_gym.tasks.task import Panel, Task
from netbuf_gym.utils.arguments import check_choice, check_integer, check_sequence

RING_REQUESTS, RING_CONNECTIONS = 3, 100
"""n and m of Algorithm 1, which the paper does not state: ours."""

MAX_RING_COUNT = 10**9


class HostBuffers(Task[Tracker]):
    """
    ## Description

    `netbuf/HostBuffers-v0`: a proxy on a long-distance path learns how large its network buffers should be. Every few seconds
    it decides on three layers of them: the ring between its network stack and its device, the cap of socket buffers that
    programs ask for, and the buffers that TCP's autotuning gives to connections. Buffers below the path's bandwidth-delay
    product limit the throughput; larger ones fill queues on the path, and the host's memory. The world is a packet-level
    simulation with real TCP machinery and a host whose buffers follow Linux's rules; or, with `plant="linux"`, a kernel.

    The task and its recipe `"auter"` come from Auter (He, Cao, Wang, Sun, Xu and Li, "Auter: Automatically Tuning Multi-layer
    Network Buffers in Long-Distance Shadowsocks Networks"); the recipe `"default"` is ours and designed to carry over from
    0.1 Mbit/s to 1 Gbit/s and from 1 ms to 1 s.

    ## Action Space

    Ranges: ring 64 to 4096 packets, socket cap 5120 to 67108864 bytes, TCP buffers 512 to 67108864 bytes, a TCP default never
    above its maximum. Both directions, `tcp_rmem` and `tcp_wmem`, are set.

    Recipe default: factors of a layer, limited to its range. `Discrete`: one layer per decision. 0 leaves everything as it is;
    then come the factors of each layer that is acted on (`acts_on`), in this order:

    | Layer             | Factors                         | Of                                                                 |
    |-------------------|---------------------------------|--------------------------------------------------------------------|
    | `"tcp"`           | 1/4, 1/1.5, 1/1.1, 1.1, 1.5, 4  | the TCP maxima, at least 16384 bytes; the defaults are what they   |
    |                   |                                 | were at first, or the maximum where it is less                     |
    | `"socket"`        | 1/4, 4                          | the cap of explicit socket buffers                                 |
    | `"ring"`          | 1/2, 2                          | the ring, where there is one; a resize lets nothing pass a while   |
    | `"limit_output"`  | 1/2, 2                          | `tcp_limit_output_bytes`, 16384 to 67108864 bytes                  |
    | `"notsent_lowat"` | 1/2, 2                          | `tcp_notsent_lowat`, 4096 to 67108864 bytes                        |
    | `"window_clamp"`  | 1/1.6, 1.6                      | what connections advertise at most, 4096 to 67108864 bytes         |

    With `actions="multi"` it is a `MultiDiscrete`: for each layer one of its factors in rising order, 1 in their middle.

    Recipe auter: `MultiDiscrete([3, 3, 3])`, steps -1, 0 and 1 of ring, socket and TCP buffer; with `actions="flat"` the same
    as `Discrete(27)`: 9 i + 3 j + k. b <- b + scale * step, scale 8 packets and 1024 bytes; a step that would leave the range
    is rejected. The TCP default and maximum move together. The ring follows Algorithm 1: a request for a larger ring adds to
    its count and clears that of requests for a smaller one, and the other way round; no request leaves both counts. The ring
    changes when a count exceeds `ring_requests` and at most `ring_connections` connections are alive.

    Recipe direct: `Box(-1, 1, (4,))`, the settings themselves: ring, socket cap, TCP default, TCP maximum, each on the log
    scale of its range. For custom rules.

    Recipe control: the factors of the layers that are acted on, by default of the TCP maxima, then a choice of the congestion
    control of all that the host sends. `Discrete`: after the factors come one number for each of `controls`, and one for a slow
    start of what was chosen. With `actions="multi"` the last number is 0 for the present control, 1 + i for `controls[i]`, and
    the number after these for the slow start. Connections that stand are switched as `setsockopt(TCP_CONGESTION)` switches
    them: window, ssthresh and state stay, the control starts as at the handshake, a reduction that proves needless is not
    given back, and a connection that BBR has paced remains paced. Connections that are opened later have the choice, too. The
    slow start is what two such calls make: BBR, whose infinite ssthresh outlives it, and the chosen control again.

    ## Observation Space

    `Box` of `history` feature vectors, flattened, oldest first. After a reset all of them equal the first one.

    Recipes default and direct, 35 features in [-1, 1]. A value from Low to High is mapped onto the numbers before the colons,
    on the scale that its meaning names. A rate is the mean over connections; the highest rates lately are forgotten with a time
    constant of 120 s, the least round trip lately moves towards the present one with a time constant of 300 s:

    {features of default}

    Recipe control, 46 features in [-1, 1]: the same 35, then what is known of intervals in which no buffer bound. A buffer
    binds where the kernel says that it held connections up for 5 % of their busy time, or where send buffers have grown to the
    maximum and hold less than 1.6 congestion windows. The unbound rate and delivery rate are the highest lately in intervals
    without that, forgotten with a time constant of 120 s of such intervals; what is measured while a buffer binds only raises
    them:

    {features of control}

    Recipe auter, the paper's 7 features in its order, each scaled to [0, 1] (the paper states neither ranges nor scales; these
    are ours):

    {features of auter}

    Observations are never NaN and never leave the space. A quantity not measured in an interval keeps its last measured value.
    Only what a host can know is observed.

    ## Rewards

    A sum of named terms, given in `info["reward_terms"]`:

    * default, direct, control: `host_utility`, ln(x) - 0.2 (y - 1) - 0.03 ln(1 + m) times the length of the interval in s, with
      x = throughput of a connection / its fair share, y = latency / base RTT, m = memory / twice the path's product.
    * auter: `auter`, R(throughput) - 0.5 R(latency) - 0.5 R(loss) of each decision, R(v) = (v - least) / (greatest - least)
      over the samples so far without outliers (three sigma). The paper does not state the weights.

    Others: `reward="log_utility"`, `"range_normalized"`, `"power"` and so on, a dict with parameters, or a custom function or
    object, see `netbuf_gym.rewards`. Rewards use the world's own figures, which observations do not.

    ## Starting State

    An empty network at time 0, before the handshakes. The host starts with the buffers of its scenario, or with recipe auter
    with the paper's default (ring 256, TCP 65536 and at most 212992, socket 212992) unless the scenario's host is already an
    agent's. A new random scenario is drawn for each episode.

    ## Episode End

    {episode end} `auter/*` last 300 s, 100 decisions. On live hosts the paper's intervals are 3 to 10 s.

    The last step's `info` reports the whole episode, start-up included: `utility` (mean over the intervals), `throughput_mbps`,
    `flow_mbps` (of a connection), `share` of the capacity, `latency_ms`, `base_rtt_ms`, `rtt_ratio`, `mean_rtt_ms`,
    `loss_rate`, `memory_mb`, `tcp_memory_mb`, `peak_memory_mb`, `flows_completed`, `interrupted_s`, `duration_s`, `scenario`.

    ## Arguments

    | Parameter          | Type                | Default               | Description                                       |
    |--------------------|---------------------|-----------------------|---------------------------------------------------|
    | `acts_on`          | **str**, **list**   | tcp, socket, ring;    | layers, see Action Space; recipes default and     |
    |                    |                     | control: tcp          | control only                                      |
    | `actions`          | **str**             | `"flat"`; auter:      | `"flat"` or `"multi"`                             |
    |                    |                     | `"multi"`             |                                                   |
    | `controls`         | **str**, **list**   | cubic, bbr, vegas     | congestion controls to choose among; recipe       |
    |                    |                     |                       | control only                                      |
    | `ring_requests`    | **int**             | `0`; auter: `3`       | n of Algorithm 1, 0 to 10^9                       |
    | `ring_connections` | **int**             | 10^9; auter: `100`    | m of Algorithm 1, 0 to 10^9                       |
    {common arguments}

    ```python
    >>> import gymnasium as gym, netbuf_gym
    >>> env = gym.make("netbuf/HostBuffers-v0", scenario={"name": "auter/local", "extra_ms": 40, "duration_s": 30})
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(6)

    ```
    """

    name: ClassVar[str] = "host_buffers"
    recipes: ClassVar[tuple[str, ...]] = ("default", "auter", "direct", "control")
    default_history: ClassVar[dict[str, int]] = {"default": 2, "auter": 1, "direct": 2, "control": 2}
    recipe_features: ClassVar[dict[str, tuple[Feature, ...]]] = {
        "default": DEFAULT_FEATURES,
        "auter": AUTER_FEATURES,
        "direct": DEFAULT_FEATURES,
        "control": CONTROL_FEATURES,
    }
    recipe_rewards: ClassVar[dict[str, str]] = {
        "default": "host_utility",
        "auter": "auter",
        "direct": "host_utility",
        "control": "host_utility",
    }
    default_scenario: ClassVar[str] = "auter/any"
    default_interval_s: ClassVar[float] = 3.0
    options: ClassVar[tuple[str, ...]] = ("acts_on", "actions", "controls", "ring_requests", "ring_connections")
    discrete: ClassVar[dict[str, dict[str, Any]]] = {"auter": {"actions": "flat"}}
    kind = HOST
    panels = (
        Panel("tcp_max_kib", "TCP MAX KIB", (31, 119, 180), title="TCP maximum (KiB)"),
        Panel("latency_ms", "LATENCY MS", (214, 39, 40), title="round-trip time (ms)"),
        Panel("throughput_mbps", "MBIT/S", (44, 160, 44), title="throughput of the host (Mbit/s)"),
    )

    def __init__(
        self,
        recipe: str = "default",
        history: int | None = None,
        agents: int = 1,
        *,
        acts_on: Any = None,
        actions: str | None = None,
        controls: Any = None,
        ring_requests: int | None = None,
        ring_connections: int | None = None,
    ):
        super().__init__(recipe, history, agents)
        auter, chooses = recipe == "auter", recipe == "control"
        scales = recipe in ("default", "control")
        if not scales and acts_on is not None:
            raise ConfigError(f"acts_on = {quote(acts_on)} with recipe {recipe!r}; valid: recipes 'default' and 'control'")
        if recipe == "direct" and actions is not None:
            raise ConfigError(f"actions = {quote(actions)} with recipe 'direct'; valid: other recipes")
        if not chooses and controls is not None:
            raise ConfigError(f"controls = {quote(controls)} with recipe {recipe!r}; valid: recipe 'control'")
        self.acts_on = ("tcp",) if chooses and acts_on is None else _parse_layers(acts_on)
        self.controls = _parse_controls(controls) if chooses else ()
        if chooses:
            self.kind = make_choosing_kind(self.controls)
        for name, value in (("ring_requests", ring_requests), ("ring_connections", ring_connections)):
            if value is not None and not auter and (recipe == "direct" or "ring" not in self.acts_on):
                valid = "recipe 'auter', or recipe 'default' or 'control' with acts_on that holds ring"
                raise ConfigError(f"{name} = {quote(value)} with recipe {recipe!r} would do nothing; valid: {valid}")
        self.actions = check_choice(
            "actions", ("multi" if auter else "flat") if actions is None else actions, ("flat", "multi")
        )
        n, m = (RING_REQUESTS, RING_CONNECTIONS) if auter else (0, MAX_RING_COUNT)
        self.ring_requests = n if ring_requests is None else check_integer("ring_requests", ring_requests, 0, MAX_RING_COUNT)
        self.ring_connections = (
            m if ring_connections is None else check_integer("ring_connections", ring_connections, 0, MAX_RING_COUNT)
        )
        flat = self.actions == "flat"
        self.acting: FactorActions | None = None
        self.choosing: ControlActions | None = None
        if auter:
            self.action_space = gym.spaces.Discrete(len(STEPS)) if flat else gym.spaces.MultiDiscrete([3, 3, 3])
            self.keep_action: np.ndarray | int = len(STEPS) // 2 if flat else np.ones(3, np.int64)
        elif recipe == "direct":
            self.action_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
        elif chooses:
            self.choosing = make_control_actions(self.acts_on, self.controls, flat)
            self.action_space, self.keep_action = self.choosing.space, self.choosing.neutral_action
        else:
            self.acting = make_factor_actions(self.acts_on, flat)
            self.action_space, self.keep_action = self.acting.space, self.acting.neutral_action

    def control(self, scenario: Scenario) -> Scenario:
        """Return the world with its first `agents` hosts controlled, unless as many are agents' already.

        A world without hosts is given one that sends everything.
        """
        if not isinstance(scenario, Scenario):
            raise ConfigError(f"{describe_scenario(scenario)} is no netbuf_gym.scenarios.Scenario; valid: one")
        scenario = ensure_hosts(scenario)
        found = find_agent_hosts(scenario)
        controlled = self.choose_agents(scenario, found, len(scenario.hosts), "hosts")
        if not found:
            if self.recipe == "auter":
                scenario = change_hosts(scenario, controlled, lambda host: apply_settings(host, DEFAULT))
            scenario = change_hosts(scenario, controlled, lambda host: replace(host, agent=True))
        for i in controlled:
            compute_offer(scenario, scenario.hosts[i])
        return scenario

    def make_tracker(self, rows: int, interval_s: float) -> Tracker:
        """Return the tracker of the hosts' telemetry."""
        return Tracker(rows, interval_s)

    def start(self, tracker: Tracker, rows: slice, scenario: Scenario) -> None:
        hosts = [scenario.hosts[i] for i in find_agent_hosts(scenario)]
        capacity, share, base = zip(*(compute_offer(scenario, host) for host in hosts), strict=True)
        settings = [initial_settings(scenario, host) for host in hosts]
        tracker.reset(rows, settings=settings, capacity_bps=capacity, share_bps=share, base_rtt_s=base)

    def decode(self, action: np.ndarray, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """Write the settings of actions, NaN for unchanged ones, into `out`, `(rows, 11)`; count requests for rings."""
        if self.recipe == "direct":
            return decode_direct(action, tracker, out)
        if self.acting is not None:
            return decode_default(self.acting.decode(action), tracker, out, self.ring_requests, self.ring_connections)
        if self.choosing is not None:
            factors, chosen = self.choosing.decode(action)
            decode_default(factors, tracker, out, self.ring_requests, self.ring_connections)
            return decode_choice(chosen, self.controls, tracker, out)
        steps = STEPS[action] if self.actions == "flat" else action - 1
        return decode_auter(steps, tracker, out, self.ring_requests, self.ring_connections)

    def observe(self, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """Write the last interval's feature vectors, finite and in the space, into `out`, `(width, rows)`; return `out`."""
        observe = {"auter": observe_auter, "control": observe_control}.get(self.recipe, observe_default)
        return observe(tracker, out)

    def report_input(self, tracker: Tracker, rows: slice, counters: list[Any]) -> list[Any]:
        """See `Task.report_input`: each host's counters with, as `achieved`, its results from the meter."""
        each = range(rows.start, rows.stop)
        return [{**own, "achieved": tracker.meter.compute_results(row)} for row, own in zip(each, counters, strict=True)]

    def report(self, scenario: Scenario, counters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.host_buffers.report.episode_reports`."""
        return episode_reports(scenario, find_agent_hosts(scenario), counters)

    def show(self, tracker: Tracker, row: int) -> dict[str, float]:
        """Return TCP maximum in KiB, RTT in ms, throughput in Mbit/s, memory in MB, ring in packets, connections."""
        return {
            "tcp_max_kib": float(tracker.tcp_max[row]) / 1024,
            "latency_ms": float(tracker.latency[row]) * 1e3,
            "throughput_mbps": float(tracker["total_throughput_bps"][row]) * 1e-6,
            "memory_mb": float(tracker.memory[row]) * 1e-6,
            "ring_packets": float(np.nan_to_num(tracker.settings[row, CONTROL["ring_packets"]])),
            "connections": float(tracker["connections"][row]),
        }

    def format_state(self, state: dict[str, float]) -> str:
        return (
            f"t {state['time_s']:8.1f} s   TCP maximum {state['tcp_max_kib']:9.0f} KiB   "
            f"ring {state['ring_packets']:5.0f}   latency {state['latency_ms']:8.2f} ms   "
            f"throughput {state['throughput_mbps']:8.3f} Mbit/s   memory {state['memory_mb']:8.2f} MB"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what a saved model must agree with, including the meaning of its actions."""
        return {
            **super().to_dict(),
            "acts_on": list(self.acts_on),
            "factors": {layer: list(FACTORS[layer]) for layer in self.acts_on},
            "ring_requests": self.ring_requests,
            "ring_connections": self.ring_connections,
            **({"controls": list(self.controls)} if self.controls else {}),
        }


def _parse_controls(controls: Any) -> tuple[str, ...]:
    """Return the congestion controls that are chosen among, in the order of `CHOICES`."""
    if controls is None:
        return CHOICES
    given = (controls,) if isinstance(controls, str) else check_sequence("controls", controls, "congestion controls")
    chosen = {check_choice("controls", name, CHOICES) for name in given}
    if len(chosen) < len(given):
        raise ConfigError(f"controls = {quote(list(given))}; valid: one or more of {', '.join(CHOICES)}, each once")
    return tuple(name for name in CHOICES if name in chosen)


def _parse_layers(acts_on: Any) -> tuple[str, ...]:
    """Return the layers that are acted on, in the order of `FACTORS`."""
    if acts_on is None:
        return LAYERS
    given = (acts_on,) if isinstance(acts_on, str) else check_sequence("acts_on", acts_on, "layers")
    if not len(given):
        raise ConfigError(f"acts_on is empty; valid: one or more of {', '.join(FACTORS)}")
    chosen = {check_choice("acts_on", layer, FACTORS) for layer in given}
    if len(chosen) < len(given):
        raise ConfigError(f"acts_on = {quote(list(given))} names a layer twice; valid: each once")
    return tuple(layer for layer in FACTORS if layer in chosen)
