"""The load itself: what is due is sent, what is answered is counted."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from locb.loadtest.connection import Connection
from locb.loadtest.plan import Plan
from locb.loadtest.report import Report, latency
from locb.loadtest.requests import Question, Questions

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop
except ImportError:  # slower, but the same
    from asyncio import new_event_loop

EARLY = 0.001  # seconds: clocks of event loops are no finer, so what is due this soon is sent now rather than late
LOOK = 0.1  # seconds between looks at the clock, for progress, timeouts and the end
BACK = (0.05, 1.0)  # seconds before a lost connection is tried again: at first, at most
AGAIN = frozenset((429, 502, 503, 504))


class Progress(NamedTuple):
    """How far a load is."""

    elapsed: float
    answered: int
    per_second: float  # since the last time
    waiting: int  # due and not sent
    errors: int


class _Decided(msgspec.Struct):
    decision_id: str
    arm: str


class _Rewarded(msgspec.Struct):
    decision_id: str
    reward: float


class _Job:
    """A request that is due: a question, or with a reward its answer's reward; a ping without a question."""

    __slots__ = ("due", "question", "request", "reward", "tries")

    def __init__(self, due: float, request: bytes, question: Question | None = None, reward: int | None = None) -> None:
        self.due, self.request, self.question, self.reward, self.tries = due, request, question, reward, 0


