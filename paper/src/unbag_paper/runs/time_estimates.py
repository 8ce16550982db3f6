"""Estimated training times: first guesses by model and device, replaced by measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from unbag_paper.runs.rows import Row
from unbag_paper.runs.trial_spec import RIDGE, TrialSpec, teachers_of

__all__ = ["TimeEstimates", "Workload"]

# Milliseconds for a step on 1000 MNIST images, for each trial of a large stack, compilation and
# measures in proportion: on one H200 and on two cores of a server. A bigger image costs more.
_FIRST_GUESS = {
    "cuda": {
        "linear": 0.01,
        "mlp100": 0.02,
        "mlp1000": 0.05,
        "cnn_small": 0.7,
        "cnn_large": 1.2,
        "cnn_padded": 1.5,
        "cnn_small_plain": 0.7,
        "cnn_large_plain": 1.2,
    },
    "cpu": {
        "linear": 0.4,
        "mlp100": 2.5,
        "mlp1000": 25.0,
        "cnn_small": 300.0,
        "cnn_large": 1200.0,
        "cnn_padded": 1500.0,
        "cnn_small_plain": 300.0,
        "cnn_large_plain": 1200.0,
    },
}
_MNIST_PIXELS = 784
_LEAST_STEP = {"cuda": 0.3e-3, "cpu": 0.2e-3}  # seconds a step takes however small it is
_START = {"cuda": 5.0, "cpu": 0.5}  # seconds before the first step: bags, capture, compilation
_CLOSED_FORM = 10.0
_REMEMBERED = 20


@dataclass(frozen=True)
class Workload:
    """Size of a data set."""

    n_train: int
    n_pixels: int


class TimeEstimates:
    """Estimates seconds of training; learns from rows that were computed on the same device.

    Parameters
    ----------
    device : str
        Such as "cpu" or "cuda".
    device_name : str
        As rows note it.
    workloads : mapping from str to Workload
        By data set.
    """

    def __init__(self, device: str, device_name: str, workloads: Mapping[str, Workload]) -> None:
        self.kind = "cuda" if device.startswith("cuda") else "cpu"
        self.device_name, self.workloads = device_name, workloads
        self._measured: dict[tuple[object, ...], list[float]] = {}

    def learn(self, rows: Iterable[Row]) -> None:
        """Take over what the latest of these rows took."""
        for row in rows:
            known_data = row.spec.dataset in self.workloads
            alone = row.spec.rule != RIDGE and not row.spec.teacher  # nothing else took its time
            if known_data and alone and row.outcome.get("device") == self.device_name:
                seconds = row.outcome["seconds"] / self._steps(row.spec)
                for alike in _alike(row.spec):
                    known = self._measured.setdefault(alike, [])
                    known.append(seconds)
                    del known[:-_REMEMBERED]

    def trial(self, spec: TrialSpec) -> float:
        """Seconds a trial adds to a stack, without its teacher."""
        if spec.rule == RIDGE:
            return _CLOSED_FORM
        return self._steps(spec) * self._per_step(spec)

    def stack(self, specs: list[TrialSpec]) -> float:
        """Seconds a stack takes, after its teachers, each of whom is trained once."""
        return sum(self._at_once(part) for part in (teachers_of(specs), specs) if part)

    def _at_once(self, specs: list[TrialSpec]) -> float:
        least = max(self._steps(s) * _LEAST_STEP[self.kind] for s in specs)
        return _START[self.kind] + max(least, sum(self.trial(s) for s in specs))

    def _per_step(self, spec: TrialSpec) -> float:
        for alike in _alike(spec):
            if known := self._measured.get(alike):
                return median(known)
        guess = _FIRST_GUESS[self.kind].get(spec.model, 10.0) / 1000
        return guess * self.workloads[spec.dataset].n_pixels / _MNIST_PIXELS

    def _steps(self, spec: TrialSpec) -> float:
        """Steps of 1000 instances, however large the batches really are."""
        return spec.epochs * self.workloads[spec.dataset].n_train / 1000


def _alike(spec: TrialSpec) -> list[tuple[object, ...]]:
    """Trials to judge a trial by, the most alike first."""
    model = (spec.dataset, spec.model)
    return [(*model, spec.bag_size, spec.rule), (*model, spec.bag_size), model]
