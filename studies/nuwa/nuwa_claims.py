"""Claims of the paper on Nuwa, checked against a campaign's results, and the paper's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.common.judging import (
    DIFFERENCE,
    HIGHER,
    LOWER,
    NOT_LOWER,
    Claim,
    compute_interval,
    format_judgement,
    format_spread,
    judge_claim,
)
from studies.common.results import Runs
from studies.common.verdicts import format_verdicts_table, make_claim_row
from studies.nuwa.nuwa_measures import ARRIVALS, FAIR
from studies.nuwa.nuwa_schemes import GAINS, LEARNED, OURS, label
from studies.nuwa.nuwa_schemes import PUBLISHED as RULE
from studies.nuwa.nuwa_settings import CHANGE, FAIRNESS, FOUR, GRID, MOBILE, VIDEO
from studies.nuwa.nuwa_worlds import MEANS_MBPS, SPEEDS_S, format_jumping_cell

CELLS = ("study", "network")
"""Columns by which the runs of two schemes are paired, besides the seed."""
SUBJECTS = (*(f"{rule}_k7{target}" for rule in (RULE, OURS) for target in ("", "_bulk")), LEARNED)
"""Schemes for which Table I's claims are judged."""
RIVALS = ("bbr", "bbrplus", "cubic", "inigo", "vivace", "vegas", "westwood")
"""Rivals in Table I; PCC is Vivace here."""

TABLE = {
    "bbr": (168.5, 144.93, 0.54),
    "bbrplus": (172.3, 137.48, 0.61),
    "cubic": (187.1, 165.79, 0.87),
    "inigo": (177.5, 146.3, 0.71),
    "vivace": (185.3, 177.5, 1.02),
    "vegas": (179.1, 169.47, 0.82),
    "westwood": (177.8, 134.74, 0.51),
    f"{RULE}_k7": (194.5, 125.4, 0.56),
}
"""The paper's Table I: data in MB, queueing delay in ms, loss in %."""

IN_5G = {"study": MOBILE, "network": "5g"}
TABLE_1 = (
    Claim("5G: at least 4 % more data", "Table I", "data_mb", RIVALS, HIGHER, 0.04, IN_5G),
    Claim("5G: at least 6.9 % less queueing delay", "Table I", "queue_delay_mean_ms", RIVALS, LOWER, 0.069, IN_5G),
    Claim(
        "5G: less loss",
        "Table I",
        "loss",
        tuple(name for name in RIVALS if name not in ("bbr", "westwood")),
        LOWER,
        where=IN_5G,
        by=DIFFERENCE,
    ),
)


@dataclass(frozen=True)
class SchemeClaim:
    """Claim about one named scheme."""

    scheme: str
    claim: Claim


def _select_mobile(network: str) -> dict[str, object]:
    return {"study": MOBILE, "network": network}


def _select_network(network: str) -> dict[str, object]:
    return {"study": FOUR, "network": network}


def _select_speeds(*means_s: float) -> dict[str, object]:
    """Return the selection of links of any mean rate with these mean times between jumps."""
    return {"study": CHANGE, "network": tuple(format_jumping_cell(rate, mean_s) for rate in MEANS_MBPS for mean_s in means_s)}


def _select_rate(mean_mbps: float) -> dict[str, object]:
    """Return the selection of links of one mean rate with any mean time between jumps."""
    return {"study": CHANGE, "network": tuple(format_jumping_cell(mean_mbps, mean_s) for mean_s in SPEEDS_S)}


AT_50 = {"study": GRID, "network": ("near-50", "middle-50", "far-50")}
EVERYWHERE = {"study": GRID}


