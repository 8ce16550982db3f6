"""The recipe in CONTRIBUTING.md runs as printed."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch
from tests.support import laws

from unbag.bags import make_bags
from unbag.training import Settings, Trial, train

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


@pytest.fixture
def rule(tmp_path, monkeypatch):
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "weighted_square.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("weighted_square")
    yield module.WeightedSquare()
    del sys.modules["weighted_square"]


def test_the_rule_of_the_recipe_obeys_the_contract(rule, generator):
    assert laws.change_under_reordering(rule, generator) < 1e-9
    assert laws.gap_to_supervised_loss(rule, generator) < 1e-9
    assert laws.lowest_loss(rule, generator) >= 0
    assert laws.exact_bias(rule) > 1e-3
    logits, _, batch = laws.random_problem(generator, [1, 4, 2, 5])
    assert torch.autograd.gradcheck(lambda x: rule(x, batch), logits.requires_grad_())


def test_the_rule_of_the_recipe_trains(rule, rng):
    X = rng.normal(size=(100, 2)).astype("float32")
    bags = make_bags(X, X[:, 0] > 0, bag_size=5, seed=0)
    [result] = train([Trial(rule)], bags, settings=Settings(max_epochs=2))
    assert result.trial.rule.name == "weighted_square"


def test_every_reference_in_a_docstring_is_in_the_bibliography():
    root = Path(__file__).parents[1]
    known = set(re.findall(r"@\w+\{(\w+),", (root / "docs" / "references.bib").read_text()))
    cited = re.compile(r"\b[a-z]+(?:19|20)\d\d[a-z]+\b")
    for path in (root / "src").rglob("*.py"):
        missing = set(cited.findall(path.read_text())) - known
        assert not missing, f"{path.name} cites {missing}"
