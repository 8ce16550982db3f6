"""Pack CIFAR-10 into lossless WebP mosaics, one a batch, which the loader reads.

python paper/tools/pack_cifar.py FOLDER_WITH_BATCHES DESTINATION
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from unbag_paper.data.formats import read_cifar_binary, read_mosaic

TILES_A_ROW = 100


def pack(batch: Path, target: Path) -> None:
    """Write the pictures and labels of a binary batch, and check that they are read back."""
    images, labels = read_cifar_binary(batch)
    n_rows = -(-len(images) // TILES_A_ROW)
    tiles = np.zeros((n_rows * TILES_A_ROW, 3, 32, 32), dtype=np.uint8)
    tiles[: len(images)] = images
    rows = tiles.reshape(n_rows, TILES_A_ROW, 3, 32, 32).transpose(0, 3, 1, 4, 2)
    pixels = rows.reshape(n_rows * 32, TILES_A_ROW * 32, 3)
    Image.fromarray(pixels).save(target, lossless=True, quality=50, method=4)
    np.save(target.with_suffix(".npy"), labels.astype(np.uint8))
    again, labels_again = read_mosaic(target)
    assert (again == images).all() and (labels_again == labels).all()
    print(f"{target}: {target.stat().st_size / 2**20:.1f} MiB")


def main(source: Path, destination: Path) -> None:
    """Pack every batch of a folder."""
    destination.mkdir(parents=True, exist_ok=True)
    for batch in sorted(source.glob("*.bin")):
        pack(batch, destination / f"{batch.stem}.webp")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
