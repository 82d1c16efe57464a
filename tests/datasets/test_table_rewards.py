"""Tables whose rewards, order and features are kept, and ``locb compare`` on such a table."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from commandline import call

COLUMNS = {"user": "who", "item": "what", "reward": "euros"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))


def sales(count: int = 240) -> pl.DataFrame:
    """Return sales in a random order: amounts of money as text, and days of sale that differ."""
    rng = np.random.default_rng(2)
    items = rng.integers(6, size=count)
    return pl.DataFrame(
        {
            "who": [f"user {user}" for user in rng.integers(8, size=count)],
            "what": [f"item {item}" for item in items],
            "euros": [f"{value:.2f} €".replace(".", ",") for value in rng.gamma(2.0, 10.0, size=count)],
            "hour": rng.permutation(count),
            "price": 5.0 * items,
            "kind": [("book", "film")[item % 2] for item in items],
        }
    )


def amounts(frame: pl.DataFrame) -> Any:
    return np.array([float(text.removesuffix(" €").replace(",", ".")) for text in frame["euros"].to_list()])


def load(frame: pl.DataFrame, folder: Path, **arguments: Any) -> locb.RecordedRewards:
    frame.write_csv(folder / "sales.csv")
    env = locb.datasets.table(folder / "sales.csv", **{**COLUMNS, "n_users": 8, "n_arms": 3, **arguments})
    assert isinstance(env, locb.RecordedRewards)
    return env


def test_rewards_and_order_are_kept(tmp_path: Path) -> None:
    frame = sales()
    for arguments, ordered in (({}, frame), ({"time": "hour"}, frame.sort("hour"))):
        env = load(frame, tmp_path, features=["price"], **arguments)
        rounds = env.rounds(env.max_rounds)
        assert [env.user_names[user] for user in rounds.users.tolist()] == ordered["who"].to_list()
        rows = [[env.item_names[arm] for arm in arms] for arms in rounds.contexts.arms.tolist()]
        own = [names.index(item) for names, item in zip(rows, ordered["what"].to_list(), strict=True)]
        assert rounds.earned(own) == pytest.approx(amounts(ordered))
        assert env.about["rewards"][2] == pytest.approx(amounts(frame).max())
        assert env.about["has_times"] == bool(arguments)


def test_own_features_are_the_columns(tmp_path: Path) -> None:
    env = load(sales(), tmp_path, features=["price", "kind"])
    assert env.about["features_from"] == "own"
    assert env.dim == 1 + 2 + 1
    price = np.array([5.0 * int(name.removeprefix("item ")) for name in env.item_names])
    assert np.corrcoef(env.item_features[:, 0], price)[0, 1] == pytest.approx(1.0)
    is_film = np.array([int(name[-1]) % 2 == 1 for name in env.item_names])
    columns = env.item_features[:, 1:3] != 0
    assert columns.sum(axis=1).tolist() == [1] * 6
    assert np.array_equal(columns[:, 0], is_film) or np.array_equal(columns[:, 1], is_film)
    assert np.linalg.norm(env.item_features, axis=1).max() == pytest.approx(1.0)
    assert env.item_features[:, -1] == pytest.approx([0.5**0.5] * 6)


def test_features_come_from_earlier_records_only(tmp_path: Path) -> None:
    frame = sales()
    env = load(frame, tmp_path, time="hour", dim=4)
    assert (env.about["features_from"], env.dim, env.max_rounds) == ("other-half", 4, 120)
    rounds = env.rounds(120)
    assert [env.user_names[user] for user in rounds.users.tolist()] == frame.sort("hour")["who"].to_list()[120:]
    for is_changed, same in ((pl.col("hour") >= 120, True), (pl.col("hour") < 120, False)):
        changed = frame.with_columns(euros=pl.when(is_changed).then(pl.col("euros").reverse()).otherwise("euros"))
        again = load(changed, tmp_path, time="hour", dim=4)
        assert np.array_equal(again.item_features, env.item_features) == same
        assert np.array_equal(again.rounds(120).rewards, rounds.rewards) != same


def test_random_half_without_times(tmp_path: Path) -> None:
    frame = sales()
    env = load(frame, tmp_path, dim=4, n_users=6)
    rounds = env.rounds(env.max_rounds)
    assert 60 < env.max_rounds < 180
    played = {
        (env.user_names[user], env.item_names[arm])
        for user, arms in zip(rounds.users.tolist(), rounds.contexts.arms.tolist(), strict=True)
        for arm in arms
        if arm >= 0
    }
    pairs = set(zip(frame["who"].to_list(), frame["what"].to_list(), strict=True))
    assert len(played) <= len(pairs) / 2  # the pairs of the other half are never arms


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reward": "kind"}, "column 'kind' must have finite numbers, but row 1 has '(book|film)'"),
        ({"time": "kind"}, "column 'kind' must have times, but row 1 has '(book|film)'"),
        ({"offer": "all"}, "offer must be one of 'recorded', 'one-liked', not 'all'"),
        ({"offer": "recorded", "zeros": "any"}, "zeros is allowed only with offer 'one-liked', not with 'recorded'"),
        ({"offer": "one-liked", "time": "hour"}, "time is allowed only with offer 'recorded'"),
        ({"features_from": "own"}, "features_from 'own' needs columns that describe the items"),
        ({"features_from": "mine"}, "features_from must be 'other-half' or 'all' or 'own', not 'mine'"),
    ],
)
def test_invalid_arguments(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load(sales(), tmp_path, **arguments)


def test_too_many_own_features(tmp_path: Path) -> None:
    frame = pl.concat([sales(), pl.DataFrame({"what": [f"x{n}" for n in range(101)]})], how="diagonal").with_columns(
        pl.col("who").fill_null("user 1"), pl.col("euros").fill_null("1,00 €"), title=pl.col("what")
    )
    with pytest.raises(ValueError, match="'own' allows at most 100 features, but .* give 107"):
        load(frame, tmp_path, features=["title"])


def test_compare_on_recorded_rewards(tmp_path: Path) -> None:
    sales().write_csv(tmp_path / "sales.csv")
    columns = ",".join(f"{role}={name}" for role, name in {**COLUMNS, "time": "hour", "feature": "price"}.items())
    real = ("--data", "table", "--path", "sales.csv", "--columns", columns, "--users", "8")
    size = ("--policies", "locb,linucb-one", "--repeats", "1", "--jobs", "1", "--output", "out")
    done = call("compare", *real, *size, "--reward-range", "0,100", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "240 rounds, 1 repeat" in text  # one per record
    assert "Each round offers only items for which the user has a recorded reward, so rewards are no estimate" in text
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["settings"]["rounds"] == 240
    assert (tmp_path / "out" / "users.png").exists()
    assert record["results"][0]["reward"][0] > 1.0  # euros
    done = call("compare", *real, *size, "--rounds", "241", cwd=tmp_path)
    assert "locb: --rounds must be at most 240, the number of rounds of environment table, not 241" in done.stderr


def test_compare_on_likes_states_that_rewards_are_no_estimate(tmp_path: Path) -> None:
    sales().write_csv(tmp_path / "sales.csv")
    real = ("--data", "table", "--path", "sales.csv", "--columns", "user=who,item=what,rating=price", "--users", "8")
    size = ("--policies", "linucb-one", "--rounds", "50", "--repeats", "1", "--jobs", "1", "--output", "out")
    done = call("compare", *real, *size, "--like-above", "10", "--arms", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "Each round offers one liked item and 2 items with reward 0, so rewards are no estimate of what a" in text
    done = call("compare", *real, *size, "--like-above", "10", "--offer", "recorded", cwd=tmp_path)
    assert done.stderr.startswith("locb: --like-above is allowed only with --offer 'one-liked', not with 'recorded'")


def test_data_prints_the_rewards(tmp_path: Path) -> None:
    sales().write_csv(tmp_path / "sales.csv")
    columns = "user=who,item=what,reward=euros,time=hour,feature=price"
    done = call("data", "table", "sales.csv", "--columns", columns, "--users", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    low, high = amounts(sales()).min(), amounts(sales()).max()
    assert f"rewards {low:g} to {high:g}, mean" in text
    assert "rounds 240, one per record that is used in rounds, in the order of time" in text
    assert "features from the columns that describe the items" in text
