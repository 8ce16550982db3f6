"""Where jobs run: this process, other processes of this machine, Ray.

One training on many workers is `unbag.parallel.data_parallel.ParallelTraining`; it is not imported
here, so that a process that only runs jobs does not wait for torch.
"""

from unbag.parallel.executor import Executor, ProcessExecutor, SerialExecutor, get_executor

__all__ = ["Executor", "ProcessExecutor", "SerialExecutor", "get_executor"]
