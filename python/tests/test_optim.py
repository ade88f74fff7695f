"""Optimisers, schedules, compiled steps and checkpoints; the first three against PyTorch's results (tests/data/nn)."""
import gc
import json
import pathlib
import weakref

import numpy as np
import pytest

import prismrt as prism
from prismrt import data, nn, optim

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = json.loads((ROOT / "tests" / "data" / "nn" / "optimizer_vectors.json").read_text())
STEPS = 20


def stored(values, *shape):
    return prism.tensor(np.array(values, np.float32).reshape(shape))


X, Y = stored(VECTORS["x"], 6, 4), stored(VECTORS["y"], 6, 3)


def fresh():
    start = VECTORS["start"]
    return [nn.Parameter(stored(start["w1"], 5, 4)), nn.Parameter(stored(start["b1"], 5)), nn.Parameter(stored(start["w2"], 3, 5))]


def loss_of(p, x, y):
    return (prism.linear(prism.tanh(prism.linear(x, p[0], p[1])), p[2]) - y).square().mean()


def momentum(p, **options):
    return optim.SGD(p, lr=0.1, momentum=0.9, **options)


CASES = {
    "sgd": (lambda p: optim.SGD(p, lr=0.1), {}),
    "sgd_momentum": (momentum, {}),
    "sgd_dampened": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01), {}),
    "sgd_nesterov": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.02), {}),
    "adam": (lambda p: optim.Adam(p, lr=0.05), {}),
    "adam_decay": (lambda p: optim.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1), {}),
    "adamw": (lambda p: optim.AdamW(p, lr=0.05, betas=(0.9, 0.95), weight_decay=0.1), {}),
    "rmsprop": (lambda p: optim.RMSprop(p, lr=0.02), {}),
    "rmsprop_momentum": (lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.8, weight_decay=0.05), {}),
    "lion": (lambda p: optim.Lion(p, lr=0.01, weight_decay=0.1), {}),
    "muon": (lambda p: optim.Muon([p[0], p[2]], lr=0.05), {}),
    "muon_plain": (lambda p: optim.Muon([p[0], p[2]], lr=0.05, momentum=0.9, weight_decay=0, nesterov=False), {}),
    "groups": (lambda p: momentum([{"params": [p[0]]}, {"params": p[1:], "lr": 0.02, "weight_decay": 0.5}]), {}),
    "clip_norm": (momentum, {"clip_norm": 0.3}),
    "clip_value": (momentum, {"clip_value": 0.05}),
    "cosine": (lambda p: momentum(p, schedule=optim.cosine_schedule(20)), {}),
    "accumulate": (momentum, {"accumulate": 2}),
    "average": (momentum, {"average": 0.9}),
}