def _make_gain_claims(rule: str) -> list[SchemeClaim]:
    """Return the claims about the gain k of one rule."""
    k1, k2, k7, k9 = (f"{rule}_k{k}" for k in (1, 2, 7, 9))
    least = ("bbr", "cubic", "qtcp", k7)
    return [
        SchemeClaim(k1, Claim("4G: k = 1 carries more than k = 7", "10", "data_mb", (k7,), HIGHER, where=_select_mobile("4g"))),
        SchemeClaim(k7, Claim("5G: k = 7 carries more than k = 1", "10", "data_mb", (k1,), HIGHER, where=_select_mobile("5g"))),
        SchemeClaim(
            k1, Claim("4G: k = 1 carries more than CUBIC", "10", "data_mb", ("cubic",), HIGHER, where=_select_mobile("4g"))
        ),
        SchemeClaim(
            k7, Claim("5G: k = 7 carries more than CUBIC", "10", "data_mb", ("cubic",), HIGHER, where=_select_mobile("5g"))
        ),
        SchemeClaim(k9, Claim("a large k costs throughput", "9", "data_mb", (k1,), LOWER, where=_select_mobile("5g"))),
        SchemeClaim(k1, Claim("a small k loses more", "9", "loss", (k9,), HIGHER, where=_select_mobile("5g"), by=DIFFERENCE)),
        SchemeClaim(k2, Claim("4G: k = 2 carries least", "16", "data_mb", least, LOWER, where=_select_mobile("4g"))),
        SchemeClaim(k2, Claim("5G: k = 2 carries least", "16", "data_mb", least, LOWER, where=_select_mobile("5g"))),
        SchemeClaim(
            k1,
            Claim(
                "slow links: a small k is better",
                "9, 10",
                "utility",
                (k9,),
                HIGHER,
                where=_select_speeds(10.0, 30.0),
                by=DIFFERENCE,
            ),
        ),
        SchemeClaim(
            k9,
            Claim(
                "fast links: a large k is better",
                "9, 10",
                "utility",
                (k1,),
                HIGHER,
                where=_select_speeds(0.1, 0.3),
                by=DIFFERENCE,
            ),
        ),
        SchemeClaim(
            k1, Claim("ours: narrow links, small k", "-", "utility", (k9,), HIGHER, where=_select_rate(10), by=DIFFERENCE)
        ),
        SchemeClaim(
            k9, Claim("ours: wide links carry more with a large k", "-", "data_mb", (k1,), HIGHER, where=_select_rate(100))
        ),
    ]


GAIN = [one for rule in (RULE, OURS) for one in _make_gain_claims(rule)]
AGENT = (
    Claim("wired: throughput of CUBIC", "14", "goodput_mbps", ("cubic",), NOT_LOWER, where=_select_network("wired")),
    Claim("wired: less queueing delay", "14", "queue_delay_mean_ms", ("cubic",), LOWER, where=_select_network("wired")),
    Claim("4G: the highest throughput", "14", "goodput_mbps", ("bbr", "cubic"), HIGHER, where=_select_network("4g")),
    Claim("4G: the lowest RTT", "14", "rtt_mean_ms", ("bbr", "cubic"), LOWER, where=_select_network("4g")),
    Claim("5G: the lowest delay", "14", "queue_delay_mean_ms", ("bbr", "cubic"), LOWER, where=_select_network("5g")),
    Claim("4G: more throughput than with k = 2", "16", "data_mb", ("nuwa_k2",), HIGHER, where=_select_mobile("4g")),
    Claim("5G: more throughput than with k = 2", "16", "data_mb", ("nuwa_k2",), HIGHER, where=_select_mobile("5g")),
    Claim("5G: slightly less throughput than BBR", "16", "data_mb", ("bbr",), LOWER, where=_select_mobile("5g")),
)
SERVERS = (
    SchemeClaim(
        "vegas",
        Claim("Vegas: the least delay", "17", "rtt_mean_ms", ("cubic", "bbr", "westwood", f"{RULE}_k7"), LOWER, 0, EVERYWHERE),
    ),
    SchemeClaim(
        "vegas", Claim("Vegas: much less throughput", "17", "data_mb", ("cubic", "bbr", f"{RULE}_k7"), LOWER, 0.05, EVERYWHERE)
    ),
    SchemeClaim("vivace", Claim("50 Mbit/s: PCC far below BBR", "17", "data_mb", ("bbr", "bbrplus"), LOWER, 0.1, AT_50)),
    *(
        SchemeClaim(
            scheme,
            Claim("good everywhere: a higher utility", "17", "utility", RIVALS, HIGHER, 0.0, EVERYWHERE, DIFFERENCE),
        )
        for scheme in (f"{RULE}_k7", f"{OURS}_k7", LEARNED)
    ),
)


