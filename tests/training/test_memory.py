"""An agent with an LSTM keeps what it remembers over an episode, in simulator, kernel and on a host, and no longer."""

from itertools import pairwise

import numpy as np
import pytest

from netbuf_gym import zoo
from netbuf_gym.controllers import Decider
from netbuf_gym.evaluation import rollout
from netbuf_gym.host.decider import TASK, make_decider
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from tests.helpers.machines import needs_live_worlds

NAME, WORLD = "receiver_window/ppo_lstm", {"name": "nuwa/wired", "duration_s": 3.0}


class Watched(SavedAgent):
    """An agent, and what it was told and answered, decision by decision; it may be made to forget."""

    forgets = False

    def start(self, rules, seeds):
        policy, self.seen = super().start(rules, seeds), []

        def decide(observations, state, starts):
            actions, left = policy(observations, state, starts)
            self.seen.append((state, starts.copy(), np.array(actions), left))
            return actions, None if self.forgets else left

        return decide


def play(agent, plant):
    rollout.evaluate(agent, "receiver_window", WORLD, [1_000_000], **({"plant": plant} if plant != "sim" else {}))
    return agent.seen


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["sim", "linux"])
def test_the_state_is_kept_over_an_episode(plant):
    if plant == "linux":
        needs_live_worlds()
    agent = Watched(zoo.load(NAME).controller.saved)
    seen = play(agent, plant)
    assert len(seen) > 20 and seen[0][0] is None and seen[0][1].all() and not any(starts.any() for _, starts, _, _ in seen[1:])
    for (_, _, _, left), (state, _, _, _) in pairwise(seen):
        for was, now in zip(left, state, strict=True):
            np.testing.assert_array_equal(now, was)
    norms = [float(np.abs(left[0]).sum()) for _, _, _, left in seen]
    assert len(set(norms)) > 10 and norms[0] > 0
    assert play(agent, plant)[0][0] is None, "another episode remembers nothing"


def test_an_agent_that_forgets_decides_otherwise():
    agent = Watched(zoo.load(NAME).controller.saved)
    remembering = [int(actions[0]) for _, _, actions, _ in play(agent, "sim")]
    agent.forgets = True
    forgetting = [int(actions[0]) for _, _, actions, _ in play(agent, "sim")]
    assert remembering != forgetting and all(state is None for state, *_ in agent.seen)


def test_on_a_host_the_state_is_kept():
    class Counting(Decider):
        name, told = "counting", []

        def start(self, rules, seeds):
            def decide(observations, state, starts):
                self.told.append((state, bool(starts[0])))
                return np.array([rules.action_space.sample()]), (state or 0) + 1

            return decide

    one = make_decider(Counting(), 5.0, {"tcp_rmem_max_bytes": 1e6, "tcp_wmem_max_bytes": 1e6})
    assert TASK == "host_buffers"
    for _ in range(4):
        one.decide({"elapsed_s": 5.0, "busy_s": 5.0, "connections": 3.0, "latency_s": 0.05})
    assert Counting.told == [(None, True), (1, False), (2, False), (3, False)]
