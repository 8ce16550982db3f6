"""A folder in which the code of a page runs."""

import pytest

from unbag.tables import FitOptions

EPOCHS = 5  # of fits that do not set them


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to an empty folder, and train with few epochs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(FitOptions, "epochs_on", lambda options, n_rows: options.epochs or EPOCHS)
