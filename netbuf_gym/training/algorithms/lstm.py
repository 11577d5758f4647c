"""LSTMs over rollouts of many worlds: whole sequences at once, with states that are reset where episodes start.

Gates, their order and the parameters are `torch.nn.LSTM`'s. That module knows nothing of episodes, so that a sequence with
a start inside has to go through it step by step, and its backward pass with it. With a thousand worlds some episode starts
at about every step. `unroll_lstm` multiplies the state by zero there instead, projects the inputs of all steps in one
product, and steps back through time explicitly: two products and a few elementwise operations per step, the gradients of the
weights in one product over all of them. On this processor the core does the same, some sequences at a time, where the width is
a multiple of 16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch as th
from torch.nn import functional as F

from netbuf_gym import _core
from netbuf_gym.training.algorithms.networks import Spares, as_array, is_plain

State = tuple[th.Tensor, th.Tensor]
"""Hidden and cell states, (layers, worlds, width) each."""


SPARES: WeakKeyDictionary[th.nn.LSTM, dict[int, Spares]] = WeakKeyDictionary()
"""Memory of gates, for each layer."""
NATIVE_WIDTH = 16
"""Divisor of the widths that the core computes."""


def unroll_lstm(
    lstm: th.nn.LSTM, inputs: th.Tensor, state: State, starts: th.Tensor, rows: th.Tensor | None = None
) -> tuple[th.Tensor, State]:
    """Run an LSTM over sequences.

    Args:
        lstm: Plain LSTM: with biases, of one direction, without dropout and projection (see `require_plain_lstm`).
        inputs: (steps, worlds, features); with `rows` (n, features).
        state: State before the first step; no gradient flows into it.
        starts: (steps, worlds), 1 where an episode starts, before whose step the state is reset; else 0.
        rows: (steps, worlds), indices of inputs; None: all in their order.

    Returns:
        Outputs, (steps, worlds, width), through which gradients flow back to the parameters and `inputs`; and the states
        after each step, (steps, layers, worlds, width) each, through which none do.
    """
    if not th.count_nonzero(starts):
        starts = None
    hidden, cells = [], []
    outputs = inputs
    for layer in range(lstm.num_layers):
        parameters = [getattr(lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        before = (state[0][layer], state[1][layer])
        if lstm.hidden_size % NATIVE_WIDTH == 0 and all(map(is_plain, (outputs, *parameters))):
            if layer not in (spares := SPARES.setdefault(lstm, {})):
                spares[layer] = Spares()
            outputs, of_layer = _run_native(spares[layer], outputs, rows, before, starts, parameters)
        else:
            if rows is not None:
                outputs = outputs[rows]
            keep = None if starts is None else (1.0 - starts).unsqueeze(2)
            apply: Callable[..., State] = _LayerFunction.apply
            outputs, of_layer = apply(outputs, *before, keep, *parameters)
        rows = None
        hidden.append(outputs.detach())
        cells.append(of_layer)
    return outputs, (_stack_layers(hidden), _stack_layers(cells))


def _stack_layers(states: list[th.Tensor]) -> th.Tensor:
    return states[0].unsqueeze(1) if len(states) == 1 else th.stack(states, 1)


def require_plain_lstm(lstm: th.nn.LSTM) -> None:
    """Raise ValueError if an LSTM has features that `unroll_lstm` does not support."""
    if lstm.dropout or lstm.bidirectional or lstm.proj_size or not lstm.bias:
        raise ValueError("lstm_kwargs must leave dropout, bidirectional, proj_size and bias as they are")


class _LayerFunction(th.autograd.Function):
    """One layer over sequences: inputs, states and parameters to outputs and cell states, (steps, worlds, width) each."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: th.Tensor,
        hidden: th.Tensor,
        cell: th.Tensor,
        keep: th.Tensor | None,
        weight_ih: th.Tensor,
        weight_hh: th.Tensor,
        bias_ih: th.Tensor,
        bias_hh: th.Tensor,
    ) -> State:
        gates = F.linear(inputs, weight_ih, bias_ih + bias_hh)
        steps, worlds, width = *inputs.shape[:2], weight_hh.shape[1]
        outputs, cells, squashed, before, cells_before = inputs.new_empty(5, steps, worlds, width)
        for step in range(steps):
            before[step], cells_before[step] = hidden, cell
            if keep is not None:
                before[step].mul_(keep[step])
                cells_before[step].mul_(keep[step])
            gates[step].addmm_(before[step], weight_hh.t())
            update, forget, candidate, emit = th.split(gates[step], width, dim=1)
            gates[step, :, : 2 * width].sigmoid_()
            candidate.tanh_()
            emit.sigmoid_()
            cell = th.mul(forget, cells_before[step], out=cells[step]).addcmul_(update, candidate)
            hidden = th.mul(th.tanh(cell, out=squashed[step]), emit, out=outputs[step])
        ctx.mark_non_differentiable(cells)
        ctx.save_for_backward(inputs, gates, squashed, before, cells_before, keep, weight_ih, weight_hh)
        return outputs, cells

    @staticmethod
    def backward(ctx: Any, grad_outputs: th.Tensor, _: Any) -> Any:
        inputs, gates, squashed, before, cells_before, keep, weight_ih, weight_hh = ctx.saved_tensors
        steps, worlds, width = before.shape
        grad_gates = th.empty_like(gates)
        grad_hidden, grad_cell = gates.new_zeros(2, worlds, width)
        tanh, sigmoid = th.ops.aten.tanh_backward.grad_input, th.ops.aten.sigmoid_backward.grad_input
        scratch = th.empty_like(grad_cell)
        for step in range(steps - 1, -1, -1):
            update, forget, candidate, emit = th.split(gates[step], width, dim=1)
            of_update, of_forget, of_candidate, of_emit = th.split(grad_gates[step], width, dim=1)
            grad_hidden += grad_outputs[step]
            sigmoid(th.mul(grad_hidden, squashed[step], out=scratch), emit, grad_input=of_emit)
            grad_cell += tanh(grad_hidden.mul_(emit), squashed[step], grad_input=scratch)
            sigmoid(th.mul(grad_cell, candidate, out=scratch), update, grad_input=of_update)
            tanh(th.mul(grad_cell, update, out=scratch), candidate, grad_input=of_candidate)
            sigmoid(th.mul(grad_cell, cells_before[step], out=scratch), forget, grad_input=of_forget)
            grad_cell *= forget
            if step:
                th.mm(grad_gates[step], weight_hh, out=grad_hidden)
                if keep is not None:
                    grad_hidden *= keep[step]
                    grad_cell *= keep[step]
        flat = grad_gates.flatten(0, 1)
        grad_inputs = flat.mm(weight_ih).view_as(inputs) if ctx.needs_input_grad[0] else None
        grad_bias = flat.sum(0)
        grad_ih, grad_hh = flat.t().mm(inputs.flatten(0, 1)), flat.t().mm(before.flatten(0, 1))
        return grad_inputs, None, None, None, grad_ih, grad_hh, grad_bias, grad_bias


