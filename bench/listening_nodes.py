"""Many simulated agents that listen, in one cheap process: like ``bench.nodes``, but the hub dials.

Run as ``python -m bench.listening_nodes``: reads a JSON ``Load`` (one credential per node is expected) from standard
input, prints its port, then ``ready`` when the hub has dialled and welcomed them all; the rest is as there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import struct
import sys

import msgspec

from bench.nodes import WELCOME_SECONDS, Load, Script, Sender, Sent
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import SUBPROTOCOL
from gpuherd.wire.proof import AgentProof, Challenge, HubProof, decode_proof, is_proof, new_nonce, proof

SECRET = "ghl_" + "b" * 43
"""Shared by all nodes here: what is measured comes after the proof."""
_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def unmasked(payload: bytes) -> bytes:
    """Wrap a payload as one binary WebSocket message of a server."""
    if len(payload) < 126:
        return bytes([0x82, len(payload)]) + payload
    if len(payload) < 65_536:
        return b"\x82\x7e" + struct.pack(">H", len(payload)) + payload
    return b"\x82\x7f" + struct.pack(">Q", len(payload)) + payload


def payloads(data: bytes) -> bytes:
    """Take the mask off a client's small messages and put them in a row."""
    told = []
    while len(data) >= 6:
        size, mask = data[1] & 0x7F, data[2:6]
        start = 6
        if size == 126:
            (size,), mask, start = struct.unpack_from(">H", data, 2), data[4:8], 8
        pad = mask * (size // 4 + 1)
        covered = data[start : start + size]
        told.append(
            (int.from_bytes(covered, "big") ^ int.from_bytes(pad[: len(covered)], "big")).to_bytes(
                len(covered), "big"
            )
        )
        data = data[start + size :]
    return b"".join(told)


def take(listening: socket.socket, script: Script) -> socket.socket:
    """Take one hub's connection, up to its welcome."""
    link, _ = listening.accept()
    link.settimeout(WELCOME_SECONDS)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += link.recv(4096)
    headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    key = next(value for name, value in headers.items() if name.lower() == b"sec-websocket-key")
    accept = base64.b64encode(hashlib.sha1(key + _KEY_SUFFIX).digest())  # noqa: S324 - as the standard has it
    link.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Protocol: "
        + SUBPROTOCOL.encode()
        + b"\r\nSec-WebSocket-Accept: "
        + accept
        + b"\r\n\r\n"
    )
    nonce = new_nonce()
    link.sendall(unmasked(encode(Challenge(nonce=nonce))))
    hub = decode_proof(payloads(link.recv(4096)), HubProof)
    assert is_proof(hub.proof, SECRET, "hub", hub_nonce=hub.nonce, agent_nonce=nonce)
    mine = proof(SECRET, "agent", hub_nonce=hub.nonce, agent_nonce=nonce)
    link.sendall(unmasked(encode(AgentProof(proof=mine))) + script.opening(os.urandom(8).hex()))
    if b"welcome" not in payloads(link.recv(4096)):
        raise SystemExit("the hub does not welcome a node")
    link.setblocking(False)
    return link


class DialledSender(Sender):
    """Hears a hub that dialled, whose messages are masked."""

    def received(self, link: socket.socket) -> bytes:
        """Take what the hub has sent; nothing if it is gone."""
        return payloads(link.recv(65_536))


def run(load: Load) -> Sent:
    """Listen, be dialled, send until standard input ends."""
    script = Script(load.gpus, unmasked)
    with socket.create_server((load.host, load.port), backlog=1024) as listening:
        print(listening.getsockname()[1], flush=True)
        links = [take(listening, script) for _ in load.credentials]
        print("ready", flush=True)
        return DialledSender(load, script, links).run()


def main() -> None:
    """Read the load, play it, tell what was done."""
    load = msgspec.json.decode(sys.stdin.buffer.readline(), type=Load)
    if load.cpu is not None:
        os.sched_setaffinity(0, {load.cpu})
    print(msgspec.json.encode(run(load)).decode(), flush=True)


if __name__ == "__main__":
    main()
