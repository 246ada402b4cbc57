"""The state of a sweep under any order of events: nothing is begun twice, over capacity, or forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from ascend_gym.sweep.jobs import RunEnd, RunEnding, RunStep, SweepJob, Update
from ascend_gym.sweep.sweep_state import ATTEMPTS_WITHOUT_PROGRESS, DaemonSlots, SweepState

CHIPS = ("910B1", "910B2")


def _jobs(chips):
    return [SweepJob(f"job{at}", "m", "o", at, 5, chip, b"{}") for at, chip in enumerate(chips)]


def _daemons(limits):
    return [DaemonSlots(f"d{at}", chip, runs) for at, (chip, runs) in enumerate(limits)]


events = st.lists(
    st.tuples(
        st.sampled_from(["start", "step", "end", "stale", "wait"]),
        st.integers(0, 30),
        st.sampled_from(RunEnding),
    ),
    max_size=80,
)


@given(
    chips=st.lists(st.sampled_from(CHIPS), min_size=1, max_size=6),
    limits=st.lists(st.tuples(st.sampled_from([None, *CHIPS]), st.integers(1, 3)), min_size=1, max_size=3),
    capacity=st.integers(0, 4),
    events=events,
)
def test_slots_are_kept_whatever_happens(chips, limits, capacity, events):
    state = SweepState.of(_jobs(chips), _daemons(limits))
    now_s, attempts, began = 0.0, {}, set()
    for kind, number, ending in events:
        running = state.running
        if kind == "start":
            for start in state.starts(now_s, capacity):
                assert start.job.job_id not in began
                assert start.attempt == attempts.get(start.job.job_id, 0) + 1
                attempts[start.job.job_id] = start.attempt
                began.add(start.job.job_id)
        elif kind == "wait":
            now_s += number
        elif running:
            chosen = running[number % len(running)]
            job_id = chosen.job.job_id
            stale = Update(job_id, chosen.attempt - 1, "h", end=RunEnd(ending))
            assert not state.is_current(stale)
            if kind == "step":
                step = RunStep(chosen.index + 1, "ok", chosen.index + 1, 100.0, 50.0)
                state.observe(Update(job_id, chosen.attempt, "h", steps=(step,)), now_s)
                assert (chosen.speedup, chosen.fruitless) == (2.0, 0)
            elif kind == "end":
                state.observe(Update(job_id, chosen.attempt, "h", end=RunEnd(ending)), now_s)
                began.discard(job_id)
                if ending not in (RunEnding.LOST, RunEnding.INFRASTRUCTURE):
                    assert chosen.end is not None
        _check(state, capacity, began)


def _check(state, capacity, began):
    running = state.running
    assert {each.job.job_id for each in running} == began
    assert len(running) <= capacity
    for daemon in state.daemons:
        users = [each for each in running if each.daemon is daemon]
        assert daemon.running == len(users) <= daemon.runs
        assert all(daemon.chip in (None, each.job.chip) for each in users)


def test_a_run_that_never_gets_anywhere_is_given_up():
    state = SweepState.of(_jobs(["910B2"]), [DaemonSlots(None)])
    for attempt in range(1, ATTEMPTS_WITHOUT_PROGRESS + 1):
        assert not state.done
        (start,) = state.starts(0.0, 1)
        assert start.attempt == attempt
        state.observe(Update("job0", attempt, "h", end=RunEnd(RunEnding.LOST, "gone")), 0.0)
    assert state.done
    assert state.jobs["job0"].end == RunEnd(RunEnding.LOST, "gone")


def test_a_broken_daemon_is_paused_for_longer_each_time_and_progress_forgives_it():
    daemon = DaemonSlots("d", runs=1)
    state = SweepState.of(_jobs(["910B2"]), [daemon])
    pauses = []
    for attempt in (1, 2):
        state.starts(daemon.paused_until_s, 1)
        now_s = 1000.0 * attempt
        state.observe(Update("job0", attempt, "h", end=RunEnd(RunEnding.INFRASTRUCTURE)), now_s)
        assert state.starts(daemon.paused_until_s - 0.1, 1) == []
        pauses.append(daemon.paused_until_s - now_s)
    assert pauses[1] == 2 * pauses[0]
    state.starts(daemon.paused_until_s, 1)
    state.observe(Update("job0", 3, "h", steps=(RunStep(0, "ok", 0, 1.0, 1.0),)), 5000.0)
    assert daemon.failures == 0
