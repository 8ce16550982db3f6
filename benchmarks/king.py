"""King's model of a table of two groups: a bivariate normal law cut to the unit square.

King, A Solution to the Ecological Inference Problem (1997), with the priors of R's `ei`, but for
deviations, which have lognormal ones so that none becomes zero. For comparison in `elections.py`;
not part of the library.
"""

import numpy as np
from scipy import optimize, stats

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def mass(low, high, mean, deviation):
    """Logarithm of the normal law's mass of an interval, accurate in both tails."""
    low, high = (low - mean) / deviation, (high - mean) / deviation
    flip = low > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    upper, lower = stats.norm.logcdf(high), stats.norm.logcdf(low)
    return upper + np.log1p(-np.exp(np.minimum(lower - upper, -1e-12)))


def unpack(point):
    return point[0], point[1], np.exp(point[2]), np.exp(point[3]), np.tanh(point[4])


def log_square(first, second, sd_1, sd_2, rho):
    """Logarithm of the law's mass of the unit square, by quadrature over the first share."""
    b = (NODES + 1) / 2
    inner = mass(0.0, 1.0, second + rho * sd_2 / sd_1 * (b - first), sd_2 * np.sqrt(1 - rho**2))
    outer = stats.norm.logpdf(b, first, sd_1) + inner + np.log(WEIGHTS / 2)
    return np.logaddexp.reduce(outer)


def conditional(point, x, t):
    """Law of the first share given the rate: mean, deviation and bounds; and that of the rate."""
    first, second, sd_1, sd_2, rho = unpack(point)
    mean = first * x + second * (1 - x)
    covariance = rho * sd_1 * sd_2
    variance = (sd_1 * x) ** 2 + 2 * covariance * x * (1 - x) + (sd_2 * (1 - x)) ** 2
    load = sd_1**2 * x + covariance * (1 - x)
    centre = first + load / variance * (t - mean)
    spread = np.sqrt(np.maximum(sd_1**2 - load**2 / variance, 1e-10))
    ends = np.maximum(0, (t - (1 - x)) / x), np.minimum(1, t / x)
    return centre, spread, ends, stats.norm.logpdf(t, mean, np.sqrt(variance))


def log_posterior(point, x, t):
    first, second, sd_1, sd_2, rho = unpack(point)
    centre, spread, (low, high), rate = conditional(point, x, t)
    found = np.sum(rate + mass(low, high + 1e-9, centre, spread))
    found -= len(x) * log_square(first, second, sd_1, sd_2, rho)
    outside = np.array([first, second]) - np.clip([first, second], 0, 1)
    priors = np.array([*outside / 0.5, *(point[2:4] - np.log(0.2)), point[4] / 0.5])
    return found - 0.5 * (priors**2).sum()


def hessian(function, point, step=1e-3):
    eye = step * np.eye(len(point))
    return np.array(
        [
            [
                sum(
                    s * r * function(point + s * a + r * b)
                    for s, r in ((1, 1), (1, -1), (-1, 1), (-1, -1))
                )
                / (4 * step**2)
                for b in eye
            ]
            for a in eye
        ]
    )


def king(x, t, sizes, *, n_draws=1000, seed=0):
    """Mean, deviation and 95 % interval of the first group's share, by importance sampling."""
    rng = np.random.default_rng(seed)
    people, x = sizes * x, np.clip(x, 1e-3, 1 - 1e-3)

    def cost(point):
        return -log_posterior(point, x, t) if np.abs(point[2:]).max() < 8 else 1e9

    start = np.array([t.mean(), t.mean(), np.log(0.2), np.log(0.2), 0.0])
    for _ in range(2):
        start = optimize.minimize(cost, start, method="Nelder-Mead", options={"maxiter": 4000}).x
    values, vectors = np.linalg.eigh(hessian(cost, start))
    root = vectors / np.sqrt(np.maximum(values, 1e-3))
    steps = rng.standard_t(5, size=(4 * n_draws, 5))
    points = start + steps @ root.T
    log_weights = np.array([-cost(p) for p in points]) - stats.t.logpdf(steps, 5).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    chosen = rng.choice(len(points), n_draws, p=weights / weights.sum())
    shares = []
    for point in points[chosen]:
        centre, spread, (low, high), _ = conditional(point, x, t)
        ends = (low - centre) / spread, (np.maximum(high, low + 1e-9) - centre) / spread
        drawn = stats.truncnorm.rvs(*ends, loc=centre, scale=spread, random_state=rng)
        shares.append(people @ np.clip(drawn, low, high) / people.sum())
    return np.mean(shares), np.std(shares), *np.quantile(shares, [0.025, 0.975])
