"""What can be said under `hydra.launcher`: the keys of a job, in the words of a job file."""

# Hydra loads this module before it is known by its name: annotations must be values, not texts.
from dataclasses import dataclass, field
from typing import Any, Optional

from hydra.core.config_store import ConfigStore


@dataclass
class JostleConf:
    _target_: str = "hydra_plugins.jostle_launcher.launcher.JostleLauncher"
    gpus: Any = 1  # 2, or 1-4
    memory: Any = None  # per GPU, such as 20GiB; None: the whole card
    share: bool = False
    cpus: Optional[int] = None  # noqa: UP045  cores of the host; None: not counted
    host_memory: Any = None  # such as 64GiB; None: not counted
    counters: dict[str, int] = field(default_factory=dict)
    nice: int = 0
    queue: Optional[str] = None  # noqa: UP045  omegaconf
    priority: int = 0
    time_limit: Any = None
    retry: Any = None
    env: dict[str, str] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)  # rules of the batch: docs/settings.md
    devices: Optional[str] = None  # noqa: UP045  such as sim:4x24; None: the engine's


ConfigStore.instance().store(group="hydra/launcher", name="jostle", node=JostleConf, provider="jostle")