def format_bands(
    runs: Runs, study: str, measure: str, cells: Sequence[str], digits: int, factor: float = 1.0
) -> dict[str, list[str]]:
    """Return each scheme's texts of the mean and half 95 % interval (between schemes) of a measure, one per cell of a study."""
    found = {}
    for scheme, band in runs.where(study=study).compute_bands(measure, "network", cells, ()).items():
        mean, low, high = (factor * np.asarray(values) for values in band)
        half = (high - low) / 2
        found[scheme] = [
            "-" if value != value else f"{value:.{digits}f} ± {around:.{digits}f}"
            for value, around in zip(mean.tolist(), half.tolist(), strict=True)
        ]
    return found


def build_table_1(runs: Runs) -> str:
    """Return the paper's Table I and the utility over 5G and 4G, with the paper's own numbers for 5G beside."""
    measures = (("data_mb", 1, 1), ("queue_delay_mean_ms", 1, 1), ("loss", 2, 100), ("utility", 3, 1))
    found = [format_bands(runs, MOBILE, measure, ("5g", "4g"), digits, factor) for measure, digits, factor in measures]
    rows = []
    for scheme in found[0]:
        cells = [one[scheme][network] for network in range(2) for one in found]
        paper = TABLE.get(scheme)
        rows.append([label(scheme), *cells, "" if paper is None else f"{paper[0]:g}; {paper[1]:g}; {paper[2]:g}"])
    own_columns = [f"{name}: {what}" for name in ("5G", "4G") for what in ("MB", "queueing (ms)", "loss (%)", "utility")]
    return markdown_table(["scheme", *own_columns, "paper, 5G: MB; ms; %"], rows)


def build_table_1_claims(runs: Runs) -> str:
    """Return the table of Table I's claims, judged for the paper's gain at two target delays and for the trained agent."""
    schemes = [scheme for scheme in SUBJECTS if scheme in runs.values("scheme")]
    rows = []
    for claim in TABLE_1:
        for rival in claim.rivals:
            cells = [judge_claim(claim, runs, scheme, rival, CELLS) for scheme in schemes]
            if any(cell != "-" for cell in cells):
                rows.append([claim.text, label(rival), *cells])
    return markdown_table(["the paper's claim", "against", *map(label, schemes)], rows)


def build_claims_table(runs: Runs, about: Sequence[SchemeClaim]) -> str:
    """Return the table of claims about named schemes, without schemes that did not run."""
    rows = []
    for one in about:
        for rival in one.claim.rivals:
            said = judge_claim(one.claim, runs, one.scheme, rival, CELLS)
            if said != "-":
                rows.append([f"{one.claim.text} ({one.claim.figures})", label(one.scheme), label(rival), said])
    return markdown_table(["the paper's claim (figures)", "scheme", "against", "found"], rows)


def make_agent_claims() -> list[SchemeClaim]:
    """Return the claims about Nuwa-RL."""
    return [SchemeClaim(LEARNED, claim) for claim in AGENT]


def build_verdicts_table(runs: Runs) -> str:
    """Return the table of verdicts on the published rule at the paper's gain, and on Nuwa-RL."""
    subject = f"{RULE}_k7"
    about = [SchemeClaim(subject, claim) for claim in TABLE_1] + _make_gain_claims(RULE) + make_agent_claims() + list(SERVERS)
    rows = [make_claim_row(one.claim, runs, one.scheme, CELLS, label, f"{label(one.scheme)}, ") for one in about]
    return format_verdicts_table(rows)


def build_gains_table(runs: Runs, measure: str = "utility", digits: int = 3, factor: float = 1.0) -> str:
    """Return the table of a measure by rule and gain, for jumping links, 4G and 5G; the highest value of a row is bold."""
    cells = [
        (CHANGE, format_jumping_cell(rate, mean_s), f"{rate} Mbit/s, a jump each {mean_s:g} s")
        for rate in MEANS_MBPS
        for mean_s in SPEEDS_S
    ]
    cells += [(MOBILE, "4g", "4G"), (MOBILE, "5g", "5G")]
    texts = {
        (study, cell): (format_bands(runs, study, measure, (cell,), digits, factor), runs.where(study=study, network=cell))
        for study, cell, _ in cells
    }
    rows = []
    for rule in (RULE, OURS):
        schemes = [f"{rule}_k{k}" for k in GAINS]
        for study, cell, said in cells:
            found, own = texts[study, cell]
            if not len(own) or not all(scheme in found for scheme in schemes):
                continue
            shown = [found[scheme][0] for scheme in schemes]
            best = int(np.nanargmax([np.nanmean(own.where(scheme=scheme).columns[measure]) for scheme in schemes]))
            shown[best] = f"**{shown[best]}**"
            rows.append(["published" if rule == RULE else "ours", said, *shown])
    return markdown_table(["rule", "link", *(f"k = {k}" for k in GAINS)], rows)


