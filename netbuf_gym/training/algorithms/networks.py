"""Networks of policies, computed by the core where they are on this processor, else by torch.

The core (`cpp/src/networks/`) reads the parameters where torch keeps them, picks a minibatch's rows from a rollout without
copying them, and goes through all layers for some hundred rows at a time, whose values stay in the processor's caches. Values,
log-probabilities and gradients are torch's within float32's rounding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch as th
from torch import nn

from netbuf_gym import _core

ACTIVATIONS: dict[type[nn.Module], str] = {nn.Tanh: "tanh", nn.ReLU: "relu"}
"""Activations that the core computes."""


class Spares:
    """Large tensors between uses: new ones would cost the system a page fault for each 4 KiB."""

    def __init__(self) -> None:
        self._kept: th.Tensor | None = None

    def take(self, *shape: int) -> th.Tensor:
        """Return a tensor of a shape and of any values, which is the caller's until it is given back."""
        kept, self._kept = self._kept, None
        return kept if kept is not None and kept.shape == shape else th.empty(shape)

    def give(self, tensor: th.Tensor) -> None:
        """Keep a tensor for the next `take`."""
        self._kept = tensor


class PerceptronNetwork:
    """Modules one after the other, such as a policy's `policy_net` and `action_net`.

    Args:
        modules: Modules and sequences of them; the core computes linear layers with one kind of `ACTIVATIONS` between them.
    """

    def __init__(self, modules: Iterable[nn.Module]):
        self.modules = [one for module in modules for one in (module if type(module) is nn.Sequential else (module,))]
        self.spares = Spares()
        self._native: Any = None
        self._addresses: tuple[int, ...] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> PerceptronNetwork:
        from copy import deepcopy

        return PerceptronNetwork(deepcopy(self.modules, memo))

    def __call__(self, inputs: th.Tensor, rows: th.Tensor | None = None) -> th.Tensor:
        """Return the outputs, `(rows, width)`, of inputs, `(n, features)`: of all, or of those at the indices `rows`, `(rows,)`."""
        native = self.find_native(inputs)
        if native is None:
            values = inputs if rows is None else inputs.index_select(0, rows)
            for module in self.modules:
                values = module(values)
            return values
        parameters = [one for layer in self.modules[::2] for one in (layer.weight, layer.bias)]
        if th.is_grad_enabled() and any(one.requires_grad for one in (inputs, *parameters)):
            apply: Any = _PerceptronFunction.apply
            return apply(self, native, inputs, rows, *parameters)
        out = th.empty(len(inputs) if rows is None else len(rows), parameters[-1].shape[0])
        native.forward(as_array(inputs), as_array(rows), out.numpy(), None, th.get_num_threads())
        return out

    def find_native(self, inputs: th.Tensor) -> Any:
        """Return the core's network, or None where it cannot compute this one on these inputs."""
        linear, between = self.modules[::2], self.modules[1::2]
        addresses = tuple(one.weight.data_ptr() for one in linear if type(one) is nn.Linear)
        if addresses != self._addresses or not addresses:
            self._addresses, self._native = addresses, None
            kinds = {type(one) for one in between}
            if len(addresses) == len(linear) > len(between) == len(linear) - 1 and kinds <= {nn.Tanh} or kinds <= {nn.ReLU}:
                weights, biases = [one.weight for one in linear], [one.bias for one in linear]
                if all(one is not None and is_plain(one) for one in (*weights, *biases)):
                    activation = ACTIVATIONS[kinds.pop()] if kinds else "tanh"
                    self._native = _core.Perceptron([as_array(one) for one in weights], [as_array(one) for one in biases], activation)
        return self._native if self._native is not None and is_plain(inputs) else None


class _PerceptronFunction(th.autograd.Function):
    """A core's network: inputs, rows or None, and parameters to outputs."""

    @staticmethod
    def forward(
        ctx: Any, network: PerceptronNetwork, native: Any, inputs: th.Tensor, rows: th.Tensor | None, *parameters: th.Tensor
    ) -> th.Tensor:
        count = len(inputs) if rows is None else len(rows)
        out, kept = th.empty(count, parameters[-1].shape[0]), network.spares.take(count, native.kept)
        native.forward(as_array(inputs), as_array(rows), out.numpy(), kept.numpy(), th.get_num_threads())
        ctx.network, ctx.native, ctx.kept = network, native, kept
        ctx.save_for_backward(inputs, rows, *parameters)
        return out

    @staticmethod
    @th.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: th.Tensor) -> Any:
        inputs, rows, *parameters = ctx.saved_tensors
        gradients = [th.empty_like(one) for one in parameters]
        arrays = [one.numpy() for one in gradients]
        grad_inputs = th.empty(len(grad_out), inputs.shape[1]) if ctx.needs_input_grad[2] else None
        ctx.native.backward(
            as_array(inputs),
            as_array(rows),
            ctx.kept.numpy(),
            as_array(grad_out.contiguous()),
            arrays[::2],
            arrays[1::2],
            as_array(grad_inputs),
            th.get_num_threads(),
        )
        ctx.network.spares.give(ctx.kept)
        ctx.kept = None  # belongs to the next minibatch
        if grad_inputs is not None and rows is not None:
            grad_inputs = th.zeros_like(inputs).index_add_(0, rows, grad_inputs)
        return None, None, grad_inputs, None, *gradients


def is_plain(tensor: th.Tensor) -> bool:
    """Return whether the core can read a tensor where it is."""
    return tensor.device.type == "cpu" and tensor.dtype is th.float32 and tensor.is_contiguous()


def as_array(tensor: th.Tensor | None) -> np.ndarray | None:
    """Return a tensor's own memory as an array."""
    return None if tensor is None else tensor.detach().numpy()
