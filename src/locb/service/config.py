"""The configuration of a service: every key with its type, default and description.

The options of ``locb serve`` and the reference documentation are generated from ``ServiceConfig``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_POLICY = "locb"
LOG_LEVELS = ("debug", "info", "warning", "error")
# Parameters of the policy that have their own option; others are set by --parameter name=value.
PARAMETER_OPTIONS = ("gamma", "n_seeds", "alpha")


@dataclass(frozen=True, slots=True)
class Key:
    """Facts about a configuration key, in addition to its name, type and default.

    Attributes
    ----------
    description : str
        One or two sentences.
    section : str
        Heading in ``locb serve --help``.
    minimum, maximum : int or None
        Allowed range.
    is_duration : bool
        Whether the value is a time in seconds, which the command line accepts as 30s, 10m, 2h or 1d.
    environment : str or None
        Environment variable that sets the key.
    """

    description: str
    section: str = "Options"
    minimum: int | None = None
    maximum: int | None = None
    is_duration: bool = False
    environment: str | None = None


def _key(default: Any, description: str, section: str = "Options", **facts: Any) -> Any:
    return field(default=default, metadata={"key": Key(description, section, **facts)})


POLICY, REWARDS, NETWORK = "Policy", "Rewards", "Network and access"


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """Configuration of a service.

    A key that is None takes its value from an existing store; in a new store it has its default. ``describe_key``
    returns the description of a key.
    """

    data_dir: Path = field(
        metadata={"key": Key("Folder of the event log and the snapshots. It is created if it does not exist.")}
    )
    store: str | None = _key(
        None,
        "Address of the database: postgresql://user@host/name or sqlite:///path. By default a SQLite file in the data "
        "folder.",
        environment="LOCB_STORE",
    )
    policy: str | None = _key(
        None, "Name of a policy (see below), or file.py:Class for a custom policy. Default: locb.", POLICY
    )
    dim: int | None = _key(
        None,
        "Number of features per arm, including hashed features and the constant. Required for a new store.",
        POLICY,
    )
    parameters: dict[str, Any] = field(
        default_factory=dict,
        metadata={"key": Key("Parameters of the policy by name. An existing store keeps its own.", POLICY)},
    )
    default_reward: float | None = _key(
        None,
        "Reward to learn when no reward arrives in time. A later reward corrects it. By default nothing is learned.",
        REWARDS,
    )
    reward_wait: float = _key(
        600.0, "Time to wait for a reward before the default reward is learned.", REWARDS, is_duration=True
    )
    snapshot_every: int = _key(
        100_000,
        "Number of events between snapshots. At startup the service replays the events after the newest snapshot.",
        minimum=1,
    )
    personalizer_user: str = _key(
        "user.id", "Path of the user id in contextFeatures, for requests of Azure Personalizer clients."
    )
    host: str = _key("127.0.0.1", "Address to listen on.", NETWORK)
    port: int = _key(8080, "Port to listen on; 0 chooses a free port.", NETWORK, minimum=0, maximum=65535)
    token_file: Path | None = field(
        default=None,
        metadata={
            "key": Key(
                "File of bearer tokens, one per line, each followed by its scopes: decide, read, delete. Without it "
                "the service accepts requests from this machine only.",
                NETWORK,
            )
        },
    )
    max_body: int = _key(1_048_576, "Maximum size of a request body in bytes.", NETWORK, minimum=1024)
    max_in_flight: int = _key(1000, "Maximum number of requests in progress.", NETWORK, minimum=1)
    read_timeout: float = _key(30.0, "Maximum time for a request to arrive.", NETWORK, is_duration=True)
    shutdown_timeout: float = _key(
        20.0, "Maximum time for requests in progress to finish after SIGTERM.", is_duration=True
    )
    log_level: str = _key("info", f"Minimum level of log messages: {', '.join(LOG_LEVELS)}.")

    def __post_init__(self) -> None:
        if self.log_level not in LOG_LEVELS:
            raise ValueError(f"--log-level must be one of {', '.join(LOG_LEVELS)}, not {self.log_level!r}")


def describe_key(name: str) -> Key:
    """Return the description and other facts of a configuration key."""
    key: Key = ServiceConfig.__dataclass_fields__[name].metadata["key"]
    return key


def format_parameter(name: str, value: Any) -> str:
    """Return a policy parameter as an option of ``locb serve``, for messages."""
    has_option = name in ("policy", "dim", *PARAMETER_OPTIONS)
    return f"--{name.replace('_', '-')} {value}" if has_option else f"--parameter {name}={value}"
