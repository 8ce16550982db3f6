"""Numbers of an audit, before and after they were mended.

    python benchmarks/audit.py [--draws 200] [--seed 1] [--only rounding]      # some minutes

One function an item. "Before" runs today's code without the piece that was added, or with the
option that was there before. Writes ``results/coverage/audit.md``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np
from coverage import draw_of
from coverage_laws import LAWS
from scipy.special import expit
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from unbag import BagKFold, BagRidgeClassifier, BagTarget, check_bags, cross_fit_risk
from unbag.bags import Bags
from unbag.evaluation import bag_scorer, estimate_risk, positives, risk, score_metrics
from unbag.evaluation.intervals import ResidualMoments
from unbag.planning import debiased_risk_certificate
from unbag.randomness import numpy_generator

PAGE = Path(__file__).parent / "results" / "coverage" / "audit.md"
Row = tuple[str, str, str]  # what, before, after
NEW_CHECKS = {"trend", "blocks", "signal"}


def certificates(rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Item 1: the truth above its 95 % certificate, 200 bags of 10, an error of 0.1 %."""
    counts = rng.binomial(10, 0.001, (10 * draws, 200)) * rng.choice([-1, 1], (10 * draws, 200))
    residuals = counts / 10
    values = (residuals**2).mean(axis=1) + 9 * residuals.var(axis=1, ddof=1)
    limits = np.array([debiased_risk_certificate(v, 200, bag_size=10) for v in values])
    before = np.where(values == 0, 0.0, limits)
    yield "certificate below the truth", _percent(before < 0.001), _percent(limits < 0.001)


