"""Yelp: folder and archive, labels, and invalid lines."""

from pathlib import Path

import numpy as np
import pytest

import locb
from datasets import files
from locb.datasets.yelp import Business, business_labels


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))


def load(path: Path) -> locb.Interactions:
    return locb.datasets.yelp(path, n_users=files.USERS, n_arms=3, dim=4, features_from="all")


def test_folder_and_tar_give_the_same_environment(tmp_path: Path) -> None:
    folder = files.yelp(tmp_path / "yelp")
    env = load(folder)
    assert env.about["records"] == len(files.stars())
    assert env.about["share_of_likes"] == pytest.approx(np.mean([max(1, round(s)) > 3 for _, _, s in files.stars()]))
    packed = load(files.tarred(folder, tmp_path / "yelp_dataset.tgz"))
    assert np.array_equal(env.theta, packed.theta)


def test_labels_of_a_business() -> None:
    new = Business(
        "b", "Food, Wine Bars", {"WiFi": "u'free'", "Alcohol": "None", "Parking": {"lot": True}, "TV": "False"}
    )
    assert sorted(business_labels(new)) == ["Food", "Parking={'lot': True}", "WiFi=u'free'", "Wine Bars"]
    assert list(business_labels(Business("b", None, None))) == []
    assert list(business_labels(Business("b", ["Pubs"], ["Garage"]))) == ["Pubs", "Garage=True"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"user_id": "u", "business_id": "b"}', "line 3: .*missing required field `stars`"),
        ('{"user_id": "u", "business_id": "b", "stars": null}', "line 3: .*stars"),
        ('{"user_id": "u", "business_id"', "line 3: .*truncated"),
        ('{"user_id": "\xff"', "line 3"),
    ],
)
def test_invalid_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    folder = files.yelp(tmp_path / "yelp")
    path = folder / "yelp_academic_dataset_review.json"
    lines = path.read_bytes().splitlines()
    lines.insert(2, line.encode("latin-1"))
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=message):
        load(folder)
    assert not (tmp_path / "cache").exists()


def test_missing_business_file(tmp_path: Path) -> None:
    folder = files.yelp(tmp_path / "yelp")
    (folder / "yelp_academic_dataset_business.json").unlink()
    with pytest.raises(ValueError, match="but not yelp_academic_dataset_business.json"):
        load(folder)
    (folder / "yelp_academic_dataset_review.json").write_text("")
    (folder / "yelp_academic_dataset_business.json").write_text("")
    with pytest.raises(ValueError, match="has no records"):
        load(folder)
