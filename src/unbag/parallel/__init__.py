"""Where jobs run: this process, other processes of this machine, Ray."""

from unbag.parallel.executor import Executor, ProcessExecutor, SerialExecutor, get_executor

__all__ = ["Executor", "ProcessExecutor", "SerialExecutor", "get_executor"]
