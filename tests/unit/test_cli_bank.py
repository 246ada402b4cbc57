"""``ascend-gym bank`` on a toy: build, go on, show, query, merge, export."""

import json

import pytest
from conftest import FakeEvaluator
from experiences import make_diff, make_experience
from test_bank_construction import Model

from agents.ascend_optimizer.bank import ExperienceBank
from ascend_gym.suite.loader import load_operator


@pytest.fixture
def run(monkeypatch, run, toy_folder):
    """Run a command on banks; return exit status, standard output and standard error."""
    fake = FakeEvaluator()
    monkeypatch.setattr("ascend_gym.client.connect", lambda address, options: fake)
    monkeypatch.setattr("npu_daemon.simulator.toolchain.obtain_toolchain", lambda *_: None)
    monkeypatch.setattr("ascend_gym.cli.models.model_named", lambda name, **_: Model())
    toy = load_operator("toy", op_dir=toy_folder)
    monkeypatch.setattr("ascend_gym.cli.bank.list_operators", lambda suite: [toy])

    def invoke(*arguments):
        return run("bank", *arguments)

    invoke.evaluator = fake
    return invoke


def _save(path, *experiences):
    ExperienceBank(experiences).save(path)
    return path


def test_build_writes_a_bank_and_tells_how_it_goes(run, tmp_path):
    status, _, told = run("build", "--budget", 3, "--out", "b.jsonl")
    assert status == 0
    bank = ExperienceBank.load(tmp_path / "b.jsonl")
    assert bank.motifs == ["motif_b", "motif_c", "motif_d"]
    assert "local/toy 1/3 rewind motif_b: 120.00 us" in told
    assert "3 validated pairs in 3 evaluations, tau_noise 0.50%" in told
    assert "b.jsonl: 3 experiences, 3 motifs" in told


def test_a_build_keeps_to_its_tokens(run):
    status, _, told = run("build", "--budget", 3, "--tokens", 100, "--out", "b.jsonl")
    assert status == 2
    assert "rewind" not in told.partition("no rewind was validated")[0]
    assert len(run.evaluator.requests) == 6  # the baseline, and five times for its noise


def test_the_same_command_gives_the_same_bytes_and_evaluates_nothing_twice(run, tmp_path):
    run("build", "--budget", 3, "--out", "b.jsonl")
    first, asked = (tmp_path / "b.jsonl").read_bytes(), len(run.evaluator.requests)
    run("build", "--budget", 3, "--out", "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == first
    assert len(run.evaluator.requests) == asked
    run("build", "--budget", 3, "--out", "elsewhere.jsonl")
    assert (tmp_path / "elsewhere.jsonl").read_bytes() == first
    assert len(run.evaluator.requests) == 2 * asked


def test_an_interrupted_build_says_how_to_go_on(run, monkeypatch):
    def interrupted(request):
        raise KeyboardInterrupt

    monkeypatch.setattr(run.evaluator, "submit", interrupted)
    status, _, told = run("build", "--budget", 3)
    assert status == 130
    assert "the same command resumes it" in told


def test_a_build_without_any_pair_is_no_bank(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Model, "_rewound", lambda self: "no idea")
    status, _, told = run("build", "--budget", 3)
    assert status == 2
    assert "no rewind was validated" in told
    assert not (tmp_path / "bank.jsonl").exists()


def test_show_selects_and_counts(run, tmp_path):
    bank = _save(
        tmp_path / "b.jsonl", make_experience(), make_experience(operator="core/gelu", motif="tile_size")
    )
    status, shown, _ = run("show", "--bank", bank)
    assert status == 0
    assert "core/toy  barrier_removal  12.00 -> 10.00 us (1.20x)  Let the pipes run" in shown
    assert "2 experiences; 2 motifs: barrier_removal 1, tile_size 1" in shown
    document = json.loads(run("show", "--bank", bank, "--json")[1])
    assert len(document["experiences"]) == sum(document["motifs"].values()) > 0
    assert {each["motif"] for each in document["experiences"]} == set(document["motifs"])
    _, shown, _ = run("show", "--bank", bank, "--operator", "gelu")
    assert "1 experiences; 1 motifs: tile_size 1" in shown
    _, shown, _ = run("show", "--bank", bank, "--motif", "nothing")
    assert "0 experiences; 0 motifs: none" in shown


def test_query_finds_by_symptom(run, tmp_path):
    slow_copy = {
        "bottleneck": "MTE2 moves few bytes per burst",
        "motif": "tile_size",
        "code_diff": make_diff("x"),
    }
    bank = _save(tmp_path / "b.jsonl", make_experience(), make_experience(**slow_copy))
    status, shown, _ = run("query", "short bursts", "-k", 1, "--bank", bank)
    assert status == 0
    assert "tile_size" in shown
    assert "MTE2 moves few bytes per burst" in shown
    assert "barrier_removal" not in shown
    assert run("query", "short bursts", "--key", "title", "--bank", bank)[0] == 2


def test_merge_puts_banks_together(run, tmp_path):
    one = _save(tmp_path / "1.jsonl", make_experience())
    two = _save(tmp_path / "2.jsonl", make_experience(slow_us=50.0), make_experience(operator="core/gelu"))
    assert run("merge", one, two, "--out", "3.jsonl")[0] == 0
    assert run("merge", two, one, "--out", "4.jsonl")[0] == 0
    merged = ExperienceBank.load(tmp_path / "3.jsonl")
    assert [(each.operator, each.slow_us) for each in merged] == [("core/gelu", 12.0), ("core/toy", 50.0)]
    assert (tmp_path / "3.jsonl").read_bytes() == (tmp_path / "4.jsonl").read_bytes()
    assert run("merge", one, tmp_path / "none.jsonl", "--out", "5.jsonl")[0] == 2


def test_export_as_a_page_and_as_json(run, tmp_path):
    bank = _save(tmp_path / "b.jsonl", make_experience())
    _, page, _ = run("export", "--bank", bank)
    assert page.startswith("# Experience bank: 1 experiences of 1 motifs\n\n## 1. Let the pipes run\n")
    assert "```diff\n--- a/op_kernel/toy.cpp\n" in page
    assert "- aiv_time: 12 -> 10\n" in page
    _, text, _ = run("export", "--bank", bank, "--format", "json")
    assert json.loads(text) == [make_experience().model_dump(mode="json")]


def test_a_bank_that_is_none_is_named(run, tmp_path):
    (tmp_path / "b.jsonl").write_text("{}\n")
    status, _, told = run("show", "--bank", "b.jsonl")
    assert status == 2
    assert "b.jsonl:1: no experience" in told
