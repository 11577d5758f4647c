"""The second of a world's two processes: it runs worlds for its owner, one after the other, until the owner is gone.

Messages are dicts. `{"do": "start", ...}` makes a world (`LiveWorld`), which begins with the first step; `{"do": "step",
"interval_ns": ..., "until": ..., "most": ..., "control": rows}` runs the world on and answers `elapsed_ns` and `telemetry`;
`{"do": "report"}` answers `report`, `{"do": "opened"}` the flows of the traffic; `{"do": "end"}` ends the world. `{"do":
"check"}` makes the parts of a world, and answers whether its links may have a real-time priority. Failures are
answered by `error`, which names the reason; with `config` where another scenario, or another machine, could succeed.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from typing import Any

from netbuf_gym.plants.linux.messages import MessageChannel, PeerGone
from netbuf_gym.plants.linux.nodes import Node

DOES = ("start", "step", "report", "opened", "check", "end")


def check_machine() -> bool:
    """Create and close two nodes; return whether a thread may have a real-time priority. OSError says what is missing."""
    nodes: list[Node] = []
    try:
        for number in range(2):
            nodes.append(Node(number, 1500))
    finally:
        for node in nodes:
            node.close()
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, *before)
    except OSError:
        return False
    return True


def serve(wire: MessageChannel) -> int:
    """Serve the owner until it is gone; return the exit status."""
    from netbuf_gym.plants.linux.world import LiveWorld

    with suppress(ValueError, OSError):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    world: LiveWorld | None = None
    try:
        while True:
            message = wire.receive()
            try:
                if message["do"] == "start":
                    if world is not None:
                        world.close()
                        world = None
                    world = LiveWorld(message)
                    answer: dict[str, Any] = {"about": world.about()}
                elif message["do"] == "check":
                    answer = {"realtime": check_machine()}
                elif message["do"] == "end":
                    if world is not None:
                        world.close()
                        world = None
                    answer = {}
                elif world is None:
                    answer = {"error": "there is no world"}
                elif message["do"] == "step":
                    answer = world.step(message, wire)
                elif message["do"] == "report":
                    answer = {"report": world.report(message.get("completions", 0))}
                elif message["do"] == "opened":
                    answer = {"opened": world.flows.flows_opened()}
                else:
                    answer = {"error": f"do = {message['do']!r}; valid: {', '.join(DOES)}"}
            except OSError as error:
                text = str(error.strerror or error)
                answer = {"error": text, "config": message["do"] in ("start", "check")}
            except (ValueError, RuntimeError) as error:
                answer = {"error": str(error), "config": message["do"] == "start"}
            wire.send(answer)
    except PeerGone:
        return 0
    finally:
        if world is not None:
            world.close()
