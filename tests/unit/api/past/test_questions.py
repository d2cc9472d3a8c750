"""Questions are worked out beside the event loop, each once, within bounds."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import NoReturn

import pytest

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import Answer
from gpuherd.api.past import questions as module
from gpuherd.api.past.questions import Questions
from gpuherd.history.deadline import within
from gpuherd.history.outside.server import Unanswered
from gpuherd.history.tables.engine import TooLong
from gpuherd.model.errors import Failed
from support.herd import ManualClock
from support.running import PATIENCE_SECONDS

WAIT_SECONDS = PATIENCE_SECONDS


class Asked:
    """Answers when it is let, and counts how often it was asked."""

    def __init__(self, questions: Questions, body: bytes = b"x") -> None:
        self.questions = questions
        self.body = body
        self.count = 0
        self.threads: set[str] = set()
        self.begun = threading.Semaphore(0)
        self.may_answer = threading.Event()

    def let(self) -> Asked:
        self.may_answer.set()
        return self

    async def __call__(self) -> Answer:
        return await self.questions.run(self._work)

    def _work(self) -> Answer:
        self.count += 1
        self.begun.release()
        self.threads.add(threading.current_thread().name)
        assert self.may_answer.wait(WAIT_SECONDS)
        return Answer(body=self.body)


def play(story: Callable[[Questions, ManualClock], Awaitable[None]], **bounds: float) -> None:
    async def run() -> None:
        clock = ManualClock()
        questions = Questions(clock, **bounds)  # type: ignore[arg-type]
        try:
            await asyncio.wait_for(story(questions, clock), 2 * WAIT_SECONDS)
        finally:
            questions.close()

    asyncio.run(run())


def test_equal_questions_at_once_are_answered_once_and_never_on_the_loop() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        asked = Asked(questions)
        waiting = [asyncio.create_task(questions.ask("k", asked)) for _ in range(200)]
        await asyncio.sleep(0)
        asked.let()
        answers = await asyncio.gather(*waiting)
        assert {answer.body for answer in answers} == {b"x"}
        assert asked.count == 1
        assert threading.current_thread().name not in asked.threads

    play(story)


def test_an_answer_is_kept_for_a_few_seconds_and_told_apart_by_its_key() -> None:
    async def story(questions: Questions, clock: ManualClock) -> None:
        names, pseudonyms = Asked(questions, b"names").let(), Asked(questions, b"pseudonyms").let()
        for _ in range(3):
            assert (await questions.ask(("member", "q"), names)).body == b"names"
            assert (await questions.ask(("public", "q"), pseudonyms)).body == b"pseudonyms"
        assert (names.count, pseudonyms.count) == (1, 1)
        clock.advance(module.KEPT_SECONDS + 0.1)
        await questions.ask(("member", "q"), names)
        assert names.count == 2

    play(story)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT_BYTES", 100)
    monkeypatch.setattr(module, "MAX_KEPT", 3)

    async def story(questions: Questions, _: ManualClock) -> None:
        for number in range(10):
            await questions.ask(number, Asked(questions, b"x" * 20).let())
        assert len(questions._kept) == 3
        assert questions._kept_bytes == 60
        huge = Asked(questions, b"x" * 26).let()
        await questions.ask("huge", huge)
        await questions.ask("huge", huge)
        assert huge.count == 2
        assert questions._kept_bytes <= 100

    play(story)


def test_whoever_goes_away_takes_nothing_from_the_others() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        asked = Asked(questions)
        first = asyncio.create_task(questions.ask("k", asked))
        second = asyncio.create_task(questions.ask("k", asked))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        asked.let()
        assert (await second).body == b"x"

    play(story)


def test_too_much_at_once_is_refused_at_once_and_strangers_get_half() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        slow = Asked(questions)
        tasks = [
            asyncio.create_task(questions.ask(f"stranger {number}", slow, is_stranger=True))
            for number in range(2)
        ]
        await asyncio.sleep(0)
        with pytest.raises(HttpError) as refused:
            await questions.ask("one stranger more", slow, is_stranger=True)
        assert (refused.value.status, refused.value.detail.code) == (503, "history_busy")
        assert refused.value.headers["Retry-After"]
        tasks += [asyncio.create_task(questions.ask(f"member {number}", slow)) for number in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(HttpError) as refused:  # at once: those before are answered later only
            await questions.ask("one member more", slow)
        assert refused.value.detail.code == "history_busy"
        slow.let()
        await asyncio.gather(*tasks)
        assert (await questions.ask("later", Asked(questions).let(), is_stranger=True)).body == b"x"

    play(story, threads=1, max_waiting=3)


def test_what_takes_too_long_is_given_up() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        slow = Asked(questions)
        with pytest.raises(HttpError) as refused:
            await questions.ask("k", slow)
        assert (refused.value.status, refused.value.detail.code) == (503, "history_busy")
        slow.let()
        assert (await questions.ask("k", slow)).body == b"x"

    play(story, deadline_seconds=0.1)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TooLong("over 5 s"), "history_busy"),
        (Failed("/srv/secret/folder cannot be read"), "history_unavailable"),
    ],
)
def test_failures_are_told_without_their_reasons(
    error: Failed, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        def fail() -> NoReturn:
            raise error

        for number in range(5):
            with pytest.raises(HttpError) as refused:
                await questions.ask(number, lambda: questions.run(fail))
            assert (refused.value.status, refused.value.detail.code) == (503, code)
            assert "secret" not in refused.value.detail.message

    with caplog.at_level(logging.WARNING):
        play(story)
    assert len(caplog.records) == (code == "history_unavailable")  # once a minute, however many ask


def test_a_refusal_of_the_work_itself_is_passed_on_and_not_kept() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        def refuse() -> NoReturn:
            raise HttpError(404, "unknown_device", "no")

        with pytest.raises(HttpError, match="no"):
            await questions.ask("k", lambda: questions.run(refuse))
        assert (await questions.ask("k", Asked(questions).let())).body == b"x"

    play(story)


def test_a_frozen_store_elsewhere_keeps_only_its_own_questions_waiting() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        frozen = Asked(questions)
        waiting = [
            asyncio.create_task(questions.ask(number, lambda: questions.run_outside(frozen._work)))
            for number in range(5)
        ]
        for _thread in range(module.THREADS):
            await asyncio.to_thread(frozen.begun.acquire)
        assert (
            await asyncio.wait_for(questions.ask("here", Asked(questions).let()), PATIENCE_SECONDS)
        ).body == b"x"
        frozen.let()
        assert {answer.body for answer in await asyncio.gather(*waiting)} == {b"x"}

    play(story)


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_store_elsewhere_that_does_not_answer_is_left_alone_for_a_moment(is_silent: bool) -> None:
    async def story(questions: Questions, clock: ManualClock) -> None:
        frozen, count = threading.Event(), 0

        def fail() -> NoReturn:
            nonlocal count
            count += 1
            if is_silent:
                frozen.wait(WAIT_SECONDS)
            raise Unanswered("http://127.0.0.1:1: no connection")

        async def ask(number: int) -> str:
            with pytest.raises(HttpError) as refused:
                await questions.ask(number, lambda: questions.run_outside(fail))
            assert refused.value.status == 503
            return refused.value.detail.code

        assert await ask(0) == ("history_busy" if is_silent else "history_unavailable")
        assert [await ask(number) for number in range(1, 9)] == ["history_unavailable"] * 8
        assert count == 1
        # Whom it was asked for here does not matter to what is here.
        assert (await questions.ask("here", Asked(questions).let())).body == b"x"
        frozen.set()
        clock.advance(module.REST_SECONDS + 0.1)
        await ask(9)
        assert count == 2

    play(story, deadline_seconds=0.2)


@pytest.mark.promise("frozen-store-fails-soon")
def test_questions_that_wait_while_a_store_is_silent_do_not_wait_for_it_in_turn() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        frozen, begun, count = threading.Semaphore(0), threading.Semaphore(0), 0

        def fail() -> NoReturn:
            nonlocal count
            count += 1
            begun.release()
            frozen.acquire(timeout=WAIT_SECONDS)
            raise Unanswered("http://127.0.0.1:1: no response in time")

        asked = [
            asyncio.create_task(questions.ask(number, lambda: questions.run_outside(fail)))
            for number in range(8)
        ]
        for _thread in range(module.THREADS):
            await asyncio.to_thread(begun.acquire)
        frozen.release(module.THREADS)
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert [getattr(error, "status", None) for error in told] == [503] * 8
        assert count == module.THREADS

    play(story)


def test_a_question_that_the_store_refuses_costs_nobody_else_theirs() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        def refuse() -> NoReturn:
            raise Failed("http://127.0.0.1:1 cannot answer: too many series")

        with pytest.raises(HttpError):
            await questions.ask("too much", lambda: questions.run_outside(refuse))
        asked = Asked(questions).let()
        assert (await questions.ask("k", lambda: questions.run_outside(asked._work))).body == b"x"

    play(story)


def test_members_do_not_wait_behind_strangers() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        slow = Asked(questions)
        strangers = [
            asyncio.create_task(questions.ask(number, slow, is_stranger=True)) for number in range(8)
        ]
        for _thread in range(module.THREADS):
            await asyncio.to_thread(slow.begun.acquire)
        # Also if it is what a stranger is already waiting for.
        for key in ("another", 0, 7):
            answer = await asyncio.wait_for(
                questions.ask(key, Asked(questions, b"member").let()), PATIENCE_SECONDS
            )
            assert answer.body == b"member"
        slow.let()
        await asyncio.gather(*strangers)

    play(story)


def test_the_time_that_is_left_is_handed_down() -> None:
    async def story(questions: Questions, _: ManualClock) -> None:
        def left() -> Answer:
            return Answer(body=str(within(60.0)).encode())

        first = float((await questions.ask("k", lambda: questions.run(left))).body)
        assert 0 < first <= 5.0
        assert within(60.0) == 60.0

    play(story, deadline_seconds=5.0)
