"""How much context to assume: simulated elections with hidden causes.

    python benchmarks/election_context.py [--draws 1200]    # five minutes

Every bag has some hidden causes, such as income and density. Random mixtures of them move its
composition and what all its people do; nothing bounds how alike the two mixtures are. So in some
elections no method can be right. The numbers of causes, bags and groups and all spreads are random
and are drawn from the seed alone. `context="spread"` assumes that composition explains at most 0.8
of the variance of bag effects; the columns show what other shares would do. Writes
``results/election_context.csv`` and ``.md``.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import unbag
from unbag.randomness import numpy_generator

FOLDER = Path(__file__).parent / "results"
ASSUMED = (
    0.0,
    0.2,
    0.5,
    0.8,
)  # share of effects that composition explains; the last is the default
CAUSES = (2, 4, 8)
TRUE = ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0))


def draw(rng, causes):
    """Members, positives by group, and the share of bag effects that composition explains."""
    n_bags, n_groups = rng.choice([30, 100, 300]), rng.choice([2, 3])
    hidden = rng.normal(size=(n_bags, causes))
    mixtures = rng.normal(size=(causes, n_groups + 1))
    mixtures /= np.linalg.norm(mixtures, axis=0)
    moved = hidden @ mixtures  # of composition, and last of what people do
    logits = rng.uniform(0.5, 1.5) * moved[:, :-1] + 0.7 * rng.normal(size=n_groups)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    sizes = np.exp(rng.uniform(np.log(100), np.log(3000), n_bags)).astype(int)
    members = np.maximum(rng.multinomial(sizes, shares), 1)
    effects = rng.uniform(0.03, 0.15) * moved[:, -1:]
    own = rng.uniform(0.0, 0.05) * rng.normal(size=(n_bags, n_groups))
    means = rng.uniform(0.2, 0.8, n_groups)
    positives = rng.binomial(members, np.clip(means + effects + own, 0.02, 0.98))
    design = np.column_stack([np.ones(n_bags), members[:, 1:] / members.sum(axis=1)[:, None]])
    left = effects - design @ np.linalg.lstsq(design, effects, rcond=None)[0]
    return members, positives, 1 - left.var() / effects.var()


def run(number, causes, seed):
    """One election under every assumption."""
    members, positives, explained = draw(
        numpy_generator("context", seed, f"{causes}/{number}"), causes
    )
    truth, votes = positives.sum(axis=0) / members.sum(axis=0), positives.sum(axis=1)
    context = unbag.estimate_groups(members, votes).context
    for assumed in ASSUMED:
        smaller = np.sqrt(assumed / (1 - assumed) / (ASSUMED[-1] / (1 - ASSUMED[-1])))
        found = unbag.estimate_groups(members, votes, context=smaller * context)
        for (name, one), true in zip(found.estimates.items(), truth, strict=True):
            low, high = found.bounds[name]
            yield {
                "causes": causes,
                "election": number,
                "explained": round(explained, 4),
                "assumed": assumed,
                "context": round(context, 4),
                "group": name,
                "given": one.has_interval,
                "holds": one.low <= true <= one.high,
                "width": round(one.high - one.low, 4),
                "bound_width": round(high - low, 4),
            }


def line(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(rows, by, names):
    """Share of given intervals that hold the truth, by assumption."""
    yield line(by, *(f"at most {share:g} assumed" for share in ASSUMED))
    yield line(*["---"] * (1 + len(ASSUMED)))
    for name, own in names(rows):
        given = own[own["given"]].groupby("assumed")
        yield line(name, *(f"{100 * share:.1f} %" for share in given["holds"].mean()))


def by_causes(rows):
    for causes, own in rows.groupby("causes"):
        yield f"{causes} hidden causes", own
    yield "all", rows


def by_share(rows):
    for low, high in TRUE:
        yield f"{low:g} to {high:g}", rows[rows["explained"].between(low, high)]


def page(rows, seed):
    default = rows[rows["assumed"] == ASSUMED[-1]]
    kept = default["width"].sum() / default["bound_width"].sum()
    counts = rows.groupby("causes")["election"].nunique().iloc[0]
    refused = 1 - rows.groupby("assumed")["given"].mean()
    yield from (
        "# Simulated elections with hidden causes",
        "",
        f"Made by `python benchmarks/election_context.py`, seed {seed}: {counts} elections for "
        "each number of hidden causes. Share of the 95 % intervals of `estimate_groups` that hold "
        "the truth, if the context is that at which composition explains a share of the variance "
        'of bag effects. `context="spread"` is the last column: the smallest share of these that '
        "held the truth in over nine tenths of all elections. None is given where counts "
        "contradict the assumption: "
        + ", ".join(f"{100 * share:.1f} % at {assumed:g}" for assumed, share in refused.items())
        + f". By default the median context is {default['context'].median():.2f}, and intervals "
        f"have {100 * kept:.0f} % of the width of the bounds.",
        "",
        *table(rows, "elections", by_causes),
        "",
        "By the share that composition truly explains:",
        "",
        *table(rows, "truly explained", by_share),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=1200, help="elections in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    each = -(-options.draws // len(CAUSES))
    rows = pd.DataFrame(
        row
        for causes in CAUSES
        for number in range(each)
        for row in run(number, causes, options.seed)
    )
    rows = rows.reset_index(drop=True)
    summary = rows.groupby(["causes", "assumed"])[["given", "holds", "width", "bound_width"]]
    summary.mean().round(4).to_csv(options.folder / "election_context.csv", lineterminator="\n")
    text = "\n".join(page(rows, options.seed)) + "\n"
    (options.folder / "election_context.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
