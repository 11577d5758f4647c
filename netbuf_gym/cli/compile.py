"""`netbuf-gym compile`: a trained sender in integers."""

from __future__ import annotations

import argparse

from netbuf_gym.cli.common import check_outputs, make_whole_parser
from netbuf_gym.errors import require_extra
from netbuf_gym.utils.progress import ProgressBar

STATES = 1_000_000


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("agent", metavar="AGENT", help="name of an agent in the zoo, model file, or run folder")
    parser.add_argument("--output", metavar="FILE", help="file to write (default: the agent's name with .policy, here)")
    parser.add_argument(
        "--states",
        type=make_whole_parser(0, 10**9),
        default=STATES,
        metavar="N",
        help=f"compare decisions in so many states of the worlds of its training (default: {STATES:,}; 0: in none)",
    )
    parser.add_argument(
        "--worlds",
        type=make_whole_parser(0, 1000),
        metavar="N",
        help="compare scores in so many worlds of each family of the gate (default: all; 0: in none)",
    )
    parser.add_argument("--threads", type=make_whole_parser(1, 1024), default=1, metavar="N", help="threads (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    with require_extra("a trained agent", "train"):
        import torch

        from netbuf_gym import zoo
        from netbuf_gym.zoo import compile as compiling
    torch.set_num_threads(1)
    agent = zoo.load(arguments.agent)
    compiled = compiling.compile_agent(agent)
    file = arguments.output or compiled.control
    check_outputs(file)
    told = compiled.about
    print(f"{told['agent']}: {told['network']}, recipe {told['recipe']}, every {told['interval_s'] * 1e3:g} ms")
    decisions = scores = None
    if arguments.states:
        with ProgressBar("deciding") as bar:
            decisions = compiling.compare_decisions(agent, compiled, arguments.states, arguments.threads, bar)
        print(f"decisions: {decisions.states:,} states, the same action in {decisions.same_actions:.3%}")
        print(f"  of the network alone, on the agent's own features, in {decisions.same_actions_of_network:.3%}")
        print(f"  a window where the agent has one, and none where it has none, in {decisions.same_silence:.3%}")
        print(f"  windows of the same action: within {decisions.window_error:.3%} (99.9th percentile)")
    if arguments.worlds != 0:
        with ProgressBar("playing") as bar:
            scores = compiling.compare_scores(agent, compiled, worlds=arguments.worlds, threads=arguments.threads, each=bar)
        change = f"{scores.compiled - scores.agent:+.4f}, standard error {scores.standard_error:.4f}"
        print(
            f"score in {scores.worlds} worlds of {scores.suite}: {scores.agent:.4f}, compiled {scores.compiled:.4f} ({change})"
        )
    compiling.write_compiled(compiled, file, decisions=decisions, scores=scores)
    print(f"written to {file}")
    return 0