def test_all_cases_are_used():
    assert set(CASES) == set(VECTORS["results"])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_optimisers_agree_with_pytorch(name, compiled):
    make, options = CASES[name]
    p = fresh()
    optimizer = make(p)
    average = optim.MovingAverage(p, options["average"]) if "average" in options else None
    parts = options.get("accumulate", 1)
    batches = [(X[i * 6 // parts:(i + 1) * 6 // parts], Y[i * 6 // parts:(i + 1) * 6 // parts]) for i in range(parts)]
    if compiled:
        step = nn.TrainStep(optimizer, lambda x, y: loss_of(p, x, y), **{**options, "average": average})
        for _ in range(STEPS):
            for batch in batches:
                step(*batch)
        assert step.plans == parts and step.batches == STEPS * parts
    else:
        for _ in range(STEPS):
            optimizer.zero_grad()
            for batch in batches:
                (loss_of(p, *batch) / parts).backward()
            if "clip_norm" in options:
                assert optim.clip_grad_norm(p, options["clip_norm"]) > 0
            if "clip_value" in options:
                optim.clip_grad_value(p, options["clip_value"])
            optimizer.step()
            if average:
                average.update()
    assert optimizer.steps == STEPS
    for mine, wanted in zip(average.averages if average else p, VECTORS["results"][name]):
        np.testing.assert_allclose(mine.numpy().ravel(), wanted, atol=1e-5)


@pytest.mark.parametrize("name, schedule", [
    ("linear", optim.linear_schedule(20, 1, 0.1)), ("cosine", optim.cosine_schedule(30, 0.05)),
    ("step", optim.step_schedule(7, 0.5)), ("one_cycle", optim.one_cycle_schedule(31)),
    ("warm_up", optim.warm_up(10, optim.cosine_schedule(20)))])
def test_schedules_agree_with_pytorch(name, schedule):
    wanted = VECTORS["schedules"][name]
    np.testing.assert_allclose([schedule(i) for i in range(len(wanted))], wanted, atol=1e-6)


def test_learning_rates():
    p = fresh()
    optimizer = optim.AdamW([{"params": p[:1]}, {"params": p[1:], "lr": 0.5}], lr=0.1, schedule=lambda step: 1 / (1 + step))
    assert (optimizer.lr, optimizer.get_lr(1), optim.constant_schedule(2)(7)) == (0.1, 0.5, 2)
    step = nn.TrainStep(optimizer, lambda x, y: loss_of(p, x, y))
    step(X, Y)
    assert (optimizer.lr, optimizer.get_lr(1)) == (0.05, 0.25)
    optimizer.lr = 1
    assert optimizer.get_lr(1) == 0.5 and step.plans == 1
    optimizer.set_lr(3, group=1)
    assert (optimizer.lr, optimizer.get_lr(1)) == (0.5, 1.5) and len(optimizer.parameters) == 3
    with pytest.raises(IndexError):
        optimizer.get_lr(2)


def test_averages_are_swapped():
    p = fresh()
    average = optim.MovingAverage(p, 0.5)
    before = p[1].numpy().copy()
    nn.init.constant(p[1], 0)
    average.update()
    average.swap()
    np.testing.assert_allclose(p[1].numpy(), before / 2)
    average.swap()
    assert not p[1].numpy().any()


def test_states_round_trip():
    def run(steps, state=None):
        optimizer.load_state_dict(state) if state else None
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(p, X, Y).backward()
            optimizer.step()
        return [each.numpy().copy() for each in p]

    p = fresh()
    optimizer = optim.Adam(p, lr=0.05)
    run(3)
    values = [each.clone() for each in p]
    state = {name: value.clone() for name, value in optimizer.state_dict().items()}
    wanted = run(2)
    p = [nn.Parameter(each) for each in values]
    optimizer = optim.Adam(p, lr=0.05)
    assert all(np.array_equal(a, b) for a, b in zip(run(2, state), wanted))
    with pytest.raises(ValueError, match="another"):
        optim.SGD(p).load_state_dict(state)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm(16), nn.ReLU(), nn.Dropout(0.2))
        self.output = nn.Linear(16, 2)

    def forward(self, x):
        return self.output(self.net(x))


def make_run(**options):
    prism.seed(4)
    points = prism.normal((60, 2), key=6)
    labels = (points[:, 0] * points[:, 1] > 0).astype("int32")
    model = Model()
    optimizers = [optim.Muon([model.output.weight]),
                  optim.AdamW([p for name, p in model.named_parameters() if name != "output.weight"], lr=0.02)]
    average = optim.MovingAverage(model.parameters(), 0.9)
    step = nn.TrainStep(optimizers, lambda x, y: nn.cross_entropy(model(x), y), average=average, model=model, **options)
    loader = data.DataLoader((points, labels), 20, seed=5)
    return {"model": model, "optimizer": optimizers, "step": step, "average": average, "loader": loader}


def train(run, steps):
    return [run["step"](*run["loader"].next()).item() for _ in range(steps)]


def test_runs_continue_with_the_same_bits(tmp_path):
    run = make_run(clip_norm=1.0, accumulate=2)
    losses = train(run, 7)
    nn.save_checkpoint(tmp_path / "run.safetensors", **run)
    wanted = train(run, 6)
    assert losses[0] != losses[3] and run["step"].gradient_norm.item() > 0
    again = make_run(clip_norm=1.0, accumulate=2)
    train(again, 3)
    nn.load_checkpoint(tmp_path / "run.safetensors", **again)
    assert again["loader"].position == again["step"].batches == 7 and again["optimizer"][0].steps == 3
    assert train(again, 6) == wanted
    for name, value in run["model"].state_dict().items():
        assert np.array_equal(value.numpy(), again["model"].state_dict()[name].numpy()), name
    with pytest.raises(ValueError, match="another model"):
        nn.load_checkpoint(tmp_path / "run.safetensors", model=again["model"])
    with pytest.raises(ValueError, match="is missing"):
        nn.load_checkpoint(tmp_path / "run.safetensors", model=nn.Linear(2, 2))
    with pytest.raises(LookupError):
        nn.load_checkpoint(tmp_path / "none.safetensors", **again)


def test_averages_in_another_order():
    run = make_run()
    eager = optim.MovingAverage(run["model"].parameters(), 0.9)
    for _ in range(4):
        train(run, 1)
        eager.update()
    for mine, wanted in zip(run["average"].averages, eager.averages):
        np.testing.assert_allclose(mine.numpy(), wanted.numpy(), atol=1e-6)


def test_anomalies_name_the_layer():
    run = make_run(detect_anomaly=True)
    nn.init.constant(run["model"].net[0].weight, 1)
    before = run["model"].output.weight.clone()
    with pytest.raises(ValueError, match=r"step 0 .* net\.0"):
        run["step"](prism.full((20, 2), 3e38), prism.zeros(20, dtype="int32"))
    assert np.array_equal(run["model"].output.weight.numpy(), before.numpy())
    assert run["step"](*run["loader"].next()).item() > 0


def test_mixed_precision_stays_close():
    losses = {kind: train(make_run(compute=kind), 12) for kind in ("float32", "bfloat16", "float16")}
    for kind in ("bfloat16", "float16"):
        assert losses[kind] != losses["float32"]
        np.testing.assert_allclose(losses[kind], losses["float32"], atol=0.01)


def test_nothing_keeps_a_run_alive():
    run = make_run()
    optimizer = run["optimizer"][1]
    optimizer.set_schedule(lambda step, own=optimizer: own.steps + 1)
    train(run, 2)
    assert optimizer.lr == pytest.approx(0.06)
    alive = [weakref.ref(each) for each in (run["model"], optimizer, run["step"], run["loader"])]
    del run, optimizer
    gc.collect()
    assert [each() for each in alive] == [None] * 4


def test_logs(tmp_path):
    log = nn.TrainingLog(tmp_path / "log.jsonl")
    for step in range(3):
        log.add(step, loss=1 / (step + 1), rate=float("nan"))
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["loss"] for line in lines] == pytest.approx([1, 0.5, 1 / 3]) and lines[0]["rate"] is None
    log.write_svg(tmp_path / "curve.svg", "loss")
    assert (tmp_path / "curve.svg").read_text() == log.svg("loss") and "<svg" in log.svg("loss")
    progress = nn.Progress(2000, 64, "tokens")
    assert progress.line(120, 2.134).startswith("step 120 of 2,000, loss 2.134, ") and progress.seconds > 0
    with pytest.raises(OSError):
        nn.TrainingLog(tmp_path / "none" / "log.jsonl").add(1, loss=1.0)


def test_the_plan_is_shown():
    p = fresh()
    step = nn.TrainStep(optim.SGD(p), lambda x, y: loss_of(p, x, y))
    assert step.estimate_memory(X, Y)["cpu:0"] > 0 and step.plans == 0
    step(X, Y)
    assert "matmul" in step.explain(X, Y) and step.gradient_norm is None


def test_errors():
    p = fresh()
    for wrong in (lambda: optim.SGD([1.0]), lambda: optim.SGD([{"lr": 1}]), lambda: optim.SGD([{"params": p, "speed": 1}]),
                  lambda: optim.Optimizer(p, {}), lambda: optim.SGD(p, lr="fast"), lambda: optim.SGD(p, rate=1),
                  lambda: optim.SGD(p, schedule=lambda step: None).lr, lambda: nn.TrainStep(optim.SGD(p), lambda x: x)(3),
                  lambda: nn.TrainStep(optim.SGD(p), lambda x: 3)(X)):
        with pytest.raises(TypeError):
            wrong()
    for wrong, message in ((lambda: optim.SGD(p, lr=-1), "learning rate of -1"), (lambda: optim.SGD([p[0], p[0]]), "twice"),
                           (lambda: optim.SGD([X]), "requires no gradients"), (lambda: optim.SGD([]).step(), "parameters"),
                           (lambda: optim.SGD(p, nesterov=True), "momentum"), (lambda: optim.MovingAverage(p, 2), "0 to 1"),
                           (lambda: optim.clip_grad_norm(p, 0), "positive"),
                           (lambda: nn.TrainStep(optim.SGD(p), lambda x: x, accumulate=0), "accumulate"),
                           (lambda: nn.TrainStep(optim.SGD(p), lambda x: x, compute="float64"), "bf16"),
                           (lambda: nn.TrainStep(optim.SGD(p), lambda x: prism.linear(x, p[0]))(X), "one number")):
        with pytest.raises(ValueError, match=message):
            wrong()

    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nn.TrainStep(optim.SGD(p), broken)(X)