def build_means_table(runs: Runs, study: str, measure: str, digits: int, factor: float = 1.0) -> str:
    """Return the table of a measure by scheme and cell of a study; see `format_bands`."""
    cells = runs.where(study=study).values("network")
    found = format_bands(runs, study, measure, cells, digits, factor)
    return markdown_table(["scheme", *cells], [[label(scheme), *texts] for scheme, texts in found.items()])


def build_estimates_table(runs: Runs) -> str:
    """Return the table of Fig. 2's claim that a steering receiver's window / RTT is closer to the link's capacity.

    The claim compares it with a chunk's size / download time, of the scheme's own client and of CUBIC's client.
    """
    own, rows = runs.where(study=VIDEO), []
    for cell in own.values("network"):
        here = own.where(network=cell)
        plain = {scheme: _index_by_seed(here, scheme, "estimate_off") for scheme in here.values("scheme")}
        for scheme, client in plain.items():
            window = _index_by_seed(here, scheme, "window_off")
            if not np.isfinite(list(window.values())).any():
                continue
            found = []
            for other in (client, plain.get("cubic", {})):
                nearer = compute_interval([value - other[seed] for seed, value in window.items() if seed in other])
                found.append(format_judgement(LOWER, nearer, by=DIFFERENCE))
            rows.append([cell, label(scheme), *found])
    header = ["link, and what chooses the bitrate", "scheme", "closer than its own client's estimate (2)"]
    return markdown_table([*header, "closer than the estimate of CUBIC's client (2)"], rows)


def _index_by_seed(runs: Runs, scheme: str, measure: str) -> dict[float, float]:
    columns = runs.where(scheme=scheme).columns
    return dict(zip(columns["seed"].tolist(), columns[measure].tolist(), strict=True))


def build_fairness_table(runs: Runs) -> str:
    """Return the fairness table: Jain's index and time to fairness after each arrival, share of the scheme's own flows."""
    own = runs.where(study=FAIRNESS)
    rows = []
    for cell in own.values("network"):
        for scheme in own.values("scheme"):
            found = own.where(network=cell, scheme=scheme).columns
            texts = [format_spread(found[f"jain_{number}"], 3) for number in ARRIVALS]
            for number in ARRIVALS:
                seconds = found[f"converged_{number}_s"]
                fair = np.isfinite(seconds)
                texts.append(f"{np.median(seconds[fair]):.1f} ({fair.sum()} of {len(fair)})" if fair.any() else "never")
            texts += [
                format_spread(found["jain"], 3),
                format_spread(100 * found["own_share"], 0),
                format_spread(found["goodput_mbps"], 2),
            ]
            rows.append(["all its own" if cell == "own" else "two, and two of CUBIC", label(scheme), *texts])
    header = ["flows", "scheme", *(f"Jain, {number} flows" for number in ARRIVALS)]
    header += [f"s to {FAIR:g}, {number} flows" for number in ARRIVALS]
    return markdown_table([*header, "Jain, last 30 s", "its share, %", "all, Mbit/s"], rows)


def build_returns_table(runs: Runs) -> str:
    """Return the table of final returns by network and learner, with the first step that reached 90 % of the gain."""
    rows = []
    for network in runs.values("network"):
        for algorithm in runs.values("scheme"):
            own = runs.where(network=network, scheme=algorithm)
            steps = sorted(own.values("step"))
            returns = [own.where(step=step).columns["return"] for step in steps]
            last = returns[-1]
            known = [(step, np.nanmean(at)) for step, at in zip(steps, returns, strict=True) if np.isfinite(at).any()]
            gained = "-"
            if known and known[-1][1] > (first := known[0][1]):
                enough = first + 0.9 * (known[-1][1] - first)
                gained = f"{next(step for step, mean in known if mean >= enough):,.0f}"
            rows.append([network, algorithm, format_spread(last, 1), gained])
    return markdown_table(["network", "learner", "return at the end", "steps to 90 % of what was gained"], rows)
