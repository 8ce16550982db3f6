"""Generate the example tables that ship with the package: ad conversions reported per group."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

FOLDER = Path(__file__).parents[1] / "src" / "unbag" / "datasets" / "examples"
START = np.datetime64("2026-03-01")


def make_events(n_events: int, rng: np.random.Generator, first: int) -> tuple[dict, np.ndarray]:
    """Clicks, and which of them led to a sale: a label that only groups will reveal."""
    device = rng.choice(["phone", "laptop", "tablet"], n_events, p=[0.55, 0.35, 0.10])
    country = rng.choice(["AT", "BE", "CH", "DE", "FR", "NL"], n_events)
    returning = rng.random(n_events) < 0.3
    price = np.round(np.exp(rng.normal(3.2, 0.7, n_events)), 2)
    seconds = np.round(rng.gamma(2.0, 40.0, n_events), 1)
    day = rng.integers(0, 31, n_events)
    logit = 3.2 * returning + 0.04 * (seconds - 80) - 1.6 * (price > 40) - 1.2
    logit += 1.2 * (device == "laptop") - 0.8 * (country == "CH")
    sold = rng.random(n_events) < 1 / (1 + np.exp(-1.6 * logit))
    unknown = rng.random(n_events) < 0.05
    columns = {
        "event_id": [f"e{number:06d}" for number in range(first, first + n_events)],
        "clicked_on": START + day,
        "device": device,
        "country": country,
        "returning": returning,
        "price": price,
        "seconds_on_page": pa.array(seconds, mask=unknown),
    }
    return columns, sold


def make_table(n_groups: int, seed: int, first: int) -> pa.Table:
    """Events dealt at random to groups of 10 to 20; each group reports how many converted."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(10, 21, n_groups)
    columns, sold = make_events(int(sizes.sum()), rng, first)
    group = rng.permutation(np.repeat(np.arange(n_groups), sizes))
    conversions = np.bincount(group, sold)
    columns["report"] = [f"r{first // 1000:02d}-{number:03d}" for number in group]
    columns["conversions"] = conversions[group].astype(int)
    return pa.table(columns)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, n_groups, seed, first in (
        ("conversions", 300, 0, 0),
        ("conversions_next", 120, 1, 9000),
    ):
        options = pacsv.WriteOptions(quoting_style="none")
        pacsv.write_csv(make_table(n_groups, seed, first), FOLDER / f"{name}.csv", options)
