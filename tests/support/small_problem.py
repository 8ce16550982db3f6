"""A problem that tests of training share, and the weights that came of it."""

import torch


def problem(rng, n=400, n_features=4):
    X = rng.normal(size=(n, n_features)).astype("float32")
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def weights_of(result):
    return torch.cat([p.flatten() for p in result.model.state_dict().values()]).double()
