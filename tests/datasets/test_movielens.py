"""MovieLens: the three formats, folders and zip files give the same environment."""

import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import locb
from datasets import files
from locb.datasets.item_features import item_features, split_records
from locb.datasets.movielens import read
from locb.datasets.source_files import Source

RATING = "expected an integer user, an integer item and a finite number"
SHARED = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "ml-latest-small"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))


def load(path: Path, **arguments: object) -> locb.Interactions:
    defaults = {"n_users": files.USERS, "n_arms": 3, "dim": 4, "features_from": "all"}
    return locb.datasets.movielens(path, **{**defaults, **arguments})


def test_likes_and_features(tmp_path: Path) -> None:
    env = load(files.movielens_csv(tmp_path / "ml"))
    rows = files.stars()
    assert env.about["records"] == len(rows)
    assert env.about["share_of_likes"] == pytest.approx(np.mean([stars > 3 for _, _, stars in rows]))
    assert env.n_users == files.USERS
    assert env.dim == 4
    largest = np.bincount([user for user, _, _ in rows]).max()
    assert env.records_per_user[0] == largest
    assert np.linalg.norm(env.item_features, axis=1) == pytest.approx(np.ones(len({m for _, m, _ in rows})))
    assert env.item_features[:, -1] == pytest.approx(np.full(len(env.item_features), np.sqrt(0.5)))


def test_all_formats_give_the_same_environment(tmp_path: Path) -> None:
    plain = load(files.movielens_csv(tmp_path / "csv"))
    variants = {
        "dat": files.movielens_dat(tmp_path / "dat"),
        "100k": files.movielens_100k(tmp_path / "100k"),
        "windows": files.movielens_csv(tmp_path / "windows", end="\r\n"),
        "above": files.movielens_csv(tmp_path / "above" / "ml-latest").parent,
        "file": files.movielens_csv(tmp_path / "file") / "ratings.csv",
        "zip": files.zipped(tmp_path / "csv", tmp_path / "ml-25m.zip"),
        "zip of dat": files.zipped(tmp_path / "dat", tmp_path / "ml-1m.zip"),
    }
    for name, path in variants.items():
        env = load(path)
        assert np.array_equal(env.user_ids, plain.user_ids), name
        assert np.allclose(env.theta, plain.theta, atol=1e-6), name
        assert np.array_equal(env.rounds(50, seed=3).users, plain.rounds(50, seed=3).users), name


def test_threshold(tmp_path: Path) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    assert load(folder, like_above=2.0).about["share_of_likes"] > load(folder).about["share_of_likes"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7,x,4.0,9", f"ratings.csv, line 5: cannot parse as a rating ({RATING}): '7,x,4.0,9'"),
        ("7,30,,9", f"ratings.csv, line 5: cannot parse as a rating ({RATING}): '7,30,,9'"),
        ("7,30", f"ratings.csv, line 5: cannot parse as a rating ({RATING}): '7,30'"),
        ("7,30,NaN,9", "ratings.csv, line 5: cannot parse as a rating"),
        ("7,30,inf,9", "ratings.csv, line 5: cannot parse as a rating"),
    ],
)
def test_invalid_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    lines = (folder / "ratings.csv").read_text().splitlines()
    lines.insert(4, line)
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        load(folder)
    assert not (tmp_path / "cache").exists()


def test_missing_and_invalid_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="Path of the MovieLens data does not exist"):
        load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no MovieLens data: no file ratings.csv or ratings.dat or u.data"):
        load(tmp_path / "empty")
    folder = files.movielens_csv(tmp_path / "ml")
    (folder / "movies.csv").unlink()
    with pytest.raises(ValueError, match="found ratings.csv, but not movies.csv"):
        load(folder)
    folder = files.movielens_csv(tmp_path / "ml2")
    (folder / "ratings.csv").write_text("user,movieId,rating\n1,2,3\n")
    with pytest.raises(ValueError, match="has no column 'userId'; it has 'user', 'movieId', 'rating'"):
        load(folder)
    (folder / "ratings.csv").write_text("")
    with pytest.raises(ValueError, match="ratings.csv has no ratings"):
        load(folder)
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n")
    with pytest.raises(ValueError, match="ratings.csv has no ratings"):
        load(folder)
    folder = files.movielens_csv(tmp_path / "ml3")
    (folder / "movies.csv").write_text("movieId,title,genres\nten,A,Drama\n")
    with pytest.raises(ValueError, match="movies.csv, line 2: cannot parse as a movie"):
        load(folder)


def test_damaged_zip_is_refused(tmp_path: Path) -> None:
    path = files.zipped(files.movielens_csv(tmp_path / "csv"), tmp_path / "ml.zip")
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        offset = archive.getinfo("ml/ratings.csv").header_offset + 60
    data[offset : offset + 20] = b"\x00" * 20
    path.write_bytes(data)
    with pytest.raises(ValueError, match="damaged or truncated"):
        load(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"cannot read .* as an archive \(not a zip file\); check the file"):
        load(path)


