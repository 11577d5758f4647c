"""Features of observations, and their Markdown tables for the reference pages, which are built from docstrings of tasks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T", bound=type[Any])


@dataclass(frozen=True)
class Feature:
    """One component of an observation.

    Attributes:
        name: Identifier.
        low, high: Raw range that is mapped onto the space.
        meaning: Phrase, which also names the scale of the mapping where it is not linear.
        floor: Value that `low` is mapped onto; `high` is mapped onto 1.
    """

    name: str
    low: float
    high: float
    meaning: str
    floor: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the properties that a saved model must agree with."""
        return {"name": self.name, "low": self.low, "high": self.high, "meaning": self.meaning}


def feature_table(features: Sequence[Feature], each: Sequence[Feature] = (), times: int = 1, start: int = 0) -> str:
    """Return a Markdown table of the components of a feature vector.

    Args:
        features: Features that occur once.
        each: Features after these, each occurring `times` times side by side.
        times: Number of occurrences of each of `each`.
        start: Number of the first component.
    """
    rows = [[str(num), *_feature_row(feature)] for num, feature in enumerate(features, start)]
    for k, feature in enumerate(each):
        first = start + len(features) + k * times
        rows.append([f"{first}-{first + times - 1}" if times > 1 else str(first), *_feature_row(feature)])
    return markdown_table(["Num", "Feature", "Meaning", "Low", "High"], rows)


def _feature_row(feature: Feature) -> list[str]:
    return [feature.name, feature.meaning.replace("|", r"\|"), f"{feature.floor:g}: {feature.low:g}", f"1: {feature.high:g}"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with columns of even width."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines)


def documented(cls: T) -> T:
    """Fill the place holders in a task's docstring; done for every `Task`.

    `{features of RECIPE}` becomes the table from `cls.feature_tables()`, `{common arguments}` the last rows of a table of
    arguments, and `{episode end}` the rules by which episodes end.
    """
    if cls.__doc__ is not None and "{" in cls.__doc__:
        page = inspect.cleandoc(cls.__doc__).replace("{episode end}", EPISODE_END)
        if "{features of " in page:
            for recipe, table in cls.feature_tables().items():
                page = page.replace(f"{{features of {recipe}}}", table)
        if "{common arguments}" in page:
            page = page.replace("{common arguments}", _format_common_arguments(cls))
        cls.__doc__ = page
    return cls


EPISODE_END = """\
1. Termination: never.
2. Truncation: when the scenario's duration is over, rounded up to whole intervals. `gym.make` adds the `TimeLimit`; the class
   alone goes on for ever. Also when the plant's world fails, with the reason in `info["failure"]`; simulated ones do not."""

COMMON_ARGUMENTS = """\
| `scenario` | **str**, **dict**, **Scenario**, **Distribution**, **callable** | `"{task.default_scenario}"` | a name \
(`netbuf_gym.scenarios.names()`, `trace:PATH`), a dict of `name` and its arguments, a scenario's `to_dict()`, the scenario or \
distribution itself, or a function `(rng) -> Scenario`, called each episode |
| `recipe` | **str** | `"default"` | {recipes} |
| `history` | **int** | {history} | feature vectors in an observation, 1 to 64 |
| `reward` | **str**, **dict**, **callable** | the recipe's | see Rewards |
| `info` | **str**, **list** | `[]` | what else `info` holds: `"telemetry"`, and of vector environments `"reward_terms"` |
| `interval_s` | **float** | `{task.default_interval_s:g}` | time between decisions, 0.001 to 100 s |
| `{task.agents_argument}` | **int** | `1` | agents that decide in a world; the scalar environment takes 1, see `VectorEnv` \
and `netbuf_gym.envs.parallel_env` |
| `plant` | **str**, **dict** | `"sim"` | what is controlled, a name of `netbuf_gym.plants`, or a dict of `name` and the \
plant's arguments |
| `render_mode` | **str** | `None` | `"ansi"` or `"rgb_array"` |

`gym.make_vec(id, num_envs=1024, threads=1, ...)` steps many worlds at once (`netbuf_gym.envs.vector_env.VectorEnv`)."""


def _format_common_arguments(task: Any) -> str:
    recipes = ", ".join(f'`"{recipe}"`' for recipe in task.recipes)
    history = ", ".join(f"{recipe}: `{depth}`" for recipe, depth in task.default_history.items())
    return COMMON_ARGUMENTS.format(task=task, recipes=recipes, history=history)
