"""A row names the commit it was computed by, and never that of somebody else's repository."""

import importlib.util
import shutil
import subprocess

import pytest

from unbag_paper.runs import provenance

ME = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit."""
    monkeypatch.delenv("UNBAG_COMMIT", raising=False)
    for command in (["init", "-q"], [*ME, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def commit_noted_in(folder):
    """What a copy of the package in this folder notes."""
    copy = folder / "unbag_paper" / "runs" / "provenance.py"
    copy.parent.mkdir(parents=True)
    shutil.copyfile(provenance.__file__, copy)
    module = importlib.util.module_from_spec(
        spec := importlib.util.spec_from_file_location("copied_provenance", copy)
    )
    spec.loader.exec_module(module)
    return module.provenance("cpu")["commit"]


def test_what_the_environment_says_comes_first(monkeypatch):
    provenance._commit.cache_clear()
    monkeypatch.setenv("UNBAG_COMMIT", "abc")
    assert provenance.provenance("cpu")["commit"] == "abc"
    provenance._commit.cache_clear()
    monkeypatch.delenv("UNBAG_COMMIT")
    assert provenance.provenance("cpu")["commit"] != "abc"


def test_a_checkout_names_its_commit(repository):
    command = ["git", "-C", str(repository), "rev-parse", "HEAD"]
    head = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert head.startswith(commit_noted_in(repository / "paper" / "src"))


@pytest.mark.parametrize("folder", [".venv/lib/python3.12/site-packages", "lib", "vendor/src"])
def test_an_installed_package_does_not_name_the_repository_around_it(repository, folder):
    assert commit_noted_in(repository / folder) == "unknown"
