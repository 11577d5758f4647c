"""Networks of policies, computed by the core where they are plain ones on this processor, else by torch.

The core (`cpp/src/networks/`) reads parameters where torch keeps them, and goes through all layers for some rows at a time,
whose values stay in the processor's caches. In an update it reads a minibatch's rows where the rollout has them, and goes
forward, through the loss and back for these before it takes the next ones. Values, log-probabilities and gradients are torch's
within float32's rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch as th
from torch import nn

from netbuf_gym import _core

ACTIVATIONS: dict[type[nn.Module], str] = {nn.Tanh: "tanh", nn.ReLU: "relu"}
"""Activations that the core computes."""
LSTM_WIDTH = 16
"""Divisor of the widths of LSTMs that the core computes."""


class PerceptronNetwork:
    """Modules one after the other, such as a policy's `policy_net` and `action_net`.

    Args:
        modules: Modules, sequences of them, or other functions of a tensor; the core computes linear layers with parameters of
            their own and one kind of `ACTIVATIONS` between them, without hooks.

    Attributes:
        modules: Modules, without the sequences.
    """

    def __init__(self, modules: Iterable[Callable[[th.Tensor], th.Tensor]]):
        self.modules: list[Any] = [
            one
            for module in modules
            for one in (module if type(module) is nn.Sequential and not has_hooks(module) else (module,))
        ]

    def __call__(self, inputs: th.Tensor) -> th.Tensor:
        """Return the outputs, `(rows, width)`, of inputs, `(rows, features)`, with gradients where these are enabled."""
        native = None if th.is_grad_enabled() or not is_plain(inputs) else self.make_native()
        if native is None:
            for module in self.modules:
                inputs = module(inputs)
            return inputs
        out = th.empty(len(inputs), self.modules[-1].bias.shape[0])
        native.forward(inputs.numpy(), out.numpy(), th.get_num_threads())
        return out

    def make_native(self) -> Any:
        """Return the core's network on these parameters, which are not to be moved; None if it is of another kind."""
        linear, kinds = self.modules[::2], {type(one) for one in self.modules[1::2]}
        if len(self.modules) % 2 == 0 or len(kinds) > 1 or not kinds <= set(ACTIVATIONS):
            return None
        if not all(type(one) is nn.Linear and is_own(one.weight) and is_own(one.bias) for one in linear):
            return None
        if any(map(has_hooks, self.modules)):
            return None
        activation = ACTIVATIONS[kinds.pop()] if kinds else "tanh"
        return _core.Perceptron([to_array(one.weight) for one in linear], [to_array(one.bias) for one in linear], activation)

    def list_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of a network that the core computes."""
        return [parameter for module in self.modules for parameter in module.parameters()]

    def list_gradients(self) -> list[list[np.ndarray]]:
        """Return the gradients of weights and of biases, which `allot_gradients` has made."""
        linear = self.modules[::2]
        return [[to_array(one.weight.grad) for one in linear], [to_array(one.bias.grad) for one in linear]]


def make_native_lstm(lstm: nn.LSTM, layer: int = 0) -> Any:
    """Return the core's LSTM on a layer's parameters, which are not to be moved; None where it computes none like this."""
    parameters = list_lstm_parameters(lstm, layer)
    if lstm.hidden_size % LSTM_WIDTH or has_hooks(lstm) or not all(map(is_own, parameters)):
        return None
    return _core.Lstm(*map(to_array, parameters))


def list_lstm_parameters(lstm: nn.LSTM, layer: int) -> list[th.Tensor]:
    """Return a layer's weights of inputs and of hidden states, and its biases likewise."""
    return [getattr(lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]


def allot_gradients(parameters: Sequence[th.Tensor]) -> th.Tensor:
    """Make gradients of parameters on this processor, all 0, parts of one vector, which is returned."""
    every = th.zeros(sum(one.numel() for one in parameters))
    for parameter, part in zip(parameters, th.split(every, [one.numel() for one in parameters]), strict=True):
        parameter.grad = part.view_as(parameter)
    return every


def is_own(parameter: th.Tensor | None) -> bool:
    """Return whether what a module holds is a parameter that the core can read, not one computed of others."""
    return isinstance(parameter, nn.Parameter) and is_plain(parameter)


def has_hooks(module: nn.Module) -> bool:
    """Return whether a module runs code of others with its own."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, kind) for kind in kinds)


def is_plain(tensor: th.Tensor) -> bool:
    """Return whether the core can read a tensor where it is."""
    return tensor.device.type == "cpu" and tensor.dtype is th.float32 and tensor.is_contiguous()


def to_array(tensor: th.Tensor) -> np.ndarray:
    """Return a tensor's own memory as an array."""
    return tensor.detach().numpy()


def add_sums(sums: th.Tensor, *parts: Sequence[float]) -> None:
    """Add sums of losses that the core has returned."""
    sums += th.tensor(parts, dtype=sums.dtype).sum(0)
