"""The scripts of examples/paper at their smallest size: are their tables plausible?"""

import csv
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "paper"
SCRIPTS = ("fig1", "fig3", "table2", "fig4", "fig6", "supplement_alpha", "fig7")
SCRIPTS += ("fig8", "table3", "fig9")
RANKING = ["KL", "MAW", "IAW", "coupling", "IAW debiased", "MAW pooled prior"]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Run the report at its smallest size; return its folder."""
    out = tmp_path_factory.mktemp("paper")
    sys.path.insert(0, str(FOLDER))
    try:
        import_module("report").main(["--smoke", "--jobs", "1", "--out", str(out)])
    finally:
        sys.path.remove(str(FOLDER))
    return out


def rows_of(output, name, **where):
    with open(output / f"{name}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if all(row[k] == v for k, v in where.items())]


def numbers(rows, column):
    return np.array([float(row[column]) for row in rows])


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_saves_figure_and_full_table(output, name):
    pictures = list(output.glob(f"{name}*.png"))
    assert pictures
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)
    rows = rows_of(output, name)
    assert rows
    assert all(cell.strip() for row in rows for cell in row.values())
    assert "nan" not in {cell for row in rows for cell in row.values()}


@pytest.mark.parametrize("name", ["fig3", "fig4", "fig6", "fig7", "fig8"])
def test_every_competitor_has_a_row(output, name):
    methods = {row["method"] for row in rows_of(output, name)}
    assert {*RANKING, "SVM on MAW", "mean/std", "DTW"} <= methods


@pytest.mark.parametrize("name", ["fig3", "fig4", "fig6", "fig7", "fig8", "table3"])
def test_scores_are_between_0_and_1(output, name):
    skipped = {"groups", "k", "lost", "n_timesteps", "step"}
    cells = [
        float(cell)
        for row in rows_of(output, name)
        for column, cell in row.items()
        if column not in skipped and is_number(cell)
    ]
    assert min(cells) >= 0
    assert max(cells) <= 1


def test_fig1_mean_distances_match_formulas(output):
    rows = rows_of(output, "fig1_curves", differ_in="means", distance="W2")
    steps = numbers(rows, "step")
    np.testing.assert_allclose(
        numbers(rows, "mean")[1:], 0.5 * np.sqrt(2) * steps[1:], rtol=0.15
    )
    # The divergence of Gaussians that differ in the mean alone is half its square.
    rows = rows_of(output, "fig1_curves", differ_in="means", distance="KL reversed")
    np.testing.assert_allclose(
        numbers(rows, "mean")[1:], 0.25 * steps[1:] ** 2, rtol=0.3
    )


def test_fig3_finds_the_classes(output):
    for method in RANKING:
        row = rows_of(output, "fig3", differ_in="means", method=method)
        # By chance, 9 of 49 items are relevant.
        assert numbers(row, "mean average precision")[0] > 0.4
    curves = rows_of(output, "fig3_curves", differ_in="means", method="MAW")
    precision = numbers(curves, "precision")
    assert precision[0] > precision[-1] > 0


def test_table2_has_positive_times_and_the_papers_times(output):
    rows = [r for r in rows_of(output, "table2") if r["method"] != "DTW"]
    assert np.all(numbers(rows, "ms per pair") > 0)
    published = rows_of(output, "table2", setting="synthetic", method="IAW")
    assert published[0]["paper, ms per pair"] == "57.9"


def test_fig4_larger_scales_are_easier(output):
    for differ_in in ("means", "transitions"):
        rows = rows_of(output, "fig4_settings", differ_in=differ_in, method="MAW")
        auc = numbers(rows, "AUC")
        assert len(auc) == 4
        assert auc[-1] > max(auc[0], 0.5)


def test_fig6_curves_have_every_group(output):
    curves = rows_of(output, "fig6_curves", method="MAW")
    assert {row["group"] for row in curves} == {"group_0", "group_1"}
    assert np.mean(numbers(rows_of(output, "fig6", method="MAW"), "AUC")) > 0.5


def test_chosen_alpha_has_the_best_score_of_its_curve(output):
    rows = rows_of(output, "supplement_alpha")
    best = numbers(rows, "at the choice")
    assert np.all(best >= numbers(rows, "accuracy at alpha = 0"))
    assert np.all((numbers(rows, "alpha") >= 0) & (numbers(rows, "alpha") <= 1))


def test_fig7_lost_channels_leave_kl_at_chance(output):
    rows = rows_of(output, "fig7", method="KL")
    lost = numbers(rows, "lost")
    auc = numbers(rows, "AUC")
    np.testing.assert_allclose(auc[lost > 0], 0.5)
    assert np.mean(auc[lost == 0]) > 0.5
    kept = rows_of(output, "fig7", method="MAW", lost="1")
    assert np.mean(numbers(kept, "AUC")) > 0.5


def test_fig8_confusions_count_every_test_item(output):
    rows = rows_of(output, "fig8_confusion", groups="6", method="MAW")
    hits = [row for row in rows if row["true"] == row["predicted"]]
    fraction = numbers(hits, "count").sum() / numbers(rows, "count").sum()
    accuracy = rows_of(output, "fig8", groups="6", method="MAW")
    np.testing.assert_allclose(
        fraction, numbers(accuracy, "accuracy, last iteration")[0], rtol=1e-4
    )


def test_table3_has_twelve_rows_and_the_papers_columns(output):
    rows = rows_of(output, "table3")
    assert [row["k"] for row in rows] == [str(k) for k in range(1, 13)]
    assert rows[4]["paper: IAW"] == "0.584"
    assert numbers(rows, "MAW")[0] > 0.25


def test_fig9_draws_every_phoneme(output):
    points = rows_of(output, "fig9_points", method="MAW")
    assert len(points) == 24
    assert len({row["phoneme"] for row in points}) == 4


def test_report_has_every_result_and_judges_every_ordering(output):
    text = (output / "report.md").read_text(encoding="utf-8")
    for name in SCRIPTS:
        assert f"![{name}" in text
    assert "|  |" not in text
    judged = text.count("| reproduced |") + text.count("| not reproduced |")
    # Each appears in the summary and in the section of its script.
    assert judged == 2 * 41


def test_scripts_have_the_same_options():
    for name in ("fig1", "report"):
        command = [sys.executable, str(FOLDER / f"{name}.py"), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for option in ("--quick", "--full", "--out", "--seed"):
            assert option in done.stdout
        assert "--smoke" not in done.stdout
