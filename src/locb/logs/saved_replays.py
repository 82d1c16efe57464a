"""Finished replays in a folder, so that an interrupted evaluation or search can continue."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Ints
from locb.common.validation import ParameterError
from locb.evaluation.run_folder import SOURCE_PACKAGES, code_digest
from locb.logs.log import Log


class SavedReplays:
    """Accepted decisions of finished replays, with one file per replay.

    The name of a file is a digest of everything that determines the replay: log, policy, seed, replayed decisions with
    the indices of their users, and version of the code.

    Parameters
    ----------
    folder : path
        Folder of the files. It is created with the first file.
    log : Log
        Log that is replayed.

    Attributes
    ----------
    reused : int
        Number of replays that were read from the folder.
    """

    def __init__(self, folder: str | os.PathLike[str], log: Log) -> None:
        self._folder = Path(folder)
        if self._folder.exists() and not self._folder.is_dir():
            raise ParameterError("folder", f": {self._folder} is a file, not a folder; choose a new folder")
        self._log = _digest(code_digest((*SOURCE_PACKAGES, "logs")), *_content(log))
        self.reused = 0

    def key(self, identity: str, seed: int, rows: Ints, users: Ints) -> str:
        """Return the key of a replay of the decisions ``rows`` by a policy; ``identity`` describes the policy."""
        return _digest(self._log, identity, seed, rows, users)

    def get(self, key: str) -> Ints | None:
        """Return the accepted decisions of a replay; None if there is no file for the replay, or if it is damaged."""
        try:
            accepted: Ints = np.load(self._path(key), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        self.reused += 1
        return accepted

    def put(self, key: str, accepted: Ints) -> None:
        """Write the accepted decisions of a replay. Other processes see the complete file or none."""
        path = self._path(key)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                np.save(file, accepted)
            temporary.replace(path)
        except OSError as error:
            reason = f": cannot write to {self._folder} ({error.strerror}); choose another folder"
            raise ParameterError("folder", reason) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npy"


def count_saved(folder: Path) -> int:
    """Return the number of finished replays in a folder."""
    return sum(1 for _ in folder.glob("[!.]*.npy"))


def _content(log: Log) -> list[Any]:
    """Return the values of a log that influence a replay."""
    offers = log.offers
    return [log.users, log.offer, offers.offsets, offers.rows, log.features, log.chosen, log.rewards, log.propensities]


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(f"{type(part).__name__} {part!r} ".encode())
    return digest.hexdigest()[:32]
