"""A classifier of images from bags: a start without labels, propagation, then consistency."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from unbag.arguments import check_device, check_whole
from unbag.arrays import Array, Arrays
from unbag.bags import Bags
from unbag.bags.tasks import refuse_ranges
from unbag.errors import BagDataError
from unbag.estimators.base import BagEstimator
from unbag.estimators.image_start import start_posteriors
from unbag.estimators.instances import ARRAYS
from unbag.estimators.saving import ModelFolderError
from unbag.images import (
    ConsistencySettings,
    ContrastiveSettings,
    ImageBags,
    class_probabilities,
    contrastive_start,
    image_features,
    looks_alike_mirrored,
    pixel_components,
    small_net,
)
from unbag.images.consistency import fine_tune
from unbag.models import get_model
from unbag.randomness import derive_seed, draw_seed
from unbag.training.batches import all_bags

Auto = Literal["auto"]
SMALL = "small"
START_EPOCHS, EPOCHS_ON_GPU, FEWEST_EPOCHS, FEWEST_STEPS = 260, 100, 20, 600
BATCHES_AN_EPOCH, BATCH_SIZES = 32, (128, 1024)
LEARNING_RATE = 0.3  # in batches of 1024 images; elsewhere it goes with the root of the batch


@dataclass(eq=False, repr=False, kw_only=True)
class BagImageClassifier(BagEstimator):
    """Learn to classify single images from the class proportions of bags of images.

    No stage sees a label of an image. First, features: principal components of the pixels and, by
    default on a GPU, those of a net trained contrastively. Second, a ridge regression of
    proportions on the bags' mean features gives first guesses; near images and the counts of whole
    bags make them agree. Held-out bags choose the features. Third, a net learns these guesses and
    the bags' proportions, and then its own posteriors, which are tilted to the counts of whole
    bags.

    Parameters
    ----------
    model : str or function
        A net with a method `features` and a linear `head`, such as "resnet18", "wrn16_2" or
        "small". "auto" is "resnet18" on a GPU, and on a CPU "small", which takes minutes.
    start_epochs : int or "auto"
        Passes over the images of the contrastive start; "auto" is 260 on a GPU and 0 on a CPU,
        where the components of pixels are all features.
    max_epochs : int or "auto"
        Passes over the bags of the third stage; "auto" is 100 on a GPU. On a CPU it is as many as
        make 600 steps, at least 20 and at most 100.
    n_nets : int
        Nets that teach each other in the third stage; two confirm fewer of their own mistakes.
    n_components : int or "auto"
        Principal components of the features that the ridge regression of stage two sees.
    flip : bool or "auto"
        Whether an image may be mirrored: yes for photographs, no for digits. "auto" mirrors if the
        mean image is all but symmetric.
    images_per_batch : int or "auto"
        Of both trainings; whole bags in the third stage. "auto" is a 32nd of the images, rounded
        down to a power of two between 128 and 1024.
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
    start_ : array of shape (n_instances, n_classes)
        Posteriors after the second stage; a loaded model has none.
    flip_ : bool
        Whether images were mirrored. Then predictions are averaged with those of the mirror image.
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
    >>> clf = BagImageClassifier(max_epochs=1, random_state=0)
    >>> clf.fit(X, y, bags=bags).predict(X).shape
    (64,)
    """

    _checks = ARRAYS

    model: Any = "auto"
    start_epochs: int | Auto = "auto"
    max_epochs: int | Auto = "auto"
    n_nets: int = 1
    n_components: int | Auto = "auto"
    flip: bool | Auto = "auto"
    images_per_batch: int | Auto = "auto"
    device: str = "cpu"
    random_state: Any = None
    progress: bool = False

    def _fit(self, data: Bags) -> Self:
        self._check_parameters()
        refuse_ranges(data, type(self).__name__)
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
        self.flip_ = looks_alike_mirrored(bagged.images) if self.flip == "auto" else self.flip
        options: dict[str, Any] = {"flip": self.flip_, "seed": seed, "progress": self.progress}
        start = self._start(nets, bagged, options)
        self.start_ = np.full((len(images), n_classes), np.nan)
        self.start_[data.rows] = start.cpu().numpy()
        batch_size = self._batch_size(len(bagged.images))
        settings = ConsistencySettings(
            n_epochs=self._n_epochs(len(bagged.images) // batch_size),
            images_per_batch=batch_size,
            learning_rate=LEARNING_RATE * math.sqrt(batch_size / BATCH_SIZES[1]),
        )
        self.nets_ = fine_tune(nets, bagged, start=start, settings=settings, **options)
        return self

    def _check_parameters(self) -> None:
        check_device(self.device)
        check_whole("n_nets", self.n_nets)
        for name, least in (("start_epochs", 0), ("max_epochs", 1), ("images_per_batch", 1)):
            if getattr(self, name) != "auto":
                check_whole(name, getattr(self, name), least=least)

    def _on_gpu(self) -> bool:
        return torch.device(self.device).type == "cuda"

    def _n_epochs(self, n_batches: int) -> int:
        if self.max_epochs != "auto":
            return self.max_epochs
        wanted = math.ceil(FEWEST_STEPS / max(1, n_batches))
        return EPOCHS_ON_GPU if self._on_gpu() else min(max(FEWEST_EPOCHS, wanted), EPOCHS_ON_GPU)

    def _batch_size(self, n_images: int) -> int:
        if self.images_per_batch != "auto":
            return self.images_per_batch
        fewest, most = BATCH_SIZES
        return min(max(fewest, 2 ** int(math.log2(n_images / BATCHES_AN_EPOCH))), most)

    def _images(self, X: Any) -> Tensor:
        if X.ndim != 4:
            raise BagDataError(
                f"X must be images of shape (n, channels, height, width), got {X.shape}. Grey "
                "images without an axis of channels are X[:, None]."
            )
        if X.shape[-1] in (1, 3, 4) and X.shape[1] not in (1, 2, 3, 4):
            raise BagDataError(
                f"X must be images of shape (n, channels, height, width), got {X.shape}, with the "
                "channels last. Pass X.transpose(0, 3, 1, 2)."
            )
        images = torch.as_tensor(np.ascontiguousarray(X))
        if images.dtype != torch.uint8:
            images = images.float()
            if not (images.min() >= 0 and images.max() <= 1):
                raise BagDataError(
                    "X must hold bytes or floats in [0, 1], got values from "
                    f"{images.min():.3g} to {images.max():.3g}. Whole numbers up to 255 are "
                    "X.astype(np.uint8)."
                )
        return images.to(self.device)

    def _net(self, n_classes: int, seed: int) -> torch.nn.Module:
        name = self._model_name()
        build: Any = small_net if name == SMALL else get_model(name or self.model)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = build(self.input_shape_, n_classes)
        if not hasattr(net, "features") or not hasattr(net, "head"):
            raise ValueError(
                f"model must build a net with `features` and `head`, such as 'resnet18', "
                f"got {self.model!r}."
            )
        return net.to(self.device).to(memory_format=torch.channels_last)

    def _model_name(self) -> str | None:
        """The net by name, unless it is one of the user's own."""
        if self.model == "auto":
            return "resnet18" if self._on_gpu() else SMALL
        return self.model if isinstance(self.model, str) else None

    def _start(
        self, nets: list[torch.nn.Module], data: ImageBags, options: dict[str, Any]
    ) -> Tensor:
        """Stages one and two: features by images alone, then posteriors of every image."""
        candidates = [pixel_components(data.images)]
        n_epochs = self.start_epochs
        if n_epochs == "auto":
            n_epochs = START_EPOCHS if self._on_gpu() else 0
        if n_epochs:
            first: Any = nets[0]
            settings = ContrastiveSettings(
                n_epochs=n_epochs, images_per_batch=self._batch_size(len(data.images))
            )
            contrastive_start(first, data.images, settings=settings, **options)
            for net in nets[1:]:
                net.load_state_dict(first.state_dict())
            candidates.insert(0, image_features(first, data.images))
        return start_posteriors(candidates, data.bags, self.n_components, seed=options["seed"])

    def _scores(self, X: Array) -> Array:
        if X.shape[1:] != self.input_shape_:
            raise BagDataError(
                f"X must be images of shape {self.input_shape_}, as in fit, got {X.shape[1:]}."
            )
        images = self._images(X)
        found = [class_probabilities(net, images, mirrored=self.flip_) for net in self.nets_]
        scores = torch.stack(found).mean(dim=0).double().cpu().numpy()
        return scores[:, 1] if self.task_ == "binary" else scores

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        tensors = {
            f"{number}.{name}": value.cpu().numpy()
            for number, net in enumerate(self.nets_)
            for name, value in net.state_dict().items()
        }
        about = {"input_shape": list(self.input_shape_), "net": self._model_name()}
        return about | {"flip": bool(self.flip_)}, tensors

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        if description["net"] is None:
            raise ModelFolderError(f"{folder} holds a net of your own, which cannot be read back.")
        self.device, self.model = "cpu", description["net"]
        self.input_shape_, self.flip_ = tuple(description["input_shape"]), description["flip"]
        self.nets_ = []
        for number in range(self.n_nets):
            net = self._net(len(self.classes_), 0)
            own = {n.partition(".")[2]: t for n, t in tensors.items() if n.startswith(f"{number}.")}
            net.load_state_dict({name: torch.as_tensor(value) for name, value in own.items()})
            self.nets_.append(net.eval())
