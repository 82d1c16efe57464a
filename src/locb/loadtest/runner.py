"""Event loop of a load test: send requests when they are due, count responses and errors."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from locb.loadtest.connection import Connection
from locb.loadtest.plan import Plan
from locb.loadtest.report import Report, summarize_latencies
from locb.loadtest.requests import DecisionRequest, RequestGenerator

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop
except ImportError:  # slower, same behaviour
    from asyncio import new_event_loop

TIMER_RESOLUTION = 0.001  # seconds; requests due within this time are sent at once, because timers are not finer
CHECK_INTERVAL = 0.1  # seconds between checks of progress, timeouts and the end
MIN_BACKOFF, MAX_BACKOFF = 0.05, 1.0  # seconds before a retry
RETRY_STATUSES = frozenset((429, 502, 503, 504))


class Progress(NamedTuple):
    """Progress of a load test."""

    elapsed: float  # seconds since the start
    answered: int  # successful responses so far
    per_second: float  # successful responses per second since the previous progress report
    waiting: int  # requests that are due but not sent yet
    errors: int  # failed attempts so far
    latencies: Mapping[str, Sequence[float]]  # in seconds, since the previous progress report, by kind as in ``Report``


class _DecisionResponse(msgspec.Struct):
    decision_id: str
    arm: str


class _RewardResponse(msgspec.Struct):
    decision_id: str
    reward: float


class _Job:
    """Request to send: a ping if ``decision`` is None, a reward if ``reward`` is set, otherwise a decision."""

    __slots__ = ("attempts", "decision", "due", "encoded", "reward")

    def __init__(
        self, due: float, encoded: bytes, decision: DecisionRequest | None = None, reward: int | None = None
    ) -> None:
        self.due, self.encoded, self.decision, self.reward, self.attempts = due, encoded, decision, reward, 0


def run(plan: Plan, progress: Callable[[Progress], bool | None] | None = None) -> Report:
    """Run a load test. Ctrl-C ends the load test early; the report then has the results so far.

    Parameters
    ----------
    plan : Plan
        Settings of the load test.
    progress : callable, optional
        Called about ten times per second with a :class:`Progress`. If it returns True, no new decisions are requested.

    Returns
    -------
    Report
        Throughput, latencies, errors and mean rewards. Errors after the start are counted, not raised.

    Raises
    ------
    ConnectionError
        If no connection can be opened at the start.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_LoadTest(plan).run(progress))


