"""Compiled code is used where it does what the plain code does, and nowhere else."""

import shutil
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from unbag import BagBatch, Bags
from unbag.models import KeyedDropout
from unbag.rules import DebiasedSquare, ProportionSquare
from unbag.training import Trial
from unbag.training.adam import StackedAdam, adam_update
from unbag_paper.compiled import EngineSettings, rule_step, train
from unbag_paper.compiled.checked import Checked, changes, values_and_gradients
from unbag_paper.compiled.settings import torch_switches
from unbag_paper.compiled.stack import compiled_update, fast_net
from unbag_paper.errors import CompilationWarning


def used(checked, *inputs):
    """What was returned, and whether there was a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = checked(*inputs)
    return value, [w.category for w in caught] == [CompilationWarning]


def test_a_compiled_function_that_agrees_is_used():
    checked = Checked("thing", lambda x: 2 * x, lambda x: x + x + 1e-6, values_and_gradients())
    value, warned = used(checked, torch.ones(3))
    assert not warned
    assert (value > 2).all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: 3 * x,
        lambda x: x * float("nan"),
        lambda x: torch.zeros_like(x),
        lambda x: (2 * x).detach() + 0 * x,  # the gradient alone
        lambda x: (2 * x).detach(),
        lambda x: x / 0 if len(x) == 0 else [][0],  # fails
    ],
)
def test_one_that_does_not_steps_aside_with_a_warning(wrong):
    checked = Checked("thing", lambda x: 2 * x, wrong, values_and_gradients())
    x = torch.ones(3, requires_grad=True)
    value, warned = used(checked, x)
    assert warned
    assert torch.equal(value, 2 * x)
    assert torch.equal(torch.autograd.grad(value.sum(), x)[0], torch.full((3,), 2.0))
    assert not used(checked, x)[1]  # said once


def test_every_form_of_inputs_is_checked_and_each_once():
    calls = []

    def plain(x):
        calls.append(tuple(x.shape))
        return 2 * x

    checked = Checked("thing", plain, lambda x: x + x if len(x) < 5 else x, values_and_gradients())
    for size in (3, 4, 3, 4):
        assert not used(checked, torch.ones(size))[1]
    assert calls == [(3,), (4,)]
    with torch.no_grad():
        used(checked, torch.ones(3))
    assert calls == [(3,), (4,), (3,)]
    value, warned = used(checked, torch.ones(6))
    assert warned
    assert (value == 2).all()


def test_dtypes_are_forms_too_and_one_that_disagrees_leaves_the_others_compiled():
    def wrong_in_double(x):
        return x if x.dtype == torch.float64 else x + x + 1e-6

    checked = Checked("thing", lambda x: 2 * x, wrong_in_double, values_and_gradients())
    assert not used(checked, torch.ones(3))[1]
    assert used(checked, torch.ones(3, dtype=torch.float64))[1]
    assert (checked(torch.ones(3)) > 2).all()


def test_a_gradient_that_is_zero_but_for_rounding_is_no_disagreement():
    a, b = torch.ones(5, requires_grad=True), torch.ones(5, requires_grad=True)
    checked = Checked(
        "thing",
        lambda x: x * a + 1e-9 * b,
        lambda x: x * a - 1e-9 * b,
        values_and_gradients([a, b]),
    )
    assert not used(checked, torch.ones(5))[1]


def test_a_lost_parameter_is_a_disagreement():
    a, b = torch.ones(5, requires_grad=True), torch.ones(5, requires_grad=True)
    checked = Checked(
        "thing", lambda x: x * a * b, lambda x: x * a * b.detach(), values_and_gradients([a, b])
    )
    assert used(checked, torch.ones(5))[1]


def test_what_is_missing_in_both_is_agreed_upon():
    both = torch.tensor([torch.nan, 1.0])
    assert not used(
        Checked("thing", lambda x: x * both, lambda x: both * x, values_and_gradients()), both
    )[1]


def test_a_change_in_place_is_compared_by_how_much_it_changes():
    state = torch.full((3,), 1e6)

    def plain(x):
        x.add_(1)

    def wrong(x):
        x.add_(3)  # of a million, a tiny share

    _, warned = used(Checked("thing", plain, wrong, changes), state)
    assert warned
    assert (state == 1e6 + 1).all()


def test_a_miscompiled_net_is_trained_uncompiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model, **options: lambda x: 0 * model(x))
    net = nn.Linear(2, 1)
    fast, x = fast_net(net, compiled=True), torch.ones(4, 2)
    with pytest.warns(CompilationWarning, match=r"compiles the net to .* runs uncompiled"):
        logits = fast(x)
    assert torch.equal(logits, net(x))


def test_a_net_that_holds_moments_is_called_once(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model, **options: model)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    fast_net(net, compiled=True)(torch.rand(4, 2))
    assert net[1].num_batches_tracked == 1


def test_unequal_bags_would_be_compiled_for_every_size_and_are_not(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda model, **options: compiled.append(model) or model)
    compiled_update.cache_clear()
    X = np.random.default_rng(0).normal(size=(30, 2)).astype("float32")
    for offsets in ([0, 10, 20, 30], [0, 8, 20, 30]):
        bags = Bags.from_arrays(X, offsets=offsets, counts=[2, 3, 4])
        settings = EngineSettings(max_epochs=1, bags_per_batch=2, compile=True)
        train([Trial(ProportionSquare())], bags, model="linear", settings=settings)
    compiled_update.cache_clear()
    rule_step._compiled.cache_clear()
    assert sum(isinstance(model, nn.Module) and "Flatten" in repr(model) for model in compiled) == 1


@pytest.mark.parametrize("mean", [0.1, 0.4, 0.5, 0.9])
def test_a_rule_that_forgets_its_state_when_compiled_is_stepped_uncompiled(monkeypatch, mean):
    def forgetful(function, **options):
        return lambda *inputs: function(*inputs[:-1], torch.full_like(inputs[-1], torch.nan))

    monkeypatch.setattr(torch, "compile", forgetful)
    rule_step._compiled.cache_clear()
    rule = DebiasedSquare(debias="moving", beta=0.9)
    batch = BagBatch(torch.linspace(0.2, 0.6, 5)[None], 6, None, torch.tensor([0.4]), "binary")
    logits, state = torch.full((1, 30), mean).logit(), torch.full((1, 1, 1), torch.nan)
    logits.requires_grad_()
    with pytest.warns(CompilationWarning, match="step of DebiasedSquare"):
        loss, state = rule_step.fused_step(rule, logits, batch, state)
    later, _ = rule_step.fused_step(rule, logits, batch, state * 0.5)
    rule_step._compiled.cache_clear()
    assert torch.equal(later, rule.step(logits, batch, state * 0.5)[0])
    assert not torch.equal(later, loss)


def test_a_miscompiled_update_is_made_uncompiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **options: lambda *inputs: None)
    compiled_update.cache_clear()
    weights = [torch.ones(3, requires_grad=True)]
    optimizer = StackedAdam(weights, torch.tensor([0.1]), stacked=False)
    optimizer.update = compiled_update(adam_update)
    with pytest.warns(CompilationWarning, match="optimizer"):
        optimizer.step((torch.ones(3),))
    compiled_update.cache_clear()
    torch.testing.assert_close(weights[0].detach(), torch.full((3,), 0.9))


def test_an_update_that_forgets_its_moments_is_seen_by_its_second_step():
    def forgetful(parameters, first, second, *others):
        for moment in second:
            moment.zero_()
        adam_update(parameters, first, second, *others)

    weights = [torch.ones(3, requires_grad=True)]
    state = (weights, [torch.zeros(3)], [torch.zeros(3)], [torch.tensor(0.1)], [torch.ones(3)])
    scalars = torch.tensor(1.0), torch.tensor(1e-7), (0.9, 0.5)
    with torch.no_grad():
        assert not used(Checked("thing", adam_update, adam_update, changes), *state, *scalars)[1]
    with torch.no_grad():
        assert used(Checked("thing", adam_update, forgetful, changes), *state, *scalars)[1]


@pytest.mark.parametrize("rate", [0.2, 0.25, 0.5])
def test_the_share_that_is_dropped_is_a_constant_to_the_compiler(rate):
    seen = []

    def backend(graph, inputs):
        seen.extend(i for i in inputs if isinstance(i, torch.Tensor))
        return graph.forward

    torch._dynamo.reset()
    drop, x = KeyedDropout(rate), torch.rand(50, 20)
    assert torch.equal(torch.compile(drop, dynamic=True, backend=backend)(x), drop(x))
    torch._dynamo.reset()
    assert sorted(str(tensor.dtype) for tensor in seen) == ["torch.float32", "torch.int32"]


def test_there_is_room_to_compile_many_forms_and_it_is_given_back():
    from torch._dynamo import config

    before = config.recompile_limit
    with torch_switches(EngineSettings(compile=True)):
        assert config.recompile_limit > 10 * before
    with torch_switches(EngineSettings()):
        assert config.recompile_limit == before
    assert config.recompile_limit == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++"))), reason="needs a compiler")
def test_compiled_dropout_drops_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    x = torch.rand(1000, 32) + 0.1
    for rate in (0.25, 0.5):  # the second is compiled in the presence of the first
        torch._dynamo.reset()
        drop = KeyedDropout(rate)
        drop.dropout_key.fill_(2**31 - 100)
        assert torch.equal(torch.compile(drop, dynamic=True)(x), drop(x))


def test_nets_side_by_side_are_a_whole_number():
    with pytest.raises(ValueError, match="side_by_side must be a whole number"):
        EngineSettings(side_by_side=0)


def test_an_unknown_precision_is_refused():
    message = "precision must be 'float32', 'tf32' or 'bfloat16', got 'half'"
    with pytest.raises(ValueError, match=message):
        EngineSettings(precision="half")
