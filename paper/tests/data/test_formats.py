"""Every format is read exactly, and a broken or hostile file is refused by name."""

import os
import pickle

import numpy as np
import pytest
from paper.tests.support.small_files import (
    CIFAR_NAMES,
    cifar_arrays,
    idx_bytes,
    python_2_batch,
    python_3_batch,
    write_cifar,
    write_idx,
)
from PIL import Image

from unbag_paper.data.formats import (
    read_arrays,
    read_cifar_binary,
    read_cifar_python,
    read_idx,
    read_mosaic,
)
from unbag_paper.data.sources import SOURCES
from unbag_paper.errors import DatasetError


@pytest.mark.parametrize("zipped", [False, True])
def test_idx_is_read_plain_and_gzipped(tmp_path, rng, zipped):
    images, labels = rng.integers(256, size=(5, 4, 3)), rng.integers(10, size=5)
    write_idx(tmp_path, images, labels, part="train", zipped=zipped)
    ending = ".gz" if zipped else ""
    np.testing.assert_array_equal(read_idx(tmp_path / f"train-images-idx3-ubyte{ending}"), images)
    np.testing.assert_array_equal(read_idx(tmp_path / f"train-labels-idx1-ubyte{ending}"), labels)


@pytest.mark.parametrize(
    "damage",
    [lambda raw: raw[:-1], lambda raw: raw + b"x", lambda raw: b"\x01" + raw, lambda _: b""],
)
def test_a_damaged_idx_file_is_refused(tmp_path, damage):
    path = tmp_path / "images"
    path.write_bytes(damage(idx_bytes(np.zeros((2, 3)))))
    with pytest.raises(DatasetError, match="images"):
        read_idx(path)


def test_a_torn_gzip_file_is_refused(tmp_path):
    write_idx(tmp_path, np.zeros((9, 4, 4)), np.zeros(9), part="train", zipped=True)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DatasetError, match="whole gzip"):
        read_idx(path)


def test_cifar_binary_batches(tmp_path):
    write_cifar(tmp_path, python=False, n=4)
    images, labels = read_cifar_binary(tmp_path / "data_batch_1.bin")
    wanted_images, wanted_labels = cifar_arrays(4, 0)
    np.testing.assert_array_equal(images, wanted_images)
    np.testing.assert_array_equal(labels, wanted_labels)


def test_a_cut_binary_batch_is_refused(tmp_path):
    write_cifar(tmp_path, python=False)
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="records"):
        read_cifar_binary(path)


@pytest.mark.parametrize("write", [python_2_batch, python_3_batch])
def test_cifar_python_batches(tmp_path, write):
    wanted_images, wanted_labels = cifar_arrays(3, 0)
    path = tmp_path / "data_batch_1"
    path.write_bytes(write(wanted_images, wanted_labels))
    images, labels = read_cifar_python(path)
    np.testing.assert_array_equal(images, wanted_images)
    np.testing.assert_array_equal(labels, wanted_labels)


class _Hostile:
    def __init__(self, call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("function", [os.mkdir, eval, np.load, np.fromfile, getattr])
def test_a_pickle_that_would_call_something_else_is_refused(tmp_path, function):
    made = tmp_path / "made"
    arguments = (f"__import__('os').mkdir({str(made)!r})",) if function is eval else (str(made),)
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({b"data": _Hostile((function, arguments))}, protocol=3))
    with pytest.raises(DatasetError, match="not read"):
        read_cifar_python(path)
    assert not made.exists()


def test_the_hostile_pickle_does_harm_in_a_reader_that_allows_everything(tmp_path):
    made = tmp_path / "made"
    pickle.loads(pickle.dumps(_Hostile((os.mkdir, (str(made),)))))  # noqa: S301
    assert made.exists()


@pytest.mark.parametrize(
    "raw",
    [b"", b"not a pickle", pickle.dumps([1]), pickle.dumps({b"data": 1}), b"\x80\x02}("],
)
def test_a_pickle_of_something_else_is_refused(tmp_path, raw):
    path = tmp_path / "data_batch_1"
    path.write_bytes(raw)
    with pytest.raises(DatasetError, match="data_batch_1"):
        read_cifar_python(path)


def write_mosaic(folder, name, images, labels):
    picture = images.reshape(2, 2, 3, 32, 32).transpose(0, 3, 1, 4, 2).reshape(64, 64, 3)
    Image.fromarray(picture).save(folder / f"{name}.webp", lossless=True)
    np.save(folder / f"{name}.npy", labels.astype(np.uint8))


def test_mosaics_and_arrays_are_read_as_the_batches_are(tmp_path):
    mosaics, arrays = tmp_path / "m" / "cifar-10-mosaics", tmp_path / "a" / "cifar-10"
    for folder in (mosaics, arrays):
        folder.mkdir(parents=True)
    batches = [cifar_arrays(4, seed) for seed in range(6)]
    for name, batch in zip(CIFAR_NAMES, batches, strict=True):
        write_mosaic(mosaics, name, *batch)
    images, labels = (np.concatenate(part) for part in zip(*batches[:5], strict=True))
    np.savez(arrays / "train.npz", images=images, labels=labels)
    np.savez(arrays / "test.npz", images=batches[5][0], labels=batches[5][1])
    for folder in (tmp_path / "m", tmp_path / "a"):
        (found, found_labels), (test, _) = SOURCES["CIFAR-10"].load(folder)
        np.testing.assert_array_equal(found, images)
        np.testing.assert_array_equal(found_labels, labels)
        np.testing.assert_array_equal(test, batches[5][0])


def test_damaged_pictures_and_arrays_are_refused(tmp_path):
    write_mosaic(tmp_path, "x", *cifar_arrays(4, 0))
    np.save(tmp_path / "x.npy", np.zeros(9, dtype=np.uint8))
    with pytest.raises(DatasetError, match="4 images, but 9 labels"):
        read_mosaic(tmp_path / "x.webp")
    (tmp_path / "x.webp").write_bytes(b"RIFF")
    with pytest.raises(DatasetError, match="not a whole picture"):
        read_mosaic(tmp_path / "x.webp")
    np.savez(tmp_path / "y.npz", images=np.zeros((2, 3)), labels=np.zeros(2))
    with pytest.raises(DatasetError, match="images must be bytes"):
        read_arrays(tmp_path / "y.npz")
    np.savez(tmp_path / "y.npz", pictures=np.zeros(2))
    with pytest.raises(DatasetError, match="must hold 'images'"):
        read_arrays(tmp_path / "y.npz")