def rounding(rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Item 2: rounded proportions of 200 bags, an error of 1 %; stated error and coverage."""
    for size, digits in ((500, 2), (1000, 2), (100, 1)):
        found = np.array([_rounded(rng, size, digits) for _ in range(max(draws // 10, 2))])
        texts = [
            f"{100 * v.mean():.2f} % (covers {_percent((low <= 0.01) & (high >= 0.01))})"
            for v, low, high in found[:, :6].reshape(-1, 2, 3).transpose(1, 2, 0)
        ]
        yield f"200 bags of {size}, {digits} digits: stated error", *texts
        yield f"200 bags of {size}, {digits} digits: `rounding` raised", "-", _percent(found[:, 6])


def _rounded(rng: np.random.Generator, size: int, digits: int) -> list[float]:
    labels = rng.random(200 * size) < 0.3
    predictions = np.where(rng.random(200 * size) < 0.01, ~labels, labels).astype(float)
    rounded = labels.reshape(200, size).mean(axis=1).round(digits)
    options = {"offsets": np.arange(0, len(labels) + 1, size), "proportions": rounded}
    found, X = [], np.zeros((len(labels), 1))
    for noise in (None, "rounding"):
        estimate = estimate_risk(predictions, Bags.from_arrays(X, noise_variance=noise, **options))
        found += [estimate.value, estimate.low, estimate.high]
    report = check_bags(X, np.repeat(rounded, size), bags=np.repeat(np.arange(200), size))
    return [*found, report["rounding"].raised]


def log_loss(rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Item 3: coverage of the log loss of an accurate classifier that is not sure of itself."""

    def as_guessed(chances: np.ndarray, *_: object) -> np.ndarray:
        return chances

    patch = mock.patch.object(positives, "_with_variance", as_guessed)
    for law in (
        "200 bags of 50, under-confident, no errors",
        "200 bags of 50, under-confident",
        "30 bags of 1000, errors at two scores",
    ):
        yield f"log loss, {law}", *_coverages(law, "log_loss", patch, rng, draws)


def checks(rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Item 6: how often `check_bags` is raised by bags that are not random, 200 bags of 20."""
    for what in (
        "the logit drifts by 0.6",
        "ten regions of effect 0.3",
        "proportions joined wrongly",
    ):
        raised = [_raised(rng, what.split()[0]) for _ in range(max(draws // 2, 2))]
        yield f"{what}: raised", *(_percent(share) for share in np.array(raised).T)


def _raised(rng: np.random.Generator, departure: str) -> tuple[bool, bool]:
    """Whether checks that were there before are raised, and whether any is."""
    n_bags, size = 200, 20
    X, regions = rng.normal(size=(n_bags * size, 3)), np.arange(n_bags) % 10
    effects = {
        "the": np.linspace(-0.6, 0.6, n_bags),
        "ten": 0.3 * rng.normal(size=10)[regions],
        "proportions": np.zeros(n_bags),
    }[departure]
    labels = rng.random(len(X)) < expit(X[:, 0] + np.repeat(effects, size))
    means = labels.reshape(n_bags, size).mean(axis=1)
    means = rng.permutation(means) if departure == "proportions" else means
    report = check_bags(
        X,
        np.repeat(means, size),
        bags=np.repeat(np.arange(n_bags), size),
        blocks=regions if departure == "ten" else None,
    )
    before = any(f.raised for f in report.findings if f.check not in NEW_CHECKS)
    return before, bool(report.raised)


def others(rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Item 8: coverage of what was below 92 %."""
    alone = mock.patch.object(risk, "FEW_BAGS", 0)
    for n_bags in (4, 8):
        law = f"{n_bags} bags of 50, one-sided"
        yield f"error, {law}", *_coverages(law, "error", alone, rng, draws)
    draw = score_metrics._draws
    known = mock.patch.object(score_metrics, "_draws", lambda *parts: draw(*parts[:2], 1e9))
    for law in ("30 bags of 50, three tied scores", "8 bags of 50, one-sided"):
        yield f"calibration error, {law}", *_coverages(law, "calibration_error", known, rng, draws)
    yield "error, 50 bags of 5 with Laplace noise of variance 8", *_noisy(rng, draws)
    law = "cross-fitted ridge"
    plain = mock.patch.multiple(risk, CROSS_FITTED=1.0, outer_ends=lambda ends, *_, **__: ends)
    yield f"error, {law}, 30 bags of 20", *_coverages(law, "error", plain, rng, draws)


def _noisy(rng: np.random.Generator, draws: int) -> tuple[str, str]:
    """Noise taken for normal, and for what it is."""
    world, hits = LAWS["50 bags of 5, noise 8.0"].world, []
    for _ in range(draws):
        table = world.draw(rng, np.full(50, 5), noise=8.0)
        residuals = (table.bag_mean(table.hard) - table.proportions)[:, None]
        data = residuals, table.sizes, table.noise
        laws = ResidualMoments(noise_kurtosis=0.0), ResidualMoments()
        both = [risk.risk_from_residuals(*data, law=law) for law in laws]
        hits.append([e.low <= 0.1 <= e.high for e in both])
    normal, laplace = np.array(hits).T
    return _percent(normal), _percent(laplace)


def winners_curse(rng: np.random.Generator, draws: int) -> Iterator[Row]:
    """Item 8: `best_score_` of a search among ten models alike, and the honest way; 30 bags of 20.

    The middle column is the error that the search claims, the last one that of `cross_fit_risk`.
    """
    pipeline = make_pipeline(Nystroem(n_components=10), BagRidgeClassifier())
    grid = {"nystroem__random_state": list(range(10))}
    search = GridSearchCV(pipeline, grid, cv=BagKFold(3), scoring=bag_scorer("error"))
    found = np.array([_searched(search, rng) for _ in range(max(draws // 10, 2))])
    claimed, honest, true = found.T
    yield f"error of the winner, truly {_mean(true)}", _mean(claimed), _mean(honest)


def _searched(search: GridSearchCV, rng: np.random.Generator) -> tuple[float, float, float]:
    X, labels = _quadratic(rng, 600)
    ids = np.repeat(np.arange(30), 20)
    y = BagTarget(ids, labels.reshape(30, 20).mean(axis=1)[ids])
    honest = cross_fit_risk(search, X, y).value
    fresh, truth = _quadratic(rng, 4000)
    return -search.fit(X, y).best_score_, honest, float(np.mean(search.predict(fresh) != truth))


def _quadratic(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1).astype(int)


def _coverages(
    law: str, metric: str, before: object, rng: np.random.Generator, draws: int
) -> tuple[str, str]:
    """Coverage on the same data sets, with a piece taken out and as it is."""
    seed, texts = int(rng.integers(2**32)), []
    for context in (before, nullcontext()):
        draw, own, hits = draw_of(LAWS[law]), np.random.default_rng(seed), []
        with context, np.errstate(all="ignore"):  # type: ignore[attr-defined]
            for _ in range(draws):
                found, truth = draw(own)
                hits.append(found[metric].low - 1e-9 <= truth[metric] <= found[metric].high + 1e-9)
        texts.append(_percent(np.array(hits)))
    return texts[0], texts[1]


def _percent(hits: np.ndarray) -> str:
    return f"{100 * np.mean(hits):.1f} %"


def _mean(values: np.ndarray) -> str:
    return f"{100 * values.mean():.1f} ± {100 * values.std(ddof=1) / len(values) ** 0.5:.1f} %"


ITEMS = {f.__name__: f for f in (certificates, rounding, log_loss, checks, others, winners_curse)}


def main() -> None:
    """Print one line a number; write the page if all were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", choices=["", *ITEMS])
    options = parser.parse_args()
    lines = ["# Before and after", ""]
    lines += [f"`python benchmarks/audit.py --draws {options.draws}`, seed {options.seed}."]
    warnings.simplefilter("ignore")
    for name, item in ITEMS.items():
        if options.only not in ("", name):
            continue
        lines += ["", str(item.__doc__), "", "| number | before | after |", "|---|---|---|"]
        for row in item(numpy_generator("audit", options.seed, name), options.draws):
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    if not options.only:
        PAGE.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
