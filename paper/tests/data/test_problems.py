"""Problems come from a folder, the environment, the cache or a download, and nowhere else."""

import sys

import numpy as np
import pytest
from paper.tests.support.small_files import CIFAR_NAMES, cifar_arrays, write_cifar, write_mnist

from unbag_paper.data import PROBLEMS, SOURCES, load_problem
from unbag_paper.data import sources as sources_module
from unbag_paper.errors import DatasetError, MissingDataError


@pytest.fixture(autouse=True)
def nothing_but_an_empty_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("UNBAG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw", "."])
def test_mnist_in_the_usual_layouts(tmp_path, folder, zipped):
    write_mnist(tmp_path / folder, zipped=zipped)
    data = load_problem("mnist", folder=tmp_path)
    assert data.X_train.shape == (600, 1, 28, 28)
    assert data.X_train.dtype == np.uint8
    even = data.X_test.mean(axis=(1, 2, 3)) > 100
    np.testing.assert_array_equal(data.y_test, even)


@pytest.mark.parametrize(
    ("folder", "python"), [("cifar-10-batches-bin", 0), ("cifar-10-batches-py", 1)]
)
def test_cifar_in_both_formats(tmp_path, folder, python):
    write_cifar(tmp_path / folder, python=python)
    data = load_problem("cifar", folder=tmp_path)
    assert data.X_train.shape == (20, 3, 32, 32)
    classes = np.concatenate([cifar_arrays(4, seed)[1] for seed in range(len(CIFAR_NAMES))])
    animals = [c in {2, 3, 4, 5, 6, 7} for c in classes]
    np.testing.assert_array_equal(np.concatenate([data.y_train, data.y_test]), animals)


def test_both_formats_of_cifar_give_the_same_data(tmp_path):
    for folder, python in (("binary", False), ("python", True)):
        name = "cifar-10-batches-py" if python else "cifar-10-batches-bin"
        write_cifar(tmp_path / folder / name, python=python)
    prints = {load_problem("cifar", folder=tmp_path / f).fingerprint for f in ("binary", "python")}
    assert len(prints) == 1


def test_the_environment_variable_names_a_folder(tmp_path, monkeypatch):
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("UNBAG_DATA", str(tmp_path))
    assert len(load_problem("mnist").y_train) == 600


def test_fashion_mnist_never_takes_the_files_of_mnist(tmp_path):
    write_mnist(tmp_path / "mnist")
    with pytest.raises(MissingDataError, match="Fashion-MNIST"):
        load_problem("fashion", folder=tmp_path)
    write_mnist(tmp_path / "fashion-mnist", seed=1)
    assert load_problem("fashion", folder=tmp_path).name == "fashion"


@pytest.mark.parametrize("name", [n for n, p in PROBLEMS.items() if p.source in SOURCES])
def test_a_missing_file_names_both_ways_out(tmp_path, name):
    with pytest.raises(MissingDataError) as caught:
        load_problem(name, folder=tmp_path)
    for way in ("downloaded", "--data", "UNBAG_DATA", "http", str(tmp_path)):
        assert way in str(caught.value)


def test_without_pooch_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sources_module, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDataError, match=r"unbag\[data\]"):
        load_problem("mnist")


def test_a_download_goes_into_the_cache_and_is_made_once(tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch")
    fetched = []

    def retrieve(url, *, known_hash, fname, path, processor):
        fetched.append((url, known_hash))
        write_mnist(path)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    for _ in range(2):
        assert len(load_problem("mnist").y_train) == 600
    assert len(fetched) == 4
    assert all(known.startswith("md5:") and len(known) == 36 for _, known in fetched)
    assert (tmp_path / "cache" / "unbag" / "mnist").is_dir()


def test_a_failed_download_says_why_and_what_else_to_do(monkeypatch):
    pooch = pytest.importorskip("pooch")

    def retrieve(*args, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(MissingDataError, match=r"no route to host.*--data") as caught:
        load_problem("cifar")
    assert "install" not in str(caught.value)


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    write_mnist(tmp_path / "mnist", n_train=600)
    write_mnist(tmp_path / "other", n_train=500)
    name = "train-labels-idx1-ubyte.gz"
    (tmp_path / "mnist" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(DatasetError, match="do not belong together"):
        load_problem("mnist", folder=tmp_path)


def test_a_fingerprint_changes_with_one_pixel(tmp_path):
    write_mnist(tmp_path / "mnist")
    data, other = (load_problem("mnist", folder=tmp_path) for _ in range(2))
    assert data.fingerprint == other.fingerprint
    changed = load_problem("mnist", folder=tmp_path)
    changed.X_train[0, 0, 0, 0] ^= 1
    assert changed.fingerprint != data.fingerprint


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="mnist"):
        load_problem("imagenet")
