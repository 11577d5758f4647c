"""Files that are read: whole ones, changed in places. They are refused by their name, or taken as what they hold."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch as th

from netbuf_gym import scenarios, traces
from netbuf_gym.cli import program
from netbuf_gym.cli.trace import format_figures, read_workload
from netbuf_gym.errors import ConfigError, NetbufError, ScenarioError
from netbuf_gym.scenarios import FlowList, Scenario, SizeDistribution
from netbuf_gym.traces import RateTrace
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.validation import reference
from netbuf_gym.zoo import library
from studies.common.campaign import Campaign
from studies.common.results import Runs
from studies.rlbm.rlbm_experiment import RLBM
from studies.rlbm.rlbm_settings import Settings
from tools.fuzz import random_worlds
from tools.fuzz.case import ACCEPTED, REFUSED, Case, Finding
from tools.fuzz.scenarios import simulate_twice
from tools.fuzz.server import Kind

TOKENS = (
    b"\0", b"\xef\xbb\xbf", b"nan", b"inf", b"-1", b"1e309", b"1e400", b"-0", b"0", b"1_0", b'"', b"'", b",", b",,", b"\n",
    b"\r", b"\r\n", b"\t", b"\xff", b"\xc3\xa9", b"\xd9\xa3", b"#", b"{", b"}", b"[", b"]", b":", b"1" * 400, b" ",
    b"true", b"null",
    b"NaN", b"\xe2\x80\xa8", b"0x10", b"1e-320", b"99999999999999999999", b"netbuf", b"${seed}",
    b"!!python/object/apply:os.getcwd []",
)  # fmt: skip
MODELS: list[Path] = []
TABLES: list[bytes] = []
"""Of a campaign that was run."""


@dataclass(frozen=True)
class Form:
    """A kind of files.

    Attributes:
        name: of the file.
        make: the bytes of a whole one.
        read: what reads it; what it returns is checked.
        check: of what was read, and the bytes that a whole file held; raises `Finding`.
        text: lines that may be changed one by one.
        share: how often, beside the others.
    """

    name: str
    make: Callable[[Case], bytes]
    read: Callable[[Path], Any]
    check: Callable[[Case, Any, bytes], None]
    text: bool = True
    share: int = 4


def run(case: Case) -> str:
    """Read a file of some form, changed or not."""
    warnings.simplefilter("ignore")
    form = case.pick([form for form in FORMS for _ in range(form.share)])
    whole = form.make(case)
    changed = mutate(case, whole, form.text)
    path = case.folder / form.name
    path.write_bytes(changed)
    case.tell(f"{form.name}, {len(changed)} bytes:\n{changed[:30_000]!r}")
    try:
        found = form.read(path)
    except NetbufError as error:
        if path.stem not in str(error):
            raise Finding(f"a refusal that does not name {form.name}: {error}") from None
        if len(str(error)) > 3000:
            raise Finding(f"a refusal of {len(str(error))} characters") from None
        if changed == whole:
            raise Finding(f"a whole file is refused: {error}") from None
        return REFUSED
    if found is None:
        return REFUSED
    form.check(case, found, whole)
    if path.read_bytes() != changed:
        raise Finding("reading changed the file")
    return ACCEPTED


def mutate(case: Case, data: bytes, text: bool) -> bytes:
    """Bytes flipped, cut, doubled or put in; of text also numbers replaced and lines moved."""
    for _ in range(case.pick((0, 1, 1, 1, 2, 5))):
        at, how = case.whole(0, len(data)), case.rng.random()
        if text and how < 0.5:
            data = _line(case, data)
        elif how < 0.6:
            data = data[:at]
        elif how < 0.7:
            data = data[:at] + case.pick(TOKENS) + data[at + case.whole(0, 3) :]
        elif how < 0.8 and data:
            k = min(at, len(data) - 1)
            data = data[:k] + bytes([data[k] ^ 1 << case.whole(0, 7)]) + data[k + 1 :]
        elif how < 0.87:
            data = data[:at] + data[at : at + case.whole(1, 40)] + data[at:]
        elif how < 0.94:
            data = case.pick((b"\xef\xbb\xbf", b"\n", b" ", b"#x\n")) + data
        else:
            data = data.replace(*case.pick(((b"\n", b"\r\n"), (b",", b", "), (b".", b","), (b"\n", b"\n\n"), (b"0", b""))))
    return data[: 1 << 20]


def _line(case: Case, data: bytes) -> bytes:
    lines = data.split(b"\n")
    i, how = case.whole(0, len(lines) - 1), case.rng.random()
    if how < 0.6:
        fields = lines[i].split(b",")
        fields[case.whole(0, len(fields) - 1)] = case.pick(TOKENS)
        lines[i] = b",".join(fields)
    elif how < 0.75:
        del lines[i]
    elif how < 0.9:
        lines.insert(i, case.pick(lines))
    else:
        lines[i] += case.pick((b",", b",1", b" ", b"x", b"#"))
    return b"\n".join(lines)


# ---- traces, flows, sizes


def _rates(case: Case) -> bytes:
    times = np.cumsum([case.log(1e-3, 2) for _ in range(case.whole(1, 20))])
    times -= times[0]
    separator, head = case.pick(((",", "time_s,mbps\n"), (" ", "")))
    return (head + "".join(f"{t!r}{separator}{case.log(0.1, 100)!r}\n" for t in times.tolist())).encode()


def _deliveries(case: Case) -> bytes:
    return "".join(f"{t}\n" for t in sorted(case.whole(1, 500) for _ in range(case.whole(1, 50)))).encode()


def _check_trace(case: Case, trace: Any, whole: bytes) -> None:
    for value in (trace.duration_s, trace.mean_mbps(), trace.peak_mbps, trace.longest_gap_s, trace.mean_mbps(1.0)):
        if not 0 <= value < float("inf"):
            raise Finding(f"a trace of which some measure is {value!r}")
    traces.write(trace, case.folder / "again")
    again = traces.read(case.folder / "again", loop=getattr(trace, "period_s", 0) is not None)
    times = [one.time_s if isinstance(one, RateTrace) else one.time_ms for one in (trace, again)]
    if not np.array_equal(*times):
        raise Finding("written and read again, the trace has other times")


def _flows(case: Case) -> bytes:
    rows = "".join(
        f"{i},{case.log(1e-4, 5)!r},{case.whole(0, 3)},{case.whole(1, 10**6)},{case.whole(0, 1)}\n"
        for i in range(case.whole(1, 20))
    )
    return f"flow_id,start_s,sender,size_bytes,priority\n{rows}".encode()


def _check_flows(case: Case, flows: FlowList, whole: bytes) -> None:
    if (np.diff(flows.start_s) < 0).any() or (flows.size_bytes < 1).any() or not np.isfinite(flows.start_s).all():
        raise Finding(f"flows that cannot be: {flows!r}")
    flows.write_csv(case.folder / "again.csv")
    again = FlowList.read_csv(case.folder / "again.csv")
    if not np.array_equal(flows.size_bytes, again.size_bytes) or not np.allclose(flows.start_s, again.start_s, atol=1e-9):
        raise Finding("written and read again, the flows are others")
    format_figures(flows)


def _sizes(case: Case) -> bytes:
    size, share = np.sort(case.rng.integers(1, 10**6, 5)), np.sort(case.rng.random(5))
    share[-1] = 1
    return ("size_bytes,cumulative\n" + "".join(f"{s},{c!r}\n" for s, c in zip(size, share.tolist(), strict=True))).encode()


def _check_sizes(case: Case, sizes: SizeDistribution, whole: bytes) -> None:
    drawn = sizes.sample(np.random.default_rng(1), 100)
    if not np.isfinite(sizes.mean_bytes) or (drawn < 1).any() or (drawn > max(sizes.size_bytes) + 1).any():
        raise Finding(f"sizes {drawn!r} of {sizes!r}")
    format_figures(sizes)


# ---- worlds, models, tables, configurations


def _world(case: Case) -> bytes:
    while True:
        world = random_worlds.draw_world(case)
        try:
            Scenario.from_dict(world)
        except ScenarioError:
            continue  # things that cannot go together
        return json.dumps(world, indent=case.pick((None, 1))).encode()


def _read_world(path: Path) -> Any:
    return scenarios.get(f"file:{path}")


def _check_world(case: Case, world: Scenario, whole: bytes) -> None:
    simulate_twice(case, world)


def _model(case: Case) -> bytes:
    return case.pick(MODELS).read_bytes()


def _read_model(path: Path) -> Any:
    agent = SavedAgent(checkpoint.read_model(path))
    rules = _rules(agent)
    agent.start(rules, [1])
    return agent


def _rules(agent: SavedAgent) -> Any:
    from netbuf_gym.tasks import get

    schema = agent.saved.env["schema"]
    task = get(schema["task"]).rules
    options = {key: value for key, value in agent.env.items() if key in (*task.options, "recipe", "history")}
    return task(**options)


def _check_model(case: Case, agent: SavedAgent, whole: bytes) -> None:
    """Check that a model read despite a change, as of a date, has the numbers of the file that was whole."""
    (case.folder / "whole.zip").write_bytes(whole)
    first = _read_model(case.folder / "whole.zip")
    ours, theirs = (one._built.policy.state_dict() for one in (agent, first))
    for name, value in theirs.items():
        if not th.equal(value, ours[name]):
            raise Finding(f"a damaged model is taken: {name} differs")


def _runs(case: Case) -> bytes:
    return TABLES[0]


def _check_runs(case: Case, runs: Runs, whole: bytes) -> None:
    if len({len(column) for column in runs.columns.values()}) != 1:
        raise Finding("columns of different lengths")


def _reference(case: Case) -> bytes:
    row = {
        "label": "T_s3", "ns3": "3.44", "cc": "NewReno", "N": 1, "B_mbps": 10, "rtt_prop_ms": 20, "access_mbps": 1000,
        "buffer_pkts": 40, "buffer_bdp": 0, "qdisc": "DropTail", "loss": 0, "T_s": 6, "warm_s": 1, "stagger_s": 0,
        "mss": 1448,
        "delack": 2, "min_rto_s": 1, "hystart": 1, "sock_mb": 64, "seed": 1, "flow": "agg", "goodput_w_mbps": 9.1,
        "queue_drops": 7, "sojourn_mean_w_ms": 12.5,
    }  # fmt: skip
    rows = "".join(",".join(str(v) for v in (row | {"seed": s}).values()) + "\n" for s in range(case.whole(1, 4)))
    return f"{','.join(row)}\n{rows}".encode()


def _read_reference(path: Path) -> Any:
    return reference.read_folder(path.parent)


def _check_reference(case: Case, found: Any, whole: bytes) -> None:
    assert repr(found)


def _config(case: Case) -> bytes:
    return case.pick(("# @package _global_\nseed: 7\ntotal_timesteps: 32\nalgo:\n  learning_rate: 0.001\n",) * 2).encode()


def _read_config(path: Path) -> Any:
    """As an experiment of a folder of one's own: what training with it would be configured like, as text."""
    (path.parent / "experiment").mkdir()
    (path.parent / "experiment" / path.name).write_bytes(path.read_bytes())
    words = ["train", "--config-dir", str(path.parent), f"experiment={path.stem}", "--cfg", "job"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = program.main(words)
    if status:
        raise ConfigError(err.getvalue())
    return out.getvalue()


def _check_config(case: Case, found: str, whole: bytes) -> None:
    if "total_timesteps:" not in found:
        raise Finding(f"a configuration without its keys: {found[:500]}")


FORMS = (
    Form("rates.csv", _rates, traces.read, _check_trace),
    Form("deliveries.down", _deliveries, traces.read, _check_trace),
    Form("flows.csv", _flows, FlowList.read_csv, _check_flows),
    Form("sizes.csv", _sizes, SizeDistribution.read_csv, _check_sizes),
    Form("workload.csv", _flows, read_workload, lambda case, found, whole: None),
    Form("world.json", _world, _read_world, _check_world, share=6),
    Form("model.zip", _model, _read_model, _check_model, text=False, share=2),
    Form("runs.csv", _runs, RLBM.read, _check_runs),
    Form("reference.csv", _reference, _read_reference, _check_reference),
    Form("mine.yaml", _config, _read_config, _check_config, share=1),
)
if importlib.util.find_spec("netbuf_gym.cli.jobs") is None:  # commands take no folders of one's own
    FORMS = FORMS[:-1]


def prepare(folder: Path) -> None:
    """Finds the models that come with the package, and runs a small campaign."""
    import torch._dynamo  # noqa: F401  (learners import it when they are made, for seconds)

    settings = Settings(
        schemes=("naive", "dt"), ccs=("cubic",), sizes=(20,), loads=(0.4,), seeds=3, duration_s=1.0, intervals=()
    )
    TABLES.append(Campaign(RLBM, settings, folder / "campaign", 1).run(lambda done, total: None).read_bytes())
    MODELS.extend(sorted(library.FOLDER.rglob("model.zip")))


KIND = Kind("files", run, prepare=prepare, share=2.0)
