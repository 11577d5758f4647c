"""Policies in integers: a sender's network, rules and tables as the data of `cpp/policy/policy.h`.

Weights are int16, with a power of two for each row; activations and features are integers of 2^-20, sums have 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.tasks.congestion_window.path_tracker import LATELY_S, LONG_S, LOSS_MEMORY_S, PathTracker
from netbuf_gym.tasks.congestion_window.task import CONTINUOUS, MEASURED, NO_CLAMP, CongestionWindow
from netbuf_gym.tasks.congestion_window.tracker import FIELD

MAGIC, VERSION = 0x4E425031, 1
MOST_INPUTS, MOST_UNITS, MOST_LAYERS, MOST_ACTIONS, CELLS = 192, 64, 3, 64, 1024
ONE, LOG, PART = 20, 24, 30
"""Binary digits behind the point: of activations and features, of logarithms, and of parts that are kept."""
MOST_SHIFT = 24
KINDS = ("feedforward", "lstm", "gru")
ACTIVATIONS = ("tanh", "relu")
RECIPES = ("default", "robust")
SCALES = (16, 2, 64, 65536, 4096, 4, 1001, 1024, 600, 1000, 1e6)
"""Values that are observed as 1, in the order of `enum NB_BY_16`..."""

_RULES = np.dtype(
    [
        ("interval", "<i8"),
        ("decay", "<i8", 3),
        *((name, "<i8") for name in ("robust", "drain", "slow_start", "paced", "fine", "capped", "drain_due", "seen_within")),
        *((name, "<i8") for name in ("started_rtt", "drain_round_trips", "least_drain_intervals", "drain_share")),
        *((name, "<i8") for name in ("drain_of_product", "least_drained", "lowest", "heavy_loss", "heavy_rounds")),
        *(
            (name, "<i8")
            for name in (
                "heavy_counted",
                "heavy_kept",
                "least_kept",
                "careful",
                "growth_loss",
                "growth_rounds",
                "growth_counted",
            )
        ),
        *((name, "<i8") for name in ("peak_gain", "rate_gain", "cap_segments", "spreads")),
        ("scales", "<i8", len(SCALES)),
        ("factors", "<i8", MOST_ACTIONS),
    ]
)
_TABLES = np.dtype([(name, "<i4", CELLS + 1) for name in ("log2", "exp2", "tanh")] + [("unused", "<i4")])
_LAYER = np.dtype(
    [("bias", "<i8", MOST_UNITS), ("weight", "<i2", (MOST_UNITS, MOST_INPUTS)), ("shift", "u1", MOST_UNITS)], align=True
)
_RECURRENT = np.dtype(
    [
        ("bias", "<i8", (MOST_UNITS, 4)),
        ("weight", "<i2", (MOST_UNITS, 4, MOST_INPUTS)),
        ("memory", "<i2", (MOST_UNITS, 4, MOST_UNITS)),
        ("shift", "u1", (MOST_UNITS, 4)),
    ],
    align=True,
)
POLICY = np.dtype(
    [
        *((name, "<u4") for name in ("magic", "version", "bytes", "kind", "features", "history", "inputs", "units")),
        *((name, "<u4") for name in ("layers", "actions")),
        ("unused", "<u4", 2),
        ("width", "<u4", MOST_LAYERS + 1),
        ("activation", "<u4", MOST_LAYERS + 1),
        ("rules", _RULES),
        ("tables", _TABLES),
        ("layer", _LAYER, MOST_LAYERS + 1),
        ("recurrent", _RECURRENT),
    ],
    align=True,
)
"""`struct nb_policy`."""
INTERVAL_FIELDS = (
    *("elapsed", "acks", "segments", "acked_bytes", "span", "rtt_sum", "rtt_count", "rtt_min", "lost", "timeouts"),
    *("in_flight", "in_flight_sum", "cwnd", "mss", "threshold"),
)
"""Members of `struct nb_interval`, int64."""


@dataclass(frozen=True)
class Dense:
    """A dense layer: weights `(outputs, inputs)`, bias `(outputs,)`, both float, and the activation behind it, "" for none."""

    weight: np.ndarray
    bias: np.ndarray
    activation: str = ""


@dataclass(frozen=True)
class Recurrent:
    """A recurrent layer with torch's weights: `(gates * units, inputs)`, `(gates * units, units)`, and two biases.

    Attributes:
        kind: "lstm", of gates i f g o, or "gru", of gates r z n.
    """

    kind: str
    weight: np.ndarray
    memory: np.ndarray
    bias: np.ndarray
    memory_bias: np.ndarray


@dataclass(frozen=True)
class Network:
    """Layers of a policy in order; the last dense one gives a number for each action, of which the largest is taken."""

    dense: Sequence[Dense]
    recurrent: Recurrent | None = None

    @property
    def kind(self) -> str:
        return self.recurrent.kind if self.recurrent else KINDS[0]

    def describe(self) -> str:
        """Return the architecture in a line, e.g. `lstm 108-64, dense 64-64-64-12`."""
        widths = [self.dense[0].weight.shape[1], *(layer.weight.shape[0] for layer in self.dense)]
        dense = "dense " + "-".join(map(str, widths))
        if not self.recurrent:
            return dense
        return f"{self.kind} {self.recurrent.weight.shape[1]}-{self.recurrent.memory.shape[1]}, {dense}"


def extract_network(policy: Any) -> Network:
    """Return the layers that decide in a policy of stable-baselines3.

    Raises:
        ConfigError: Layers or activations that integers do not have, or inputs that the policy normalises.
    """
    from netbuf_gym.integrations.normalizing import find_extractors

    if find_extractors(policy):
        raise ConfigError("algo.normalize is set: the network normalises what it observes; valid: an agent trained with none")
    if hasattr(policy, "q_net"):
        return Network(_extract_dense(policy.q_net.q_net))
    recurrent = None
    if hasattr(policy, "lstm_actor"):
        lstm = policy.lstm_actor
        if lstm.num_layers != 1:
            raise ConfigError(f"policy: {lstm.num_layers} layers of memory; valid: 1")
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        recurrent = Recurrent("lstm", *(_to_float(getattr(lstm, name)) for name in names))
    return Network([*_extract_dense(policy.mlp_extractor.policy_net), *_extract_dense([policy.action_net])], recurrent)


def _to_float(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _extract_dense(modules: Any) -> list[Dense]:
    layers: list[Dense] = []
    for module in modules:
        kind = type(module).__name__
        if kind == "Linear":
            bias = np.zeros(module.out_features) if module.bias is None else _to_float(module.bias)
            layers.append(Dense(_to_float(module.weight), bias))
        elif kind.lower() in ACTIVATIONS and layers and not layers[-1].activation:
            layers[-1] = Dense(layers[-1].weight, layers[-1].bias, kind.lower())
        elif kind != "Flatten":
            raise ConfigError(f"policy: layer {kind}; valid: Linear, each followed by Tanh or ReLU, and one LSTM")
    return layers


def quantise(network: Network, task: CongestionWindow, interval_s: float) -> np.ndarray:
    """Return a policy as integers, an array of `POLICY` of shape `()`.

    Args:
        network: Its layers.
        task: Rules that it was trained with.
        interval_s: Time between decisions.

    Raises:
        ConfigError: A network that is too large, or rules that a sender of the kernel cannot follow.
    """
    _require_rules(task)
    _require_size(network, task)
    out = np.zeros((), POLICY)
    width = len(task.features)
    out["magic"], out["version"], out["bytes"], out["kind"] = MAGIC, VERSION, POLICY.itemsize, KINDS.index(network.kind)
    out["features"], out["history"], out["inputs"] = width, task.history, width * task.history
    out["layers"], out["actions"] = len(network.dense) - 1, len(task.levels)
    _fill_rules(out["rules"], task, interval_s)
    _fill_tables(out["tables"])
    for k, layer in enumerate(network.dense):
        last = k == len(network.dense) - 1
        place = MOST_LAYERS if last else k
        out["width"][place] = len(layer.bias)
        out["activation"][place] = 0 if last else ACTIVATIONS.index(layer.activation)
        _fill_layer(out["layer"][place], layer, alike=last)
    if network.recurrent:
        out["units"] = network.recurrent.memory.shape[1]
        _fill_recurrent(out["recurrent"], network.recurrent)
    return out


def _require_rules(task: CongestionWindow) -> None:
    if task.recipe not in RECIPES:
        raise ConfigError(f'recipe = "{task.recipe}"; valid for compiled agents: {", ".join(RECIPES)}')
    if task.actions == CONTINUOUS:
        raise ConfigError(f'actions = "{CONTINUOUS}"; valid for compiled agents: "discrete", or a list of factors')
    if task.per_ack:
        raise ConfigError("per_ack = True; valid for compiled agents: False")
    if task.clamp not in (MEASURED, NO_CLAMP):
        raise ConfigError(f'clamp = "{task.clamp}"; valid for compiled agents: "{MEASURED}", "{NO_CLAMP}"')


def _require_size(network: Network, task: CongestionWindow) -> None:
    """Raise ConfigError for a network that is larger than `struct nb_policy`, or fits not what it observes and decides."""
    inputs = len(task.features) * task.history
    if inputs > MOST_INPUTS:
        given = f"history = {task.history}: {inputs} inputs of {len(task.features)} features"
        raise ConfigError(f"{given}; valid for compiled agents: at most {MOST_INPUTS} inputs")
    if len(network.dense) - 1 > MOST_LAYERS:
        raise ConfigError(f"net_arch: {len(network.dense) - 1} layers; valid for compiled agents: at most {MOST_LAYERS}")
    hidden = [len(layer.bias) for layer in network.dense[:-1]]
    if network.recurrent:
        hidden.append(network.recurrent.memory.shape[1])
    if hidden and max(hidden) > MOST_UNITS:
        raise ConfigError(f"net_arch: a layer of {max(hidden)} units; valid for compiled agents: at most {MOST_UNITS}")
    missing = [layer for layer in network.dense[:-1] if not layer.activation]
    if missing or network.dense[-1].activation:
        raise ConfigError(f"policy: activations of {network.describe()}; valid: tanh or relu behind all layers but the last")
    first = (network.recurrent or network.dense[0]).weight.shape[1]
    if first != inputs or len(network.dense[-1].bias) != len(task.levels):
        given = f"{network.describe()} for {inputs} inputs and {len(task.levels)} actions"
        raise ConfigError(f"policy: {quote(given)}; valid: as many as the task has")


def _fill_rules(rules: np.ndarray, task: CongestionWindow, interval_s: float) -> None:
    tracker = task.make_tracker(1, interval_s)
    assert isinstance(tracker, PathTracker)  # of all recipes in `RECIPES`
    own = tracker.path_rules()
    rules["interval"] = _whole(interval_s * 1e9)
    rules["decay"] = [_whole(np.log2(np.e) * 2.0**54 / (seconds * 1e9)) for seconds in (LATELY_S, LOSS_MEMORY_S, LONG_S)]
    rules["robust"], rules["drain"], rules["slow_start"] = task.recipe == "robust", task.drain, task.slow_start
    rules["paced"], rules["fine"], rules["capped"] = task.paced, task.fine, task.clamp == MEASURED
    rules["drain_due"], rules["seen_within"] = _whole(own["drain_due_s"] * 1e9), _whole((own["seen_ratio"] - 1) * 2**ONE)
    for name in ("started_rtt", "drain_share", "drain_of_product", "peak_gain", "rate_gain", "spreads"):
        rules[name] = _whole(own[name] * 2**10)
    for name in ("drain_round_trips", "least_drain_intervals", "heavy_rounds", "growth_rounds", "growth_counted"):
        rules[name] = _whole(own[name])
    rules["least_drained"], rules["cap_segments"] = _whole(own["least_drained"] * 16), _whole(own["cap_segments"])
    rules["lowest"] = _whole(own["lowest_segments"] * 16)
    rules["heavy_counted"], rules["careful"] = _whole(own["least_counted"]), _whole(own["care_s"] * 1e9)
    rules["heavy_kept"], rules["least_kept"] = _whole(own["heavy_kept"] * 2**ONE), _whole((1 - own["most_cut"]) * 2**ONE)
    for name in ("heavy_loss", "growth_loss"):
        rules[name] = math.ceil(own[name] * 2**ONE)  # a share of just so much is not above it
    rules["scales"] = [_whole(2.0**28 / np.log2(high)) for high in SCALES]
    rules["factors"][: len(task.levels)] = [_whole(factor * 2**ONE) for factor in task.levels]


def _whole(value: float) -> int:
    return round(float(value))


def _fill_tables(tables: np.ndarray) -> None:
    at = np.arange(CELLS + 1)
    tables["log2"] = np.round(np.log2(1 + at / CELLS) * 2**LOG)
    tables["exp2"] = np.round(np.exp2(-at / CELLS) * 2**PART)
    tables["tanh"] = np.round(np.tanh(at / 128) * 2**ONE)


def _choose_shifts(weight: np.ndarray, alike: bool = False) -> np.ndarray:
    """Return the power of two of each row, with which its weights just fit 16 bits; of all rows the least with `alike`."""
    largest = np.maximum(np.abs(weight).max(axis=-1), 2.0**-MOST_SHIFT)
    shifts = np.clip(np.floor(np.log2(32767 / largest)), 0, MOST_SHIFT).astype(np.int64)
    if (largest * 2.0**shifts > 32767.5).any():
        raise ConfigError(f"policy: a weight of {largest.max():.6g}; valid for compiled agents: within +-32767")
    return np.full_like(shifts, shifts.min()) if alike else shifts


def _round(values: np.ndarray, digits: Any) -> np.ndarray:
    return np.round(values * 2.0**digits).astype(np.int64)


def _fill_layer(out: np.ndarray, layer: Dense, alike: bool) -> None:
    rows, columns = layer.weight.shape
    shifts = _choose_shifts(layer.weight, alike)
    out["weight"][:rows, :columns] = _round(layer.weight, shifts[:, None])
    out["bias"][:rows] = _round(layer.bias, shifts + ONE)
    out["shift"][:rows] = shifts


def _fill_recurrent(out: np.ndarray, given: Recurrent) -> None:
    units, inputs = given.memory.shape[1], given.weight.shape[1]
    weight, memory = given.weight.reshape(-1, units, inputs), given.memory.reshape(-1, units, units)
    bias, memory_bias = given.bias.reshape(-1, units), given.memory_bias.reshape(-1, units)
    if given.kind == "lstm":
        bias = bias + memory_bias
    else:  # the candidate's parts, of which a gate multiplies the second, apart
        apart = np.zeros((1, units, units))
        weight = np.concatenate([weight, np.zeros((1, units, inputs))])
        memory = np.concatenate([memory[:2], apart, memory[2:]])
        bias = np.stack([bias[0] + memory_bias[0], bias[1] + memory_bias[1], bias[2], memory_bias[2]])
    shifts = _choose_shifts(np.concatenate([weight, memory], axis=2)).T  # (units, gates)
    out["weight"][:units, :, :inputs] = _round(weight.transpose(1, 0, 2), shifts[:, :, None])
    out["memory"][:units, :, :units] = _round(memory.transpose(1, 0, 2), shifts[:, :, None])
    out["bias"][:units] = _round(bias.T, shifts + ONE)
    out["shift"][:units] = shifts


def count_intervals(telemetry: np.ndarray) -> np.ndarray:
    """Return telemetry of senders, `(..., fields)` in float64, as the counters that an integer policy takes, int64.

    NaN, what was not measured, is 0.
    """
    out = np.zeros((*telemetry.shape[:-1], len(INTERVAL_FIELDS)), np.int64)
    acks = np.nan_to_num(telemetry[..., FIELD["acks"]])

    def put(name: str, values: np.ndarray) -> None:
        out[..., INTERVAL_FIELDS.index(name)] = np.round(np.nan_to_num(values))

    def get(name: str) -> np.ndarray:
        return telemetry[..., FIELD[name]]

    put("elapsed", get("elapsed_s") * 1e9)
    put("acks", acks)
    put("segments", get("segments_acked_sum"))
    put("acked_bytes", get("throughput_bps") * get("elapsed_s") / 8)
    put("span", get("receive_interval_mean_s") * acks * 1e9)
    put("rtt_sum", get("rtt_mean_s") * 1e9)
    put("rtt_count", ~np.isnan(get("rtt_mean_s")))
    put("rtt_min", get("rtt_min_s") * 1e9)
    put("lost", get("packets_lost"))
    put("timeouts", get("timeouts"))
    put("in_flight", get("in_flight_bytes"))
    put("in_flight_sum", get("bytes_in_flight_sum"))
    put("cwnd", get("cwnd_bytes"))
    put("mss", get("mss_bytes"))
    put("threshold", ~np.isnan(get("ssthresh_bytes")))
    return out
