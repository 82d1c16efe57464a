"""Yahoo R6A: visits, missing features, and invalid lines."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import locb
from datasets import files
from locb.datasets.source_files import Source
from locb.datasets.yahoo import read


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))


def test_visits_become_counts_by_cluster_and_article(tmp_path: Path) -> None:
    folder = files.yahoo(tmp_path / "R6A")
    env = locb.datasets.yahoo(folder, n_users=6, n_arms=4, n_clusters=6)
    lines = files.yahoo_lines()
    assert env.about["records"] == len(lines)
    assert env.about["share_of_likes"] == pytest.approx(np.mean([line.split()[2] == "1" for line in lines]))
    assert env.about["items"] == 12
    assert env.dim == 6
    assert env.records_per_user.sum() == len(lines)
    # Six kinds of visitors, six clusters: each has the visits of one kind.
    kinds = [line.split("|")[1] for line in lines]
    assert sorted(env.records_per_user.tolist()) == sorted(kinds.count(kind) for kind in set(kinds))
    rounds = env.rounds(500, seed=1)
    assert (rounds.rewards.sum(axis=1) == 1).all()


def test_single_and_uncompressed_file(tmp_path: Path) -> None:
    folder = files.yahoo(tmp_path / "R6A")
    first = min(folder.iterdir())
    one = locb.datasets.yahoo(first, n_users=6, n_arms=4, n_clusters=6)
    assert one.about["records"] == 200
    plain = tmp_path / "ydata-fp-td-clicks-v1_0.20090501"
    plain.write_bytes(gzip.decompress(first.read_bytes()))
    assert np.array_equal(locb.datasets.yahoo(plain, n_users=6, n_arms=4, n_clusters=6).theta, one.theta)


def test_visits_without_features_are_skipped(tmp_path: Path) -> None:
    lines = files.yahoo_lines(60)
    whole = files.features(np.ones(5))
    lines.insert(3, f"1241160903 109001 1 |user {whole[:20]} |109001 {whole}\n")
    lines.insert(9, f"1241160904 555 0 |user {whole} |109001 {whole}\n")
    lines.insert(9, f"1241160904 556 0 |user {whole} |556 2:0.5 1:1.0 |109001 2:1.0\n")
    lines.insert(12, f"1241160904 109001 0 |user {whole.replace('1.000000', 'nan', 1)} |109001 {whole}\n")
    lines.insert(12, "\n")
    path = tmp_path / "ydata-fp-td-clicks-v1_0.20090501.gz"
    with gzip.open(path, "wt") as log:
        log.writelines(lines)
    with pytest.warns(UserWarning) as caught:
        env = locb.datasets.yahoo(path, n_users=6, n_arms=4, n_clusters=6)
    messages = [str(warning.message) for warning in caught]
    assert "yahoo: skipped 2 visits of users without features" in messages
    assert "yahoo: skipped 2 visits of articles without features" in messages
    assert env.about["records"] == 60


@pytest.mark.parametrize("line", ["nonsense\n", "1 2 3 |user 1:1\n", "1 2 0 |person 1:1\n", "1 2 0\n"])
def test_invalid_line_is_named(line: str, tmp_path: Path) -> None:
    lines = files.yahoo_lines(20)
    lines.insert(7, line)
    path = tmp_path / "ydata-fp-td-clicks-v1_0.20090501.gz"
    with gzip.open(path, "wt") as log:
        log.writelines(lines)
    with pytest.raises(ValueError, match=r"20090501\.gz, line 8: cannot parse as a visit"):
        locb.datasets.yahoo(path)


def test_truncated_gzip_and_empty_folder(tmp_path: Path) -> None:
    folder = files.yahoo(tmp_path / "R6A")
    first = min(folder.iterdir())
    first.write_bytes(first.read_bytes()[:-40])
    with pytest.raises(ValueError, match="is damaged or truncated"):
        locb.datasets.yahoo(folder)
    assert not (tmp_path / "cache").exists()
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="has no Yahoo log: no file matches ydata-fp-td-clicks"):
        locb.datasets.yahoo(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="Path of the Yahoo log does not exist"):
        locb.datasets.yahoo(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="n_clusters must be an integer of at least 1, not 0"):
        locb.datasets.yahoo(folder, n_clusters=0)


def test_log_without_features(tmp_path: Path) -> None:
    path = tmp_path / "ydata-fp-td-clicks-v1_0.1"
    path.write_text("1 5 0 |user 2:1.0 |5 2:1.0\n")
    with pytest.raises(ValueError, match="no visit with all six features in .*-v1_0.1; each line must have"):
        read([Source(path)], 3)
