"""Compiled code is used where it does what the plain code does, and nowhere else."""

import warnings

import pytest
import torch
from torch import nn

from unbag.engine import Settings
from unbag.engine.adam import StackedAdam, _compiled_move
from unbag.engine.compiled import Checked, changes, values_and_gradients
from unbag.engine.learner import SingleLearner
from unbag.engine.loop import torch_switches
from unbag.errors import CompilationWarning
from unbag.models import KeyedDropout


def used(checked, *inputs):
    """What was returned, and whether there was a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = checked(*inputs)
    return value, [w.category for w in caught] == [CompilationWarning]


def test_a_compiled_function_that_agrees_is_used():
    checked = Checked(lambda x: 2 * x, lambda x: x + x + 1e-6, values_and_gradients())
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
    ],
)
def test_one_that_does_not_steps_aside_with_a_warning(wrong):
    checked = Checked(lambda x: 2 * x, wrong, values_and_gradients())
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

    checked = Checked(plain, lambda x: x + x if len(x) < 5 else x, values_and_gradients())
    for size in (3, 4, 3, 4):
        assert not used(checked, torch.ones(size))[1]
    assert calls == [(3,), (4,)]
    with torch.no_grad():
        used(checked, torch.ones(3))
    assert calls == [(3,), (4,), (3,)]
    value, warned = used(checked, torch.ones(6))
    assert warned
    assert (value == 2).all()


def test_what_is_missing_in_both_is_agreed_upon():
    both = torch.tensor([torch.nan, 1.0])
    assert not used(Checked(lambda x: x * both, lambda x: both * x, values_and_gradients()), both)[
        1
    ]


def test_a_change_in_place_is_compared_by_how_much_it_changes():
    state = torch.full((3,), 1e6)

    def plain(x):
        x.add_(1)

    def wrong(x):
        x.add_(3)  # of a million, a tiny share

    _, warned = used(Checked(plain, wrong, changes), state)
    assert warned
    assert (state == 1e6 + 1).all()


def test_a_miscompiled_net_is_trained_uncompiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model, **options: lambda x: 0 * model(x))
    net = nn.Linear(2, 1)
    learner = SingleLearner(net, compile=True)
    x = torch.ones(4, 2)
    with pytest.warns(CompilationWarning, match="runs uncompiled"):
        logits = learner.logits(x, shared=True)
    assert torch.equal(logits[0], net(x))


def test_a_miscompiled_update_is_made_uncompiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **options: lambda *inputs: None)
    _compiled_move.cache_clear()
    weights = [torch.ones(3, requires_grad=True)]
    optimizer = StackedAdam(weights, torch.tensor([0.1]), stacked=False, compile=True)
    with pytest.warns(CompilationWarning):
        optimizer.step((torch.ones(3),))
    _compiled_move.cache_clear()
    torch.testing.assert_close(weights[0].detach(), torch.full((3,), 0.9))


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
    with torch_switches(Settings(compile=True)):
        assert config.recompile_limit > 10 * before
    with torch_switches(Settings()):
        assert config.recompile_limit == before
    assert config.recompile_limit == before
