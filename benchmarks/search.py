"""What a search of 100 configurations costs beside a single fit, and what it finds.

    python benchmarks/search.py [--seed 0]

Digits, odd against even, 1347 training instances in bags of 10, pixels / 16: 5 rules x 20 learning
rates from 1e-5 to 0.1, at most 81 epochs, halved by thirds. The single fit is one configuration
trained for 81 epochs with the same monitor on the same bags. Prints the ratio of the times, the
epochs trained, the error stated from bags that chose nothing, and that on the test set.
"""

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from unbag import make_bags, search_trials
from unbag.bags import split_bags
from unbag.rules import get_rule
from unbag.training import Settings, Trial, held_out_risk, train
from unbag.training.scoring import scores_of

RULES = ("debiased_square", "proportion_square", "proportion_log", "easy_square", "easy_log")
RATES = np.geomspace(1e-5, 0.1, 20)
EPOCHS = 81


def single_fit(bags, seed):
    """Seconds of one configuration."""
    kept, aside = split_bags(bags, share=0.4, seed=seed)
    settings = Settings(max_epochs=EPOCHS)
    begun = time.perf_counter()
    train([Trial(seed=seed)], kept, monitors=[held_out_risk(aside)], settings=settings)
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    X, digit = load_digits(return_X_y=True)
    X = (X / 16).astype("float32")
    X_train, X_test, y_train, y_test = train_test_split(X, digit % 2 == 0, random_state=0)
    bags = make_bags(X_train, y_train, bag_size=10, seed=seed, remainder="drop")
    trials = [
        Trial(rule=get_rule(rule), learning_rate=float(rate), seed=seed)
        for rule in RULES
        for rate in RATES
    ]
    before = single_fit(bags, seed)
    begun = time.perf_counter()
    found = search_trials(trials, bags, settings=Settings(max_epochs=EPOCHS), seed=seed)
    seconds = time.perf_counter() - begun
    one = (before + single_fit(bags, seed)) / 2
    error = np.mean((scores_of(found.best, X_test) > 0.5) != y_test)
    chosen = found.chosen.trial
    print(
        f"100 configurations: {seconds:.1f} s, {seconds / one:.1f} times a fit ({one:.2f} s);"
        f" {found.trial_epochs} epochs, as many as {found.trial_epochs / EPOCHS:.1f} full trainings"
    )
    where = f"{chosen.rule.name} at {chosen.learning_rate:.2g}, epoch {found.chosen.best_epoch}"
    print(f"chosen: {where}; stated error {found.risk}; on the test set {100 * error:.1f} %")


if __name__ == "__main__":
    main()