def test_blank_lines_quotes_and_user_names(tmp_path: Path) -> None:
    plain = load(files.movielens_csv(tmp_path / "ml"))
    assert sorted(plain.user_names, key=int) == [str(user) for user in range(1, files.USERS + 1)]
    folder = files.movielens_csv(tmp_path / "odd")
    lines = (folder / "ratings.csv").read_text().splitlines()
    lines[3] = ",".join(f'"{field}"' for field in lines[3].split(","))
    (folder / "ratings.csv").write_text("\n".join([*lines[:5], "", *lines[5:], "", ""]))
    assert np.allclose(load(folder).theta, plain.theta)


def test_ambiguous_folder_is_refused(tmp_path: Path) -> None:
    files.movielens_csv(tmp_path / "all" / "a")
    files.movielens_csv(tmp_path / "all" / "b")
    with pytest.raises(ValueError, match="has more than one MovieLens data set; set the path to one of .*/a, .*/b"):
        load(tmp_path / "all")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match="is not MovieLens data: expected ratings.csv or"):
        load(tmp_path / "notes.txt")


def test_fewer_eligible_users_than_requested(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=f"n_users is 100, but the number of eligible users is {files.USERS}"):
        env = load(files.movielens_csv(tmp_path / "ml"), n_users=100)
    assert env.n_users == files.USERS


def test_cache_and_changed_file(tmp_path: Path) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    first = load(folder)
    (entry,) = (tmp_path / "cache").iterdir()
    made = entry.stat().st_mtime_ns
    again = load(folder)
    assert entry.stat().st_mtime_ns == made
    assert np.array_equal(first.theta, again.theta)
    load(folder, zeros="rated")
    assert len(list((tmp_path / "cache").iterdir())) == 1  # zeros does not change the prepared data
    with (folder / "ratings.csv").open("a") as ratings:
        ratings.write("1,20,5.0,9\n")
    assert load(folder).about["records"] == first.about["records"] + 1
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_damaged_cache_is_prepared_again(tmp_path: Path) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    first = load(folder)
    (entry,) = (tmp_path / "cache").iterdir()
    (entry / "features.npy").write_bytes(b"nonsense")
    with pytest.warns(UserWarning, match="cannot use cache entry .* preparing the data again"):
        again = load(folder)
    assert np.array_equal(first.theta, again.theta)


def test_read_only_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.warns(UserWarning, match="cannot write the prepared data to the cache folder .*; to keep"):
        load(files.movielens_csv(tmp_path / "ml"), cache_dir=tmp_path / "file" / "cache")


def test_features_come_from_records_that_are_not_played(tmp_path: Path) -> None:
    """Features and played records of the default do not overlap: changed likes of played records change no feature."""
    folder = files.movielens_csv(tmp_path / "ml")
    records = read(Source(folder / "ratings.csv"), Source(folder / "movies.csv"), None)
    played = split_records(records.users, records.items, records.n_items)
    assert abs(int(played.sum()) - len(played) // 2) <= 1
    changed = replace(records, liked=np.where(played, ~records.liked, records.liked))
    assert np.array_equal(item_features(records, 4, ~played), item_features(changed, 4, ~played))
    assert not np.allclose(item_features(records, 4), item_features(changed, 4))
    with pytest.warns(UserWarning):
        env = locb.datasets.movielens(folder, n_users=files.USERS, n_arms=3, dim=4)
    assert np.array_equal(env.item_features, item_features(records, 4, ~played))
    assert env.records_per_user.sum() <= played.sum()
    with pytest.raises(ValueError, match="features_from must be 'other-half' or 'all', not 'none'"):
        load(folder, features_from="none")


def test_records_of_the_same_user_and_item_are_in_the_same_half() -> None:
    users, items = np.array([0, 1, 0, 1, 0, 2]), np.array([3, 3, 3, 3, 3, 1])
    played = split_records(users, items, 5)
    assert played[0] == played[2] == played[4]
    assert played[1] == played[3]


@pytest.mark.skipif(not SHARED.is_dir(), reason="ml-latest-small is not beside the repository (../shared/data)")
def test_ml_latest_small(tmp_path: Path) -> None:
    env = locb.datasets.movielens(SHARED, features_from="all")
    assert env.about["records"] == 100_836
    assert env.about["users"] == 610
    assert env.about["items"] == 9_724
    assert (env.n_users, env.dim) == (100, 10)
    assert env.records_per_user[0] == 2_698
    copied = tmp_path / "copy"
    shutil.copytree(SHARED, copied)
    zipped = locb.datasets.movielens(files.zipped(copied, tmp_path / "ml.zip"), features_from="all")
    assert np.allclose(zipped.theta, env.theta)
    rounds = env.rounds(3_000, seed=1)
    regret = rounds.regret(locb.LinUCB(n_users=100, dim=10, alpha=0.3).play(rounds)).sum()
    assert regret < 0.75 * 2_700  # a random choice has regret 0.9 per round
    fair = locb.datasets.movielens(SHARED)  # the features do not contain the likes that are used in rounds
    assert fair.about["features_from"] == "other-half"
    held_out = fair.rounds(3_000, seed=1)
    assert regret + 100 < held_out.regret(locb.LinUCB(n_users=100, dim=10, alpha=0.3).play(held_out)).sum() < 2_700
