import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import DATA_MINING, SIZES, WEB_SEARCH, SizeDistribution, sizes_of


def test_the_built_in_distributions():
    assert WEB_SEARCH.mean_bytes == pytest.approx(1.711e6, rel=1e-3)
    assert (WEB_SEARCH.quantile(0), WEB_SEARCH.quantile(0.53), WEB_SEARCH.quantile(1)) == (2000, 80_000, 30e6)
    assert DATA_MINING.quantile(0.5) == 1100 and DATA_MINING.quantile(0.8) == 10_000
    assert set(SIZES) == {"web_search", "data_mining"} and sizes_of("web_search") is WEB_SEARCH


def test_draws_have_the_distribution():
    sizes = WEB_SEARCH.sample(np.random.default_rng(1), 200_000)
    assert sizes.dtype == np.int64 and sizes.mean() == pytest.approx(WEB_SEARCH.mean_bytes, rel=0.02)
    for size, share in zip(WEB_SEARCH.size_bytes, WEB_SEARCH.cumulative, strict=True):
        assert (sizes <= size).mean() == pytest.approx(share, abs=0.005)


def test_steps_and_a_share_at_the_first_size():
    d = SizeDistribution(name="steps", size_bytes=(100, 200, 200, 400), cumulative=(0.25, 0.5, 0.75, 1))
    assert d.quantile([0, 0.25, 0.375, 0.5, 0.6, 0.75, 1]).tolist() == [100, 100, 150, 200, 200, 200, 400]
    assert d.mean_bytes == 0.25 * 100 + 0.25 * 150 + 0.25 * 200 + 0.25 * 300
    one = SizeDistribution(name="one", size_bytes=(7,), cumulative=(1,))
    assert one.mean_bytes == 7 and one.sample(np.random.default_rng(0), 3).tolist() == [7, 7, 7]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 2**32))
def test_quantiles_rise_and_stay_within_the_points(shares, seed):
    rng = np.random.default_rng(seed)
    cumulative = (*np.sort(rng.random(5)).tolist(), 1.0)
    d = SizeDistribution(name="x", size_bytes=tuple(np.sort(rng.uniform(1, 1e6, 6)).tolist()), cumulative=cumulative)
    sizes = d.quantile(np.sort(shares))
    assert (np.diff(sizes) >= 0).all() and (sizes >= d.size_bytes[0]).all() and (sizes <= d.size_bytes[-1]).all()


@pytest.mark.parametrize(
    "header", ["", "size_bytes,cumulative\n", "Size_Bytes, Cumulative\n\n", "\ufeffsize_bytes,cumulative\n"]
)
def test_csv_files_with_and_without_a_header(tmp_path, header):
    path = tmp_path / "sizes.csv"
    path.write_text(header + "100,0\n 200 , 0.5\n\n1e3,1.0\n")
    d = SizeDistribution.read_csv(path)
    assert (d.name, d.size_bytes, d.cumulative) == ("sizes.csv", (100, 200, 1000), (0, 0.5, 1))
    assert sizes_of(str(path)) == d == sizes_of(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "sizes.csv:1: is empty"),
        ("size_bytes,cumulative\n", "sizes.csv:1: holds no points"),
        ("100,0\n200,0.6\n300,0.5\n400,1\n", r"sizes.csv:3: cumulative = 0.5 is below 0.6; valid: shares that do not fall"),
        ("size_bytes,cumulative\n100,0\n50,1\n", r"sizes.csv:3: size_bytes = 50 is below 100; valid: sizes that do not fall"),
        ("100,0\n200,0.9\n", r"sizes.csv:2: cumulative = 0.9 at the end; valid: 1"),
        ("100,-0.1\n200,1\n", r"sizes.csv:1: cumulative = -0.1 is out of range; valid: 0 to 1"),
        ("100,0\n200,1.1\n", r"sizes.csv:2: cumulative = 1.1 is out of range"),
        ("0,0\n200,1\n", r"sizes.csv:1: size_bytes = 0.0 is out of range; valid: 1 to"),
        ("-5,0\n200,1\n", r"sizes.csv:1: size_bytes = -5.0"),
        ("nan,0\n200,1\n", r"sizes.csv:1: size_bytes = nan"),
        ("100,nan\n200,1\n", r"sizes.csv:1: cumulative = nan"),
        ("100,0\ninf,1\n", r"sizes.csv:2: size_bytes = inf"),
        ("100,0\nmany,1\n", r"sizes.csv:2: size_bytes = 'many' is not a number"),
        ("100,0\n200,all\n", r"sizes.csv:2: cumulative = 'all' is not a number"),
        ("100\n", r"sizes.csv:1: '100' has 1 fields; valid: 2, size_bytes,cumulative"),
        ("100,0,1\n", r"sizes.csv:1: '100,0,1' has 3 fields"),
        ("cumulative,size_bytes\n1,1\n", r"sizes.csv:1: size_bytes = 'cumulative' is not a number"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, text, message):
    path = tmp_path / "sizes.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=message):
        SizeDistribution.read_csv(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ScenarioError, match=r"none.csv: cannot be read"):
        SizeDistribution.read_csv(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match=r"binary.csv: is not text"):
        SizeDistribution.read_csv(tmp_path / "binary.csv")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cumulative": (0,)}, "sizes.cumulative has 1 values for 2 sizes"),
        ({"size_bytes": ()}, "sizes.size_bytes is empty"),
        ({"size_bytes": (0, 5)}, r"sizes.size_bytes\[0\] = 0"),
        ({"cumulative": (0.5, 0.4)}, r"sizes.cumulative\[1\] = 0.4 is below 0.5"),
    ],
)
def test_bad_points_are_named(fields, message):
    with pytest.raises(ScenarioError, match=message):
        SizeDistribution(**{"name": "x", "size_bytes": (1, 2), "cumulative": (0, 1), **fields})


@pytest.mark.parametrize("value", ["uniform", 3, None, ["web_search"]])
def test_what_names_no_distribution_is_refused(value):
    with pytest.raises(ScenarioError, match=r"sizes = .* is unknown; valid: web_search, data_mining, or a CSV file's path"):
        sizes_of(value)
