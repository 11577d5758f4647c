"""LSTMs over rollouts of many worlds: whole sequences at once, with states that are reset where episodes start.

Gates, their order and the parameters are `torch.nn.LSTM`'s. That module knows nothing of episodes, so that a sequence with
a start inside has to go through it step by step, and its backward pass with it. With a thousand worlds some episode starts
at about every step. `unroll_lstm` multiplies the state by zero there instead, projects the inputs of all steps in one
product, and steps back through time explicitly: two products and a few elementwise operations per step, the gradients of the
weights in one product over all of them. Where no gradients are wanted the core does the same on this processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch as th
from torch.nn import functional as F

from netbuf_gym.training.algorithms.networks import is_plain, list_lstm_parameters, make_native_lstm, to_array

State = tuple[th.Tensor, th.Tensor]
"""Hidden and cell states, (layers, worlds, width) each."""


def unroll_lstm(
    lstm: th.nn.LSTM, inputs: th.Tensor, state: State, starts: th.Tensor, into: State | None = None
) -> tuple[th.Tensor, State]:
    """Run an LSTM over sequences.

    Args:
        lstm: Plain LSTM: with biases, of one direction, without dropout and projection (see `require_plain_lstm`).
        inputs: (steps, worlds, features).
        state: State before the first step; no gradient flows into it.
        starts: (steps, worlds), 1 where an episode starts, before whose step the state is reset; else 0.
        into: Memory for the states after each step; None: new memory.

    Returns:
        Outputs, (steps, worlds, width), through which gradients flow back to the parameters and `inputs`; and the states
        after each step, (steps, layers, worlds, width) each, through which none do.
    """
    resets = starts if th.count_nonzero(starts) else None
    shape = (len(inputs), *state[0].shape)
    after = into or (inputs.new_empty(shape), inputs.new_empty(shape))
    outputs = inputs
    for layer in range(lstm.num_layers):
        before = (state[0][layer], state[1][layer])
        hidden, cells = (one[:, layer] for one in after)
        native = None
        if not th.is_grad_enabled() and all(map(is_plain, (outputs, *before, hidden, cells))):
            native = make_native_lstm(lstm, layer)
        if native is None:
            keep = None if resets is None else (1.0 - resets).unsqueeze(2)
            apply: Callable[..., State] = _LayerFunction.apply
            outputs, of_layer = apply(outputs, *before, keep, *list_lstm_parameters(lstm, layer))
            hidden.copy_(outputs.detach())
            cells.copy_(of_layer)
        else:
            arrays = [None if one is None else to_array(one) for one in (outputs.flatten(0, 1), *before, resets, hidden, cells)]
            native.forward(*arrays, th.get_num_threads())
            outputs = hidden
    return outputs, after


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