def _run_native(
    spares: Spares,
    inputs: th.Tensor,
    rows: th.Tensor | None,
    state: State,
    starts: th.Tensor | None,
    parameters: list[th.Tensor],
) -> State:
    """Run a layer in the core; returns outputs and cell states, (steps, worlds, width) each."""
    native = _core.Lstm(*map(as_array, parameters))
    if th.is_grad_enabled() and any(one.requires_grad for one in (inputs, *parameters)):
        apply: Callable[..., State] = _NativeFunction.apply
        return apply(spares, native, inputs, rows, *state, starts, *parameters)
    run = _NativeRun(native, inputs, rows, state, starts)
    native.forward(*run.arguments, None, th.get_num_threads())
    return run.outputs, run.cells


class _NativeRun:
    """Arguments of a core's layer, and the outputs and cell states that it is to fill in."""

    def __init__(self, native: Any, inputs: th.Tensor, rows: th.Tensor | None, state: State, starts: th.Tensor | None):
        steps, worlds = (inputs if rows is None else rows).shape[:2]
        width = state[0].shape[-1]
        self.outputs, self.cells = th.empty(steps, worlds, width), th.empty(steps, worlds, width)
        self.saved = (inputs, rows, state[0].contiguous(), state[1].contiguous(), None if starts is None else starts.contiguous())
        self.arguments = arrange_arguments(*self.saved, self.outputs, self.cells)


def arrange_arguments(
    inputs: th.Tensor, rows: th.Tensor | None, hidden: th.Tensor, cell: th.Tensor, starts: th.Tensor | None, *after: th.Tensor
) -> list[Any]:
    """Return arguments of `_core.Lstm`'s methods, which take matrices of inputs and vectors of rows."""
    flat = inputs.flatten(0, -2)
    return [as_array(one) for one in (flat, None if rows is None else rows.flatten(), hidden, cell, starts, *after)]


class _NativeFunction(th.autograd.Function):
    """As `_LayerFunction`, in the core, with rows of inputs."""

    @staticmethod
    def forward(
        ctx: Any,
        spares: Spares,
        native: Any,
        inputs: th.Tensor,
        rows: th.Tensor | None,
        hidden: th.Tensor,
        cell: th.Tensor,
        starts: th.Tensor | None,
        *parameters: th.Tensor,
    ) -> State:
        run = _NativeRun(native, inputs, rows, (hidden, cell), starts)
        gates = spares.take(*run.outputs.shape[:2], len(parameters[0]))
        native.forward(*run.arguments, gates.numpy(), th.get_num_threads())
        ctx.mark_non_differentiable(run.cells)
        ctx.spares, ctx.native, ctx.gates = spares, native, gates
        ctx.save_for_backward(*run.saved, run.outputs, run.cells, *parameters)
        return run.outputs, run.cells

    @staticmethod
    @th.autograd.function.once_differentiable
    def backward(ctx: Any, grad_outputs: th.Tensor, _: Any) -> Any:
        inputs, rows, *others = ctx.saved_tensors
        gradients = [th.empty_like(one) for one in others[5:8]]
        grad_inputs = th.empty(grad_outputs[..., 0].numel(), inputs.shape[-1]) if ctx.needs_input_grad[2] else None
        ctx.native.backward(
            *arrange_arguments(inputs, rows, *others[:5]),
            ctx.gates.numpy(),
            as_array(grad_outputs.contiguous()),
            *map(as_array, gradients),
            as_array(grad_inputs),
            th.get_num_threads(),
        )
        ctx.spares.give(ctx.gates)
        ctx.gates = None  # belongs to the next minibatch
        if grad_inputs is not None:
            grad_inputs = (
                grad_inputs.view_as(inputs) if rows is None else th.zeros_like(inputs).index_add_(0, rows.flatten(), grad_inputs)
            )
        return None, None, grad_inputs, None, None, None, None, *gradients, gradients[2]