class _LoadTest:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clock = time.perf_counter  # the clock of some event loops has a resolution of 1 ms
        self.generator = RequestGenerator(plan)
        self._next_decision = iter(self.generator).__next__
        self._decision_decoder = msgspec.json.Decoder(_DecisionResponse)
        self._reward_decoder = msgspec.json.Decoder(_RewardResponse)
        self._random = random.Random(plan.seed)  # noqa: S311 - rewards, not secrets
        self.idle: list[Connection] = []
        self.busy: set[Connection] = set()
        self.waiting: deque[_Job] = deque()
        self.later: list[tuple[float, int, _Job]] = []  # heap of (due time, sequence number, job)
        self._opening: set[asyncio.Task[None]] = set()
        self._sequence = 0
        self._n_due = 0  # decisions that were due so far, with a rate
        self._n_posts = 0
        self.times = {kind: array("d") for kind in ("recommend", "reward", "ping")}
        self.means = array("d")  # of the recommended arm, a random arm and the best arm, per decision
        self.errors: Counter[str] = Counter()
        self.first_problem = ""
        self.retried = self.answered_before_end = self.answered = 0
        self.decisions: list[tuple[str, str, str]] = []
        self.rewards: list[tuple[str, float]] = []
        self.finished = False

    async def run(self, progress: Callable[[Progress], bool | None] | None) -> Report:
        """Connect, send requests until the end, and return the report."""
        self.loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        await self._open_connections()
        cpu, self.start = time.thread_time(), self.clock()
        self.end = self.start + self.plan.seconds
        try:
            self._tick()
            await self._wait_until_done(progress)
        except asyncio.CancelledError:
            self.end = min(self.end, self.clock())
        self.finished = True
        cpu = time.thread_time() - cpu
        left = len(self.busy) + len(self.waiting) + len(self.later)
        if left:
            self.errors["unanswered"] += left
        await self._close()
        return self._make_report(self.end - self.start, cpu)

    async def _wait_until_done(self, progress: Callable[[Progress], bool | None] | None) -> None:
        """Wait until every request is answered or has timed out, and report progress."""
        previous_count, previous_time = 0, self.start
        reported = dict.fromkeys(self.times, 0)  # latencies that were passed to ``progress``
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            now = self.clock()
            for connection in [c for c in self.busy if now - c.sent_at > self.plan.timeout]:
                job, connection.job = connection.job, None
                self.busy.discard(connection)
                self._count_failure(job, "timeout", True)
                connection.close()
            if progress is not None:
                per_second = (self.answered - previous_count) / (now - previous_time)
                new = {kind: times[reported[kind] :] for kind, times in self.times.items()}
                errors = self.errors.total()
                if progress(Progress(now - self.start, self.answered, per_second, len(self.waiting), errors, new)):
                    self.end = min(self.end, now)
                previous_count, previous_time = self.answered, now
                reported = {kind: len(times) for kind, times in self.times.items()}
            if now >= self.end and not (self.busy or self.waiting or self.later):
                return
            if now >= self.end + self.plan.delay + self.plan.timeout:
                return

    async def _open_connections(self) -> None:
        opened = await asyncio.gather(*(self._open() for _ in range(self.plan.connections)), return_exceptions=True)
        reasons = [error for error in opened if isinstance(error, BaseException)]
        if len(reasons) == len(opened):
            reason = str(reasons[0]) or "timeout"
            raise ConnectionError(f"{self.plan.url} is unreachable: {reason}; check that the service is running")
        for _ in reasons:
            self._reopen()

    async def _open(self) -> None:
        address = self.plan.address
        async with asyncio.timeout(self.plan.timeout):
            _, connection = await self.loop.create_connection(
                lambda: Connection(self), address.host, address.port, ssl=address.tls or None
            )
        self.idle.append(connection)

    def _reopen(self) -> None:
        if not self.finished:
            task = self.loop.create_task(self._open_with_retries())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_with_retries(self) -> None:
        pause = MIN_BACKOFF
        while not self.finished:
            try:
                await self._open()
            except (OSError, TimeoutError):
                await asyncio.sleep(pause)
                pause = min(2.0 * pause, MAX_BACKOFF)
            else:
                self._send()
                return

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._opening:
            task.cancel()
        for connection in [*self.idle, *self.busy]:
            connection.close()
        await asyncio.sleep(0)  # lets the connections close before the loop ends

    def _tick(self) -> None:
        """Queue the requests that are due, send them, and set the timer for the next request."""
        now = self.clock()
        soon = now + TIMER_RESOLUTION
        next_due = math.inf
        if self.plan.rate is not None and not self.finished:
            due = self.start + self._n_due / self.plan.rate
            while due <= soon and due < self.end:
                self.waiting.append(self._make_job(due))
                self._n_due += 1
                due = self.start + self._n_due / self.plan.rate
            if due < self.end:
                next_due = due
        while self.later and self.later[0][0] <= soon:
            self.waiting.append(heapq.heappop(self.later)[2])
        if self.later:
            next_due = min(next_due, self.later[0][0])
        self._send()
        self._timer, self._timer_at = None, math.inf
        if next_due < math.inf:
            self._set_timer(max(next_due - 0.75 * TIMER_RESOLUTION, soon))

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = self.loop.call_later(max(when - self.clock(), 0.0), self._tick), when

    def _schedule(self, due: float, job: _Job) -> None:
        """Send a request at the time ``due``."""
        self._sequence += 1
        heapq.heappush(self.later, (due, self._sequence, job))
        if due < self._timer_at:
            self._set_timer(due)

    def _make_job(self, due: float) -> _Job:
        if self.plan.route == "ping":
            return _Job(due, self.generator.ping)
        if self.plan.route == "post":
            self._n_posts += 1
            return _Job(due, self.generator.posts[self._n_posts % 2])
        decision = self._next_decision()
        return _Job(due, decision.encoded, decision)

    def _send(self) -> None:
        """Send the queued requests while there are idle connections. Without a rate, also send new requests."""
        now = self.clock()
        closed_loop = self.plan.rate is None and now < self.end
        while self.idle and (self.waiting or closed_loop):
            job = self.waiting.popleft() if self.waiting else self._make_job(now)
            if now < job.due:
                job.due = now  # sent early: latency counts from sending
            connection = self.idle.pop()
            self.busy.add(connection)
            connection.send(job.encoded, job, now)

    def response_received(self, connection: Connection, status: int, body: bytes) -> None:
        """Count a response and send the next request."""
        job: _Job = connection.job
        connection.job = None
        self.busy.discard(connection)
        if not connection.closed:
            self.idle.append(connection)
        if self.finished:
            return
        now = self.clock()
        if 200 <= status < 300:
            try:
                self._count_success(job, body, now)
            except (msgspec.MsgspecError, KeyError):
                self.errors["invalid response"] += 1
        else:
            if not self.first_problem:
                self.first_problem = f"{status}: {body[:300].decode(errors='replace')}"
            self._count_failure(job, str(status), status in RETRY_STATUSES)
        self._send()

    def connection_lost(self, connection: Connection) -> None:
        """Count the request in progress as failed and open another connection."""
        job, connection.job = connection.job, None
        if job is not None:
            self.busy.discard(connection)
            if not self.finished:
                self._count_failure(job, "connection lost", True)
        elif connection in self.idle:
            self.idle.remove(connection)
        self._reopen()

    def _count_failure(self, job: _Job, reason: str, retryable: bool) -> None:
        self.errors[reason] += 1
        if retryable and self.plan.retry:
            self.retried += 1
            job.attempts += 1
            pause = min(MIN_BACKOFF * 2.0 ** min(job.attempts - 1, 10), MAX_BACKOFF)
            self._schedule(self.clock() + pause, job)

    def _count_success(self, job: _Job, body: bytes, now: float) -> None:
        decision, kind = job.decision, "ping"
        if decision is not None and job.reward is None:
            kind = "recommend"
            response = self._decision_decoder.decode(body)
            mean = decision.means[self.generator.arm_index[response.arm]]
            if response.decision_id != decision.decision_id:
                raise KeyError(response.decision_id)
            self.means.extend((mean, decision.random_mean, decision.best_mean))
            if self.plan.record:
                self.decisions.append((decision.decision_id, decision.user, response.arm))
            reward = int(self._random.random() < mean)
            due = now + self.plan.delay
            reward_job = _Job(due, self.generator.encode_reward(decision.decision_id, reward), decision, reward)
            if self.plan.delay > 0.0:
                self._schedule(due, reward_job)
            else:
                self.waiting.append(reward_job)
        elif decision is not None and job.reward is not None:
            kind = "reward"
            rewarded = self._reward_decoder.decode(body)
            if (rewarded.decision_id, rewarded.reward) != (decision.decision_id, job.reward):
                raise KeyError(rewarded.decision_id)
            if self.plan.record:
                self.rewards.append((decision.decision_id, float(job.reward)))
        self.times[kind].append(now - job.due)
        self.answered += 1
        self.answered_before_end += now <= self.end

    def _make_report(self, seconds: float, cpu: float) -> Report:
        means = np.frombuffer(self.means).reshape(-1, 3)
        mean_reward, random_mean, best_mean = means.mean(axis=0).tolist() if len(means) else (math.nan,) * 3
        attempts = self.answered + self.errors.total()
        return Report(
            plan=self.plan,
            seconds=seconds,
            per_second=self.answered_before_end / seconds if seconds > 0.0 else 0.0,
            **{kind: summarize_latencies(times) for kind, times in self.times.items()},
            errors={reason: count for reason, count in sorted(self.errors.items()) if count},
            first_problem=self.first_problem,
            retried=self.retried,
            mean_reward=mean_reward,
            late_mean_reward=float(means[-((len(means) + 3) // 4) :, 0].mean()) if len(means) else math.nan,
            random_mean_reward=random_mean,
            best_mean_reward=best_mean,
            cpu_microseconds=1e6 * cpu / attempts if attempts else 0.0,
            decisions=self.decisions,
            rewards=self.rewards,
        )
