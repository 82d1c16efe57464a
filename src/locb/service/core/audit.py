"""The log of a service that does not run, gone through again."""

from __future__ import annotations

import os
from pathlib import Path

from locb.policies import Policy
from locb.service.config import ServiceConfig, load_or_create_model
from locb.service.core.replay import Mismatch, recheck
from locb.service.store.log import EventLog


def audit(data_dir: str | os.PathLike[str], store: str | None = None) -> tuple[Policy, list[Mismatch]]:
    """Learn the whole log anew, and make every decision again that was made since a user was last erased.

    Earlier decisions rested on what is erased, and cannot be made again.

    Parameters
    ----------
    data_dir : path
        The folder that ``locb serve`` was told.
    store : str, optional
        The database that it was told.

    Returns
    -------
    The policy at the end of the log, and the decisions that came out otherwise: none, if all is well.

    Raises
    ------
    AlreadyOpenError
        If the service runs.
    ValueError
        If there is no log.
    """
    folder = Path(data_dir)
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    log = EventLog(folder, store)
    try:
        if "model" not in (settings := log.settings()):
            raise ValueError(f"there is no log of a service in {folder}")
        model, _ = load_or_create_model(ServiceConfig(folder, store), log)
        since = settings["rebuilt_at"]
        return recheck(log, model, log.last_seq() if since is None else since)
    finally:
        log.close()
