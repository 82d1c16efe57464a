"""Configuration of a service: every key with its type, default and description.

The options of ``locb serve`` and the reference documentation are generated from ``ServiceConfig``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_POLICY = "eloc"
PERSONALIZER_REWARDS = ("earliest", "sum")
LOG_LEVELS = ("debug", "info", "warning", "error")
# Policy parameters that have their own command-line option. All other parameters are set by --parameter name=value.
PARAMETER_OPTIONS = ("gamma", "n_seeds", "alpha", "reward_range")


@dataclass(frozen=True, slots=True)
class Key:
    """Metadata of a configuration key, whose name, type and default are those of the field of ``ServiceConfig``.

    Attributes
    ----------
    description : str
        Sentences for ``locb serve --help`` and the reference documentation.
    section : str, default "Options"
        Heading under which ``locb serve --help`` lists the option.
    minimum, maximum : float or None, default None
        Smallest and largest allowed value; None means no limit.
    is_duration : bool, default False
        Whether the value is a time in seconds, which the command line accepts as 30s, 10m, 2h or 1d.
    environment : str or None, default None
        Name of the environment variable that sets the key; None if there is none.
    """

    description: str
    section: str = "Options"
    minimum: float | None = None
    maximum: float | None = None
    is_duration: bool = False
    environment: str | None = None


def _key(default: Any, description: str, section: str = "Options", **facts: Any) -> Any:
    return field(default=default, metadata={"key": Key(description, section, **facts)})


POLICY, REWARDS, NETWORK = "Policy", "Rewards", "Network and access"


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """Configuration of a service. ``describe_key`` returns the description of each key.

    A store records the policy, ``dim`` and the parameters with which it was created. For an existing store, ``policy``
    and ``dim`` can be None; the service then uses the recorded values.

    Raises
    ------
    ValueError
        If a value is not allowed. The message names the option of ``locb serve``.
    """

    data_dir: Path = field(
        metadata={
            "key": Key(
                "Folder of the snapshots and, without --store, of the event log. The folder is created if it does not "
                "exist."
            )
        }
    )
    store: str | None = _key(
        None,
        "Address of the database of the event log: postgresql://user@host/name or sqlite:///path. By default the "
        "SQLite file log.db in the data folder.",
        environment="LOCB_STORE",
    )
    policy: str | None = _key(
        None,
        "Name of a policy (see below), or file.py:Class for a custom policy. Policies that choose at random, such as "
        "lints-ind, are not accepted. Default: eloc.",
        POLICY,
    )
    dim: int | None = _key(
        None,
        "Number of features per arm. Named features are hashed into a vector of this length: about ten times the "
        "number of different names and text values is enough. Required for a new store.",
        POLICY,
    )
    parameters: dict[str, Any] = field(
        default_factory=dict,
        metadata={
            "key": Key(
                "Parameters of the policy by name. They cannot be changed or added after the store is created.",
                POLICY,
            )
        },
    )
    start_from: str | None = _key(
        None,
        "Log or saved policy that a new store starts from: files, a folder, the store of a service, or a file that "
        "policy.save() has written. An existing store must have been started from the same source.",
        POLICY,
    )
    start_options: dict[str, Any] = field(
        default_factory=dict,
        metadata={
            "key": Key(
                "Options for reading the log of start_from by name: format, user, chosen, arms, reward, time, "
                "missing_reward, decimal, separator, header and position; collisions=allow accepts arms with equal "
                "vectors; users is a file with the ids of the users of a saved policy.",
                POLICY,
            )
        },
    )
    default_reward: float | None = _key(
        None,
        "Reward that the policy learns for a decision if no reward arrives in time. A reward that arrives later "
        "replaces the default reward. By default nothing is learned.",
        REWARDS,
        minimum=-1_000_000,
        maximum=1_000_000,
    )
    reward_wait: float = _key(
        600.0,
        "Time from a decision, or from the activation of a deferred event, until its default reward is learned.",
        REWARDS,
        is_duration=True,
        minimum=0,
    )
    snapshot_every: int = _key(
        100_000,
        "Number of events (new users, decisions and rewards) between snapshots of the policy. At startup the service "
        "replays the events after the newest snapshot.",
        minimum=1,
    )
    retain: float | None = _key(
        None,
        "Time after which the request and the response of a decision are dropped from the log. Everything that the "
        "policy has learned, and the rewards, are kept. By default nothing is dropped.",
        is_duration=True,
        minimum=3600,
    )
    personalizer_user: str = _key(
        "user.id",
        "Path of the user id in the contextFeatures of Azure Personalizer clients: field names, joined by dots.",
    )
    personalizer_rewards: str = _key(
        "earliest",
        "Reward that the policy learns if an Azure Personalizer client sends several rewards for an event: earliest "
        "(the first reward) or sum (the sum of all rewards).",
    )
    host: str = _key("127.0.0.1", "Host name or IP address to listen on.", NETWORK)
    port: int = _key(8080, "TCP port to listen on; 0 chooses a free port.", NETWORK, minimum=0, maximum=65535)
    token_file: Path | None = field(
        default=None,
        metadata={
            "key": Key(
                "File with one bearer token per line, followed by its scopes: decide, read, delete, or all. The "
                "service reads the file again when it changes, and on SIGHUP. Without a token file, the service "
                "accepts requests from this machine only.",
                NETWORK,
            )
        },
    )
    max_failed_tokens: int = _key(
        100,
        "Maximum number of requests with an unknown token per minute and client address. Further requests get status "
        "429, except with tokens that were accepted from the same address before.",
        NETWORK,
        minimum=1,
    )
    max_body: int = _key(
        1_048_576, "Maximum size of a request body in bytes. A larger body gets status 413.", NETWORK, minimum=1024
    )
    max_header_bytes: int = _key(
        32_768,
        "Maximum size of the request line and the headers of a request in bytes. A larger request gets status 431.",
        NETWORK,
        minimum=1024,
    )
    max_feature_names: int = _key(
        20_000,
        "Maximum number of names of features and other fields in a request. A request with more names gets status 422. "
        "Decoding a request blocks all other requests, for about 2 ms with 20,000 names.",
        NETWORK,
        minimum=1000,
    )
    max_in_flight: int = _key(
        1000,
        "Maximum number of requests in progress. Further requests get status 429, except /v1/live and /v1/health. A "
        "request is in progress from the arrival of its whole body until its response.",
        NETWORK,
        minimum=1,
    )
    max_connections: int = _key(
        10_000,
        "Maximum number of connections. When a further connection arrives, the service closes those that have waited "
        "longest for their client: for a request, or for the client to read a response.",
        NETWORK,
        minimum=1,
    )
    max_connections_per_client: int = _key(
        1000,
        "Maximum number of connections per client address. When a further connection arrives, the service closes those "
        "of the address that have waited longest for their client. IPv6 addresses with the same prefix of 64 bits are "
        "one address. Behind a proxy, all clients have the address of the proxy.",
        NETWORK,
        minimum=1,
    )
    max_exports: int = _key(
        2,
        "Maximum number of exports (GET /v1/export) in progress. Further exports get status 429. An export uses a "
        "process of its own and space in the data folder until its response is complete.",
        NETWORK,
        minimum=1,
    )
    max_queue: int = _key(
        20_000,
        "Maximum number of decisions and rewards that wait to be written to the store. A request or a whole batch that "
        "does not fit gets status 503.",
        NETWORK,
        minimum=1000,  # the maximum size of a batch
    )
    read_timeout: float = _key(
        30.0, "Time within which a whole request must arrive.", NETWORK, is_duration=True, minimum=0.1
    )
    keep_alive_timeout: float = _key(
        75.0,
        "Time for which an idle connection stays open. Behind a load balancer, use a longer time than the idle timeout "
        "of the load balancer.",
        NETWORK,
        is_duration=True,
        minimum=0,
    )
    backlog: int = _key(
        2048, "Maximum number of new connections that wait until the service accepts them.", NETWORK, minimum=1
    )
    decision_cache: int = _key(
        100_000,
        "Maximum number of recent decisions in memory. For a reward of an older decision, the service reads the "
        "decision from the store first.",
        minimum=1,
    )
    shutdown_timeout: float = _key(
        20.0, "Time that requests in progress have to finish after SIGTERM or Ctrl-C.", is_duration=True, minimum=0
    )
    log_level: str = _key("info", f"Minimum level of log messages: {', '.join(LOG_LEVELS)}.")

    def __post_init__(self) -> None:
        if self.log_level not in LOG_LEVELS:
            raise ValueError(f"--log-level must be one of {', '.join(LOG_LEVELS)}, not {self.log_level!r}")
        if self.personalizer_rewards not in PERSONALIZER_REWARDS:
            allowed = " or ".join(PERSONALIZER_REWARDS)
            raise ValueError(f"--personalizer-rewards must be {allowed}, not {self.personalizer_rewards!r}")
        if not all(self.personalizer_user.split(".")):
            raise ValueError(
                f"--personalizer-user must be names joined by dots, such as user.id, not {self.personalizer_user!r}"
            )
        for name in self.__dataclass_fields__:
            key, value = describe_key(name), getattr(self, name)
            low, high = key.minimum, key.maximum
            if value is None or ((low is None or value >= low) and (high is None or value <= high)):
                continue
            allowed = f"at least {low}" if high is None else f"from {low} to {high}"
            unit = " seconds" if key.is_duration else ""
            raise ValueError(f"--{name.replace('_', '-')} must be {allowed}{unit}, not {value}")


def describe_key(name: str) -> Key:
    """Return the metadata of a configuration key: description, section, range and environment variable."""
    key: Key = ServiceConfig.__dataclass_fields__[name].metadata["key"]
    return key


def format_parameter(name: str, value: Any) -> str:
    """Return ``policy``, ``dim`` or a policy parameter as an option of ``locb serve``, for error messages."""
    has_option = name in ("policy", "dim", *PARAMETER_OPTIONS)
    option = f"--{name.replace('_', '-')} " if has_option else f"--parameter {name}="
    return option + format_value(name, value)


def format_value(name: str, value: Any) -> str:
    """Return the value of a policy parameter in the form that ``locb serve`` accepts."""
    if name == "reward_range" and isinstance(value, list) and all(isinstance(bound, int | float) for bound in value):
        return ",".join(f"{bound:.15g}" for bound in value)
    return str(value)
