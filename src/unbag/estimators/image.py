"""A classifier of images from bags: a start without labels, propagation, then consistency."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from unbag.arguments import check_device
from unbag.arrays import Array
from unbag.bags import BagBatch, Bags
from unbag.errors import BagDataError
from unbag.estimators.base import BagEstimator
from unbag.estimators.instances import ARRAYS
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.images.consistency import ConsistencySettings, fine_tune
from unbag.images.contrastive import ContrastiveSettings, contrastive_start
from unbag.images.loop import ImageBags
from unbag.images.propagation import image_features, propagate
from unbag.models import get_model
from unbag.randomness import derive_seed, draw_seed
from unbag.training.batches import all_bags, as_inputs


@dataclass(eq=False, repr=False, kw_only=True)
class BagImageClassifier(BagEstimator):
    """Learn to classify single images from the class proportions of bags of images.

    Three stages, none of which sees a label of an image. First, a contrastive start learns
    features by images alone. Second, a ridge regression of proportions on the bags' mean features
    gives first guesses; near images and the counts of whole bags make them agree. Third, the net
    is fine-tuned by the bags' proportions and by its own posteriors, which are tilted to the
    counts of whole bags.

    Parameters
    ----------
    model : str or function
        A net with a method `features` and a linear `head`, such as "resnet18" or "wrn16_2".
    start_epochs : int
        Passes over the images of the first stage; 0 leaves the first two stages out.
    max_epochs : int
        Passes over the bags of the third stage.
    n_nets : int
        Nets that teach each other in the third stage; two confirm fewer of their own mistakes.
    n_components : int or "auto"
        Principal components of the features that the ridge regression of stage two sees.
    flip : bool
        Whether an image may be mirrored: yes for photographs, no for digits.
    images_per_batch : int
        Of both trainings; whole bags in the third stage.
    device : str
        "cpu" or "cuda".
    random_state : int, RandomState, Generator or None
        Seed of weights, batches and views.
    progress : bool
        Whether to show bars.

    Attributes
    ----------
    nets_ : list of torch.nn.Module
        Their averaged probabilities are the predictions.
    start_ : array of shape (n_instances, n_classes) or None
        Posteriors after the second stage.
    classes_ : array
        Labels that `predict` gives.

    Notes
    -----
    Images have shape (n_instances, channels, height, width), as bytes or floats in [0, 1]. Their
    classes exclude each other. A `noise_variance` is accepted, and not used.
    A model that was loaded runs on the CPU.

    References
    ----------
    chen2020simclr, sohn2020fixmatch

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(2, size=64)
    >>> X = np.clip(rng.normal(0.2 + 0.6 * labels[:, None, None, None], 0.1, (64, 1, 8, 8)), 0, 1)
    >>> bags = np.repeat(np.arange(8), 8)
    >>> y = labels.reshape(8, 8).mean(axis=1)[bags]
    >>> clf = BagImageClassifier(model="wrn16_2", start_epochs=0, max_epochs=1, random_state=0)
    >>> clf.fit(X, y, bags=bags).predict(X).shape
    (64,)
    """

    _checks = ARRAYS

    model: Any = "resnet18"
    start_epochs: int = 200
    max_epochs: int = 200
    n_nets: int = 1
    n_components: int | Literal["auto"] = "auto"
    flip: bool = True
    images_per_batch: int = 1024
    device: str = "cpu"
    random_state: Any = None
    progress: bool = False

    def _fit(self, data: Bags) -> Self:
        check_device(self.device)
        if self.task_ == "multilabel":
            raise BagDataError(
                "y must hold proportions of classes that exclude each other, got several labels "
                "that do not add up to one. Use BagClassifier for those."
            )
        seed = draw_seed(self.random_state)
        images = self._images(data.X)
        self.input_shape_ = tuple(images.shape[1:])
        rows = torch.as_tensor(data.rows, device=images.device)
        if self.task_ == "binary":
            shares = np.stack([1 - data.proportions, data.proportions], axis=1)
            data = replace(data, proportions=shares, task="multiclass")
        bagged = ImageBags(images[rows], all_bags(data, device=images.device))
        n_classes = bagged.bags.targets.shape[1]
        nets = [self._net(n_classes, derive_seed(seed, n)) for n in range(self.n_nets)]
        start, self.start_ = None, None
        if self.start_epochs:
            start = self._start(nets, bagged, seed)
            self.start_ = np.full((len(images), n_classes), np.nan)
            self.start_[data.rows] = start.cpu().numpy()
        settings = ConsistencySettings(
            n_epochs=self.max_epochs, images_per_batch=self.images_per_batch
        )
        options: dict[str, Any] = {"flip": self.flip, "seed": seed, "progress": self.progress}
        self.nets_ = fine_tune(nets, bagged, start=start, settings=settings, **options)
        return self

    def _images(self, X: Any) -> Tensor:
        if X.ndim != 4:
            raise BagDataError(
                f"X must be images of shape (n, channels, height, width), got {X.shape}."
            )
        if X.shape[-1] in (1, 3) and X.shape[1] not in (1, 3):
            raise BagDataError(
                f"X must be images of shape (n, channels, height, width), got {X.shape}, with the "
                "channels last. Pass numpy.moveaxis(X, -1, 1)."
            )
        images = torch.as_tensor(X)
        if images.is_floating_point() and not (images.min() >= 0 and images.max() <= 1):
            raise BagDataError(
                f"X must hold bytes or floats in [0, 1], got values from {images.min():.3g} to "
                f"{images.max():.3g}. Rescale the pixels."
            )
        return images.to(self.device)

    def _net(self, n_classes: int, seed: int) -> torch.nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = get_model(self.model)(self.input_shape_, n_classes)
        if not hasattr(net, "features") or not hasattr(net, "head"):
            raise ValueError(
                f"model must build a net with `features` and `head`, such as 'resnet18', "
                f"got {self.model!r}."
            )
        return net.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _start(self, nets: list[torch.nn.Module], data: ImageBags, seed: int) -> Tensor:
        """Stages one and two: features by images alone, then posteriors of every image."""
        first: Any = nets[0]
        settings = ContrastiveSettings(
            n_epochs=self.start_epochs, images_per_batch=self.images_per_batch
        )
        options: dict[str, Any] = {"flip": self.flip, "seed": seed, "progress": self.progress}
        contrastive_start(first, data.images, settings=settings, **options)
        for net in nets[1:]:
            net.load_state_dict(first.state_dict())
        return start_posteriors(image_features(first, data.images), data.bags, self.n_components)

    @torch.no_grad()
    def _scores(self, X: Array) -> Array:
        found = []
        for part in torch.as_tensor(X).split(1000):
            x = as_inputs(part).to(self.device)
            found.append(sum(net(x).softmax(dim=1) for net in self.nets_).cpu() / len(self.nets_))
        scores = torch.cat(found).double().numpy()
        return scores[:, 1] if self.task_ == "binary" else scores

    def _learned(self) -> tuple[dict[str, Any], dict[str, Array]]:
        tensors = {
            f"{number}.{name}": value.cpu().numpy()
            for number, net in enumerate(self.nets_)
            for name, value in net.state_dict().items()
        }
        return {"input_shape": list(self.input_shape_)}, tensors

    def _restore(
        self, description: dict[str, Any], tensors: dict[str, Array], folder: Path
    ) -> None:
        self.device, self.input_shape_ = "cpu", tuple(description["input_shape"])
        self.nets_ = []
        for number in range(self.n_nets):
            net = self._net(len(self.classes_), 0)
            own = {n.partition(".")[2]: t for n, t in tensors.items() if n.startswith(f"{number}.")}
            net.load_state_dict({name: torch.as_tensor(value) for name, value in own.items()})
            self.nets_.append(net.eval())


def start_posteriors(
    features: Tensor, bags: BagBatch, n_components: int | Literal["auto"] = "auto"
) -> Tensor:
    """Class probabilities by features alone: ridge on bag means, then agreement of neighbours.

    Parameters
    ----------
    features : Tensor of shape (n_instances, n_features)
        Bag by bag.
    bags : BagBatch
        Of a multiclass task.
    n_components : int or "auto"
        As for `BagRidgeClassifier`.
    """
    values, device = features.double().cpu().numpy(), features.device
    sizes = bags.bag_sizes[:, 0].long().cpu().numpy()
    shares = bags.proportions.double().cpu().numpy()
    ids: list[Any] = list(range(len(sizes)))
    data = Bags(values, np.arange(len(values)), sizes, shares, ids, None, "multiclass")
    guess = BagRidgeClassifier(n_components=n_components).fit_bags(data).predict_proba(values)
    return propagate(features, bags, torch.as_tensor(guess, dtype=torch.float32, device=device))
