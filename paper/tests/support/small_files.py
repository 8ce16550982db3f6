"""Small data sets written in the real formats."""

import gzip
import pickle
import struct

import numpy as np


def idx_bytes(array):
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_idx(folder, images, labels, *, part, zipped):
    folder.mkdir(parents=True, exist_ok=True)
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        raw = idx_bytes(array)
        name = f"{part}-{kind}-ubyte" + (".gz" if zipped else "")
        (folder / name).write_bytes(gzip.compress(raw) if zipped else raw)


def write_mnist(folder, *, n_train=600, n_test=200, zipped=True, seed=0, size=28):
    """Digits whose brightness shows whether they are even, so that they can be learned."""
    rng = np.random.default_rng(seed)
    for part, n in (("train", n_train), ("t10k", n_test)):
        labels = rng.integers(10, size=n)
        images = (
            rng.integers(60, size=(n, size, size)) + np.where(labels % 2, 0, 150)[:, None, None]
        )
        write_idx(folder, images, labels, part=part, zipped=zipped)
    return folder


def cifar_arrays(n, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(256, size=(n, 3, 32, 32), dtype=np.uint8), rng.integers(10, size=n)


CIFAR_NAMES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


def write_cifar(folder, *, python, n=4):
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(CIFAR_NAMES):
        images, labels = cifar_arrays(n, seed)
        if python:
            (folder / name).write_bytes(python_2_batch(images, labels))
        else:
            records = np.concatenate([labels[:, None], images.reshape(n, -1)], axis=1)
            (folder / f"{name}.bin").write_bytes(records.astype(np.uint8).tobytes())
    return folder


def python_3_batch(images, labels):
    batch = {b"data": images.reshape(len(images), -1), b"labels": labels.tolist()}
    return pickle.dumps(batch, protocol=3)


def python_2_batch(images, labels):
    """The opcodes that Python 2 wrote for the official batches, spelled out."""

    def string(text):
        return b"U" + bytes([len(text)]) + text

    def number(value):
        return b"J" + struct.pack("<i", value)

    data = images.reshape(len(images), -1)
    raw = data.tobytes()
    dtype = b"cnumpy\ndtype\n" + string(b"u1") + number(0) + number(1) + b"\x87R"
    state = number(3) + string(b"|") + b"NNN" + number(-1) + number(-1) + number(0)
    dtype += b"(" + state + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    array += number(0) + b"\x85" + string(b"b") + b"\x87R"
    shape = number(data.shape[0]) + number(data.shape[1]) + b"\x86"
    array += b"(" + number(1) + shape + dtype + b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"
    numbers = b"](" + b"".join(number(int(label)) for label in labels) + b"e"
    entries = string(b"data") + array + string(b"labels") + numbers
    entries += string(b"batch_label") + string(b"training batch 1 of 5")
    return b"\x80\x02}(" + entries + b"u."