def run(plan: Plan, progress: Callable[[Progress], None] | None = None) -> Report:
    """Play the plan; ``progress`` is called some ten times a second. Ctrl-C ends it early, with what there is.

    A service that cannot be reached is a ConnectionError; one that goes away later is not: its errors are counted.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_Player(plan).play(progress))


class _Player:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clock = time.perf_counter  # some event loops' own is in whole milliseconds
        self.questions = Questions(plan)
        self._next = iter(self.questions).__next__
        self._decided = msgspec.json.Decoder(_Decided)
        self._rewarded = msgspec.json.Decoder(_Rewarded)
        self._random = random.Random(plan.seed)  # noqa: S311 - rewards, not secrets
        self.idle: list[Connection] = []
        self.busy: set[Connection] = set()
        self.waiting: deque[_Job] = deque()
        self.later: list[tuple[float, int, _Job]] = []  # a heap of what is due later
        self._opening: set[asyncio.Task[None]] = set()
        self._places = 0
        self._dues = 0  # decisions that fell due, at an even rate
        self._posted = 0
        self.times = {kind: array("d") for kind in ("recommend", "reward", "ping")}
        self.means = array("d")  # earned, chance and best of each decision
        self.errors: Counter[str] = Counter()
        self.problem = ""
        self.retried = self.answered_in_time = self.answered_ever = 0
        self.decisions: list[tuple[str, str, str]] = []
        self.rewards: list[tuple[str, float]] = []
        self.over = False

    async def play(self, progress: Callable[[Progress], None] | None) -> Report:
        """Connect, play until the end, and report."""
        self.loop = asyncio.get_running_loop()
        self._ticking: asyncio.TimerHandle | None = None
        self._ticks_at = math.inf
        await self._first_connections()
        cpu, self.start = time.thread_time(), self.clock()
        self.end = self.start + self.plan.seconds
        stopped = self.end
        try:
            self._tick()
            await self._watch(progress)
        except asyncio.CancelledError:
            stopped = self.end = min(self.end, self.clock())
        self.over = True
        cpu = time.thread_time() - cpu
        left = len(self.busy) + len(self.waiting) + len(self.later)
        if left:
            self.errors["unanswered"] += left
        await self._leave()
        return self._report(stopped - self.start, cpu)

    async def _watch(self, progress: Callable[[Progress], None] | None) -> None:
        """Until everything is answered, or nothing more is to be hoped for."""
        before, then = 0, self.start
        while True:
            await asyncio.sleep(LOOK)
            now = self.clock()
            for connection in [c for c in self.busy if now - c.asked_at > self.plan.timeout]:
                job, connection.job = connection.job, None
                self.busy.discard(connection)
                self._failed(job, "timeout", True)
                connection.close()
            if progress is not None:
                speed = (self.answered_ever - before) / (now - then)
                failed = self.errors.total()
                progress(Progress(now - self.start, self.answered_ever, speed, len(self.waiting), failed))
                before, then = self.answered_ever, now
            if now >= self.end and not (self.busy or self.waiting or self.later):
                return
            if now >= self.end + self.plan.delay + self.plan.timeout:
                return

    async def _first_connections(self) -> None:
        opened = await asyncio.gather(*(self._open() for _ in range(self.plan.connections)), return_exceptions=True)
        reasons = [error for error in opened if isinstance(error, BaseException)]
        if len(reasons) == len(opened):
            raise ConnectionError(f"{self.plan.url} does not answer: {str(reasons[0]) or 'no connection in time'}")
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
        if not self.over:
            task = self.loop.create_task(self._open_in_time())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_in_time(self) -> None:
        pause, longest = BACK
        while not self.over:
            try:
                await self._open()
            except (OSError, TimeoutError):
                await asyncio.sleep(pause)
                pause = min(2.0 * pause, longest)
            else:
                self._send()
                return

    async def _leave(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        for task in self._opening:
            task.cancel()
        for connection in [*self.idle, *self.busy]:
            connection.close()
        await asyncio.sleep(0)  # so that they are gone when the loop ends

    def _tick(self) -> None:
        """Move what is due to where it is sent from, and come again for the next."""
        now = self.clock()
        soon = now + EARLY
        following = math.inf
        if self.plan.rate is not None and not self.over:
            due = self.start + self._dues / self.plan.rate
            while due <= soon and due < self.end:
                self.waiting.append(self._asking(due))
                self._dues += 1
                due = self.start + self._dues / self.plan.rate
            if due < self.end:
                following = due
        while self.later and self.later[0][0] <= soon:
            self.waiting.append(heapq.heappop(self.later)[2])
        if self.later:
            following = min(following, self.later[0][0])
        self._send()
        self._ticking, self._ticks_at = None, math.inf
        if following < math.inf:
            self._tick_at(max(following - 0.75 * EARLY, soon))

    def _tick_at(self, when: float) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self._ticking, self._ticks_at = self.loop.call_later(max(when - self.clock(), 0.0), self._tick), when

    def _wait(self, until: float, job: _Job) -> None:
        """Send it later."""
        self._places += 1
        heapq.heappush(self.later, (until, self._places, job))
        if until < self._ticks_at:
            self._tick_at(until)

    def _asking(self, due: float) -> _Job:
        if self.plan.route == "ping":
            return _Job(due, self.questions.ping)
        if self.plan.route == "post":
            self._posted += 1
            return _Job(due, self.questions.posts[self._posted % 2])
        question = self._next()
        return _Job(due, question.request, question)

    def _send(self) -> None:
        """Everything that is due, as far as there are connections."""
        now = self.clock()
        summarize_open_groups = self.plan.rate is None and now < self.end
        while self.idle and (self.waiting or summarize_open_groups):
            job = self.waiting.popleft() if self.waiting else self._asking(now)
            if now < job.due:
                job.due = now  # sent a little early: its time counts from here
            connection = self.idle.pop()
            self.busy.add(connection)
            connection.ask(job.request, job, now)

    def answered(self, connection: Connection, status: int, body: bytes) -> None:
        """Count, and go on."""
        job: _Job = connection.job
        connection.job = None
        self.busy.discard(connection)
        if not connection.closed:
            self.idle.append(connection)
        if self.over:
            return
        now = self.clock()
        if 200 <= status < 300:
            try:
                self._succeeded(job, body, now)
            except (msgspec.MsgspecError, KeyError):
                self.errors["wrong answer"] += 1
        else:
            if not self.problem:
                self.problem = f"{status}: {body[:300].decode(errors='replace')}"
            self._failed(job, str(status), status in AGAIN)
        self._send()

    def lost(self, connection: Connection) -> None:
        """What it was asked failed; open another."""
        job, connection.job = connection.job, None
        if job is not None:
            self.busy.discard(connection)
            if not self.over:
                self._failed(job, "lost", True)
        elif connection in self.idle:
            self.idle.remove(connection)
        self._reopen()

    def _failed(self, job: _Job, why: str, again: bool) -> None:
        self.errors[why] += 1
        if again and self.plan.retry:
            self.retried += 1
            job.tries += 1
            pause, longest = BACK
            self._wait(self.clock() + min(pause * 2.0 ** min(job.tries - 1, 10), longest), job)

    def _succeeded(self, job: _Job, body: bytes, now: float) -> None:
        question, kind = job.question, "ping"
        if question is not None and job.reward is None:
            kind = "recommend"
            answer = self._decided.decode(body)
            mean = question.means[self.questions.arm_index[answer.arm]]
            if answer.decision_id != question.decision_id:
                raise KeyError(answer.decision_id)
            self.means.extend((mean, question.chance, question.best))
            if self.plan.record:
                self.decisions.append((question.decision_id, question.user, answer.arm))
            reward = int(self._random.random() < mean)
            due = now + self.plan.delay
            telling = _Job(due, self.questions.reward(question.decision_id, reward), question, reward)
            if self.plan.delay > 0.0:
                self._wait(due, telling)
            else:
                self.waiting.append(telling)
        elif question is not None and job.reward is not None:
            kind = "reward"
            told = self._rewarded.decode(body)
            if (told.decision_id, told.reward) != (question.decision_id, job.reward):
                raise KeyError(told.decision_id)
            if self.plan.record:
                self.rewards.append((question.decision_id, float(job.reward)))
        self.times[kind].append(now - job.due)
        self.answered_ever += 1
        self.answered_in_time += now <= self.end

    def _report(self, seconds: float, cpu: float) -> Report:
        means = np.frombuffer(self.means).reshape(-1, 3)
        earned, chance, best = means.mean(axis=0).tolist() if len(means) else (math.nan,) * 3
        asked = self.answered_ever + self.errors.total()
        return Report(
            plan=self.plan,
            seconds=seconds,
            per_second=self.answered_in_time / seconds if seconds > 0.0 else 0.0,
            **{kind: latency(times) for kind, times in self.times.items()},
            errors={why: count for why, count in sorted(self.errors.items()) if count},
            problem=self.problem,
            retried=self.retried,
            earned=earned,
            late=float(means[-((len(means) + 3) // 4) :, 0].mean()) if len(means) else math.nan,
            chance=chance,
            best=best,
            cpu_microseconds=1e6 * cpu / asked if asked else 0.0,
            decisions=self.decisions,
            rewards=self.rewards,
        )
