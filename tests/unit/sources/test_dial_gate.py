"""The gate in front of dialling: bounded, but dead nodes hold nobody up."""

from __future__ import annotations

import asyncio

import pytest

from gpuherd.sources.dial_gate import DialGate
from support.running import PATIENCE_SECONDS

FOR_EVER = 3600.0


async def dialled(gate: DialGate, node: str, answer: asyncio.Event, dialling: list[str]) -> None:
    async with gate.place(node):
        dialling.append(node)
        await answer.wait()


def test_no_more_at_a_time_than_it_was_told() -> None:
    async def main() -> None:
        gate, answer, dialling = DialGate(3, prompt_seconds=FOR_EVER), asyncio.Event(), list[str]()
        tasks = [asyncio.create_task(dialled(gate, f"n{number}", answer, dialling)) for number in range(9)]
        await asyncio.sleep(0.01)
        assert dialling == ["n0", "n1", "n2"]
        answer.set()
        await asyncio.gather(*tasks)
        assert len(dialling) == 9
        assert not any(gate.doubts(node) for node in dialling)

    asyncio.run(main())


def test_who_does_not_answer_gives_its_place_to_the_next() -> None:
    async def main() -> None:
        gate, never, dialling = DialGate(2, prompt_seconds=0.01), asyncio.Event(), list[str]()
        dead = [asyncio.create_task(dialled(gate, f"dead{number}", never, dialling)) for number in range(10)]
        answer = asyncio.Event()
        answer.set()
        await asyncio.wait_for(dialled(gate, "living", answer, dialling), PATIENCE_SECONDS)
        assert len(dialling) == 11
        for task in dead:
            task.cancel()
        await asyncio.gather(*dead, return_exceptions=True)
        assert all(gate.doubts(f"dead{number}") for number in range(10))
        # Every place was given back once, not twice.
        never.clear()
        again = [asyncio.create_task(dialled(gate, f"n{number}", never, dialling)) for number in range(3)]
        await asyncio.sleep(0)
        assert len(dialling) == 13
        for task in again:
            task.cancel()
        await asyncio.gather(*again, return_exceptions=True)

    asyncio.run(main())


def test_the_doubted_do_not_stand_in_the_way_of_the_others() -> None:
    async def main() -> None:
        gate, never, dialling = DialGate(4, prompt_seconds=FOR_EVER), asyncio.Event(), list[str]()
        for number in range(10):
            with pytest.raises(OSError, match="refused"):
                async with gate.place(f"dead{number}"):
                    raise OSError("refused")
        dead = [asyncio.create_task(dialled(gate, f"dead{number}", never, dialling)) for number in range(10)]
        await asyncio.sleep(0)
        assert dialling == ["dead0"]
        async with gate.place("living"):
            pass  # at once
        never.set()
        await asyncio.gather(*dead)
        assert not gate.doubts("dead0")  # it answered at last

    asyncio.run(main())
