"""Where the time of a training step goes on a GPU, kernel by kernel.

    python paper/benchmarks/gpu_kernels.py [--models cnn_small,cnn_padded] [--top 12]

Random images, one trial by itself in bfloat16, so that kernels do not overlap; the step is replayed
as the engine replays it. The last line of each table is the sum, which `gpu_steps.py` has lower for
CNNs where trials that run side by side overlap, and higher where the host is too slow.
"""

import argparse
import warnings
from collections import Counter

import torch
from gpu_steps import PROBLEMS, random_images
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from unbag import make_bags
from unbag.training import Trial
from unbag_paper.compiled import CompiledTraining, EngineSettings
from unbag_paper.errors import CompilationWarning

EPOCHS = 3


def kernel_times(name, shape):
    """Microseconds of each kernel in one step, on average over some epochs."""
    X, y = random_images(shape)
    X = torch.from_numpy(X).cuda()
    bags = make_bags(X, y, bag_size=100, seed=0)
    settings = EngineSettings(device="cuda", precision="bfloat16", compile=True, bags_per_batch=10)
    training = CompiledTraining([Trial()], bags, model=name, settings=settings)
    training.run(until=2)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        training.run(until=2 + EPOCHS)
        torch.cuda.synchronize()
    n_steps = EPOCHS * len(training.stacks[0].batches)
    times = Counter()
    for event in profiler.events():
        if event.device_type == DeviceType.CUDA:  # calls of the host are events too
            times[event.name] += event.device_time / n_steps
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="cnn_small,cnn_padded,cnn_large")
    parser.add_argument("--data", default="mnist,cifar")
    parser.add_argument("--top", type=int, default=12)
    arguments = parser.parse_args()
    warnings.simplefilter("error", CompilationWarning)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, microseconds a step")
    for dataset in arguments.data.split(","):
        for name in arguments.models.split(","):
            times = kernel_times(name, PROBLEMS[dataset][0])
            print(f"\n{dataset} {name}")
            for kernel, spent in times.most_common(arguments.top):
                print(f"{spent:8.1f}  {kernel[:100]}")
            print(f"{times.total():8.1f}  all {len(times)} kernels")


if __name__ == "__main__":
    main()
