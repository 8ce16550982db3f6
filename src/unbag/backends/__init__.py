"""Where jobs run: this process, other processes of this machine, Ray."""

from unbag.backends.workers import join_group, run_workers

__all__ = ["join_group", "run_workers"]
