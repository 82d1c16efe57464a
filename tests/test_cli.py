"""The commands ``locb compare`` and ``locb data``."""

import json
import re
from pathlib import Path

import pytest

import locb
from commandline import CUSTOM_POLICY, call, run
from datasets import files

SMALL = ["--rounds", "400", "--repeats", "2", "--users", "12", "--clusters", "2", "--arms", "4"]


def test_compare_prints_a_table_and_writes_a_folder(tmp_path: Path) -> None:
    done = run("compare", *SMALL, "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for name in ("locb", "eloc", "linucb-one", "linucb-ind", "club", "sclub"):
        assert name in done.stdout
    assert "has the lowest regret" in done.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "regret.png",
        "report.html",
        "run.json",
        "users.png",
    ]
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["settings"]["environment"]["noise"] == "bernoulli"


def test_default_folder_is_new(tmp_path: Path) -> None:
    done = call("compare", *SMALL, "--policies", "linucb-one", "--noise", "0.1", "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("compare-")
    assert json.loads((folder / "run.json").read_text())["settings"]["environment"]["noise"] == 0.1


def test_narrow_terminal_truncates_nothing(tmp_path: Path) -> None:
    done = call("compare", *SMALL, "--jobs", "1", "--output", "out", cwd=tmp_path, width=80)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout.split("Running")[-1], done.stdout


def test_reward_range_and_the_note_without_it(tmp_path: Path) -> None:
    arguments = ("compare", *SMALL, "--policies", "locb,linucb-ind", "--noise", "5", "--jobs", "1")
    done = call(*arguments, "--output", "plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        " ".join(done.stdout.split()).count("At least one policy assumes rewards of about 0 to 1, but rewards from -")
        == 1
    )
    assert "--reward-range low,high" in done.stdout
    assert done.stderr == ""
    record = json.loads((tmp_path / "plain" / "run.json").read_text())
    assert "--reward-range" in record["notes"][0]
    assert record["settings"]["reward_range"] is None
    done = call(*arguments, "--reward-range", "-20,21", "--output", "ranged", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rewards of about 0 to 1" not in done.stdout
    record = json.loads((tmp_path / "ranged" / "run.json").read_text())
    assert record["notes"] == []
    assert record["settings"]["reward_range"] == [-20.0, 21.0]


def test_reward_range_cannot_be_used_with_scenarios(tmp_path: Path) -> None:
    done = call("compare", "--scenarios", "all", "--reward-range", "0,5", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("locb: --reward-range cannot be used with --scenarios")


def test_reward_range_needs_policies_with_the_parameter(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CUSTOM_POLICY)
    done = call("compare", *SMALL, "--policies", "mine.py:Mine", "--reward-range", "0,5", cwd=tmp_path)
    assert done.returncode == 2
    reason = "because the policy 'Mine' does not have this parameter; omit --reward-range or the policy"
    assert done.stderr == f"locb: --reward-range cannot be set, {reason}\n"


def test_policy_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CUSTOM_POLICY)
    done = call(
        "compare", *SMALL, "--policies", "mine.py:Mine,linucb-one", "--jobs", "1", "--output", "out", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *Mine +– +\d", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "ucb"], "locb: --policies: unknown policy 'ucb'; choose from"),
        (["--policies", ","], "locb: --policies must have at least one element"),
        (["--policies", "none.py:X"], "locb: --policies: no file 'none.py'"),
        (["--alphas", "much"], "locb: --alphas must be a number, not 'much'"),
        (["--noise", "loud"], "locb: --noise must be 'bernoulli' or a number, not 'loud'"),
        (["--noise", "-1"], "locb: --noise must be 'bernoulli', a finite standard deviation"),
        (["--arrivals", "never"], "locb: --arrivals must be one of"),
        (["--clusters", "50"], "locb: --clusters must be at most --users = 12, not 50"),
        (["--rounds", "0"], "locb: --rounds must be at least 1"),
        (["--gamma", "-1"], "locb: --gamma must be above 0, not -1.0"),
        (["--output", "file/below"], "locb: "),
        (["--output", "file"], "locb: --output: file is a file, not a folder"),
        (["--jobs", "0"], "locb: --jobs must be -1 or at least 1, not 0"),
        (["--alphas", "1,1"], "locb: --alphas must be distinct, not 1.0, 1.0"),
        (
            ["--reward-range", "5"],
            "locb: --reward-range must be two numbers separated by a comma, such as 0,5, not '5'",
        ),
        (["--reward-range", "5,-1"], "locb: --reward-range must be (low, high), where high exceeds low by at least"),
    ],
)
def test_invalid_option_gives_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = call("compare", *SMALL, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [("compare", "--policies", "ucb"), ("data", "movielens", ".")])
def test_exit_code_and_output_of_the_process(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """The output of a subprocess equals that of a call in this process."""
    alone, here = run(*arguments, cwd=tmp_path), call(*arguments, cwd=tmp_path)
    assert (alone.returncode, alone.stdout, alone.stderr) == (here.returncode, here.stdout, here.stderr)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has no class 'Mine' that derives from locb.Policy"),
        ("class Mine: pass", "has no class 'Mine' that derives from locb.Policy"),
        ("import nowhere", "ModuleNotFoundError"),
    ],
)
def test_file_without_a_policy(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(text)
    done = call("compare", "--policies", "mine.py:Mine", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_help_and_version(tmp_path: Path) -> None:
    shown = call("compare", "--help", cwd=tmp_path)
    assert shown.returncode == 0
    for text in ("--alphas", "--n-seeds", "Examples", "report.html", "bernoulli"):
        assert text in shown.stdout
    assert run("--version", cwd=tmp_path).stdout == f"locb {locb.__version__}\n"
    commands = re.findall(r"^│ (\w+) +[A-Z].*│$", call("--help", cwd=tmp_path).stdout, re.MULTILINE)
    names = "compare data demo evaluate groups load reproduce serve store tune verify warmup watch"
    assert " ".join(sorted(commands)) == names


def test_data_prints_a_summary_and_writes_a_map(tmp_path: Path) -> None:
    folder = files.movielens_csv(tmp_path / "ml")
    everything = ("--features-from", "all")
    done = call("data", "movielens", "ml", "--users", "8", "--cache-dir", "cache", *everything, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in (
        f"{len(files.stars())}",
        "share of likes",
        "records per user in the pool",
        "true groups at gamma",
        "all records, including those used in rounds",
    ):
        assert text in done.stdout
    assert (tmp_path / "users-movielens.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "cache").is_dir()
    assert (
        "note: n_users is 100, but the number of eligible users is 8"
        in call("data", "movielens", str(folder), *everything, cwd=tmp_path).stdout
    )


@pytest.mark.parametrize("name", ["movielens", "yelp", "yahoo", "table"])
def test_compare_runs_on_data(name: str, tmp_path: Path) -> None:
    more = ["--cache-dir", "cache"]
    if name == "table":
        rows = "".join(f"u{user},{movie},{star}\n" for user, movie, star in files.stars())
        (tmp_path / "data").write_text("")
        path = tmp_path / "likes.csv"
        path.write_text("who,what,stars\n" + rows)
        more += STARS
    else:
        make = {"movielens": files.movielens_csv, "yelp": files.yelp, "yahoo": files.yahoo}[name]
        path = make(tmp_path / "data")
    size = ["--users", "6", "--arms", "3", "--rounds", "300", "--repeats", "2", "--jobs", "1"]
    size += ["--policies", "locb,linucb-ind"]
    done = call("compare", "--data", name, "--path", str(path), *size, *more, "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "has the lowest regret" in done.stdout
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["settings"]["environment"]["data"] == name
    assert (tmp_path / "out" / "users.png").exists()


def write_table(path: Path, n_users: int, n_items: int, separator: str = ",", *, header: bool = True) -> None:
    rows = [[f"u{user}", f"i{item}", str(1 + user * item % 5)] for user in range(n_users) for item in range(n_items)]
    names = [["who", "what", "stars"]] if header else []
    path.write_text("\n".join(separator.join(row) for row in [*names, *rows]))


STARS = ("--offer", "one-liked", "--columns", "user=who,item=what,rating=stars", "--features-from", "all")
COMPARE_TABLE = ("--policies", "linucb-one", "--rounds", "50", "--repeats", "1", "--jobs", "1", "--output", "out")


def test_table_with_fewer_items_than_arms(tmp_path: Path) -> None:
    """The number of arms follows the number of items, unless --arms is given."""
    write_table(tmp_path / "few.csv", 20, 4)
    done = call("data", "table", "few.csv", *STARS, "--users", "15", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: the number of items is 4, so a round has 4 arms instead of 10" in done.stdout
    real = ("compare", "--data", "table", "--path", "few.csv", *STARS, "--users", "15", *COMPARE_TABLE)
    done = call(*real, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "so a round has 4 arms" in done.stdout
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "n_arms" not in record["settings"]["environment"]
    done = call(*real, "--arms", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "so a round has" not in done.stdout
    assert json.loads((tmp_path / "out" / "run.json").read_text())["settings"]["environment"]["n_arms"] == 3
    done = call(*real, "--arms", "5", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("locb: --arms must be at most the number of items, 4, not 5")


def test_data_with_too_few_users_for_groups(tmp_path: Path) -> None:
    """If no gamma puts half of the users in groups, the summary and the map say so."""
    write_table(tmp_path / "small.csv", 4, 12)
    done = call("data", "table", "small.csv", *STARS, "--users", "3", "--output", "map.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    image = (tmp_path / "map.svg").read_text()
    for text in (done.stdout, image):
        assert re.search(r"\binf\b", text) is None
        assert "no gamma puts half of the users in groups" in " ".join(text.split())


def test_data_shows_the_threshold_of_likes(tmp_path: Path) -> None:
    write_table(tmp_path / "likes.csv", 20, 12)
    stars = [int(line.rsplit(",", 1)[1]) for line in (tmp_path / "likes.csv").read_text().splitlines()[1:]]
    above = {limit: f"{sum(star > limit for star in stars) / len(stars):.1%}" for limit in (2, 3)}
    table = ("data", "table", "likes.csv", *STARS, "--users", "15")
    for more, rule, share in [
        ((), "ratings above 3 (default)", above[3]),
        (("--like-above", "2"), "ratings above 2", above[2]),
        (("--like-above", "q50"), "ratings above 2 (q50)", above[2]),
    ]:
        done = call(*table, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"likes +{re.escape(rule)} *\n", done.stdout), done.stdout
        assert re.search(rf"share of likes +{share} *\n", done.stdout), done.stdout
    done = call(
        "compare", "--data", "table", "--path", "likes.csv", *STARS, "--users", "15", *COMPARE_TABLE, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert f"Likes are ratings above 3 (default): {above[3]} of 240 records." in " ".join(done.stdout.split())
    assert "Likes are ratings above 3 (default)" in (tmp_path / "out" / "report.html").read_text()


def test_absurd_split_of_ratings_is_refused(tmp_path: Path) -> None:
    """Play counts need a threshold: the message names the share of likes and the option."""
    rows = "".join(f"u{n % 20},i{n // 20},{n + 1}\n" for n in range(240))
    (tmp_path / "plays.csv").write_text("who,what,plays\n" + rows)
    columns = (
        "--offer",
        "one-liked",
        "--columns",
        "user=who,item=what,rating=plays",
        "--users",
        "15",
        "--features-from",
        "all",
    )
    for command in (("data", "table", "plays.csv"), ("compare", "--data", "table", "--path", "plays.csv")):
        done = call(*command, *columns, *(COMPARE_TABLE if command[0] == "compare" else ()), cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("locb: --like-above must be set for plays.csv: 98.8% of 240 ratings"), done.stderr
        assert "'q75'" in done.stderr
        more = (*columns, "--like-above", "q75", *(COMPARE_TABLE if command[0] == "compare" else ()))
        done = call(*command, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "ratings above 180 (q75)" in done.stdout
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["settings"]["environment"]["like_above"] == "q75"


def test_scenarios_with_a_table(tmp_path: Path) -> None:
    rows = "".join(f"u{user},i{movie},{star}\n" for user, movie, star in files.stars())
    (tmp_path / "likes.csv").write_text("who,what,stars\n" + rows)
    items = "".join(f"i{movie},{'|'.join(genres)}\n" for movie, _, genres in files.titles())
    (tmp_path / "items.csv").write_text("what,genres\n" + items)
    real = ("--data", "table", "--path", "likes.csv", *STARS, "--item-features", "items.csv", "--like-above", "2")
    size = ("--policies", "linucb-one,linucb-ind", "--rounds", "100", "--repeats", "1", "--jobs", "1")
    done = call("compare", "--scenarios", "two-clusters", *real, *size, "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("two-clusters", "table-rated", "table-any"):
        assert name in done.stdout
    jobs = [json.loads(file.read_text())["job"] for file in (tmp_path / "out" / "runs").iterdir()]
    settings = [job["environment"] for job in jobs if job["data"].startswith("table")]
    assert len(settings) >= 2 * 2  # scenarios, policies; a run has all alphas, and a grid can be extended
    assert {environment["like_above"] for environment in settings} == {2.0}
    # The paths are absolute, so that the command can be repeated in another folder.
    assert {environment["path"] for environment in settings} == {str(tmp_path / "likes.csv")}
    assert {environment["item_features"] for environment in settings} == {str(tmp_path / "items.csv")}


@pytest.mark.parametrize(
    ("name", "separator", "options"),
    [
        ("likes.csv", ";", ()),
        ("likes.dat", "::", ()),
        ("likes.data", "\t", ("--separator", "tab")),
        ("likes.data", "\t", ("--separator", "\\t")),
        ("likes.csv", "^", ("--separator", "^")),
    ],
)
@pytest.mark.parametrize("header", [True, False])
def test_data_reads_other_separators(
    header: bool, name: str, separator: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    write_table(tmp_path / name, 20, 12, separator, header=header)
    columns = STARS if header else (*STARS[:2], "--no-header", "--columns", "user=1,item=2,rating=3")
    done = call("data", "table", name, *columns, *options, "--users", "15", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"records +240 *\n *users +20 *\n *items +12 *\n", done.stdout), done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "--data", "movielens"], "locb: --path is required with --data movielens"),
        (["compare", "--data", "netflix", "--path", "."], "locb: --data must be one of movielens, yelp, yahoo, table"),
        (["compare", "--data", "movielens", "--path", "."], "locb: . has no MovieLens data"),
        (["data", "movielens", ".", "--output", "x.jpg"], "locb: --output must end in .png or .svg, not 'x.jpg'"),
        (
            ["compare", "--data", "yelp", "--path", "gone"],
            "locb: [Errno 2] Path of the Yelp data does not exist: 'gone'",
        ),
        (
            ["compare", "--data", "movielens", "--path", ".", "--noise", "1"],
            "locb: --noise is an option of the synthetic",
        ),
        (["compare", "--path", "."], "locb: --path requires --data"),
        (
            ["compare", "--data", "yelp", "--path", ".", "--columns", "user=a"],
            "locb: --columns is allowed only with the data set 'table', not with 'yelp'",
        ),
        (["data", "table", "x.csv", "--columns", "user=a"], "locb: --columns must set item"),
        (
            ["data", "table", "x.csv", "--columns", "who=a"],
            "locb: --columns must consist of ROLE=COLUMN, where ROLE is user, item, rating, reward, time or feature",
        ),
        (
            ["compare", "--scenarios", "all", "--data", "table", "--path", "x.csv", *STARS, "--offer", "recorded"],
            "locb: --offer recorded cannot be used with --scenarios",
        ),
        (["data", "table", "x.csv"], "locb: --columns is required for a table: user="),
        (
            ["data", "yelp", ".", "--separator", ";"],
            "locb: --separator is allowed only with the data set 'table', not with 'yelp'",
        ),
        (
            ["data", "yahoo", ".", "--no-header"],
            "locb: --no-header is allowed only with the data set 'table', not with 'yahoo'",
        ),
        (
            ["data", "yahoo", ".", "--like-above", "3"],
            "locb: --like-above requires ratings; yahoo has clicks, so omit the option",
        ),
        (["compare", "--like-above", "3"], "locb: --like-above requires --data"),
        (["data", "yahoo", "--download", "ml-1m"], "locb: --download is available for movielens only"),
        (["data", "movielens", "--download", "ml-7"], "locb: --download must be one of ml-latest-small"),
        (["data", "movielens"], "locb: PATH is required: the files of movielens"),
    ],
)
def test_invalid_data_option_gives_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(message), done.stderr
    assert "Traceback" not in done.stderr
