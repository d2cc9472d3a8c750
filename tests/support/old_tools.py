"""Nodes of the older tools, as their documentation describes them: small real servers and files."""

from __future__ import annotations

import json
import stat
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from support.running import PATIENCE_SECONDS

PASSWORD = "8888"
"""The one that stands in the HTTP tool's README."""
GPUSTAT = {
    "driver_version": "535.104.05",
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-00000000-aaaa-bbbb-cccc-000000000000",
            "name": "NVIDIA GeForce RTX 3090",
            "temperature.gpu": 61,
            "fan.speed": 53,
            "utilization.gpu": 97,
            "utilization.enc": 0,
            "utilization.dec": 0,
            "power.draw": 331,
            "enforced.power.limit": 350,
            "memory.used": 18762,
            "memory.total": 24576,
            "processes": [
                {
                    "username": "pusher",
                    "command": "python",
                    "full_command": ["python", "main.py"],
                    "gpu_memory_usage": 18753,
                    "cpu_percent": 101.3,
                    "cpu_memory_usage": 5021234176,
                    "pid": 31337,
                }
            ],
        }
    ],
}
NODE_INFO_GPU = {
    "index": 0,
    "name": "Tesla V100-SXM2-32GB",
    "use_mem": 20_000,
    "tot_mem": 32_768,
    "utilize": 88,
    "temp": 60,
    "users": [{"pid": 4711, "username": "puller", "mem(MiB)": 19_000, "command": "python fit.py"}],
}
GPU_STATS = {
    "gpus": [
        {
            "memory_total": 11_264,
            "memory_used": 9_000,
            "memory_free": 2_264,
            "utilization": 70,
            "temperature": 77,
            "model": "NVIDIA GeForce RTX 2080 Ti",
        }
    ],
    "procs": [
        [
            {
                "pid": 99,
                "process_name": "python",
                "used_memory": 8900,
                "unit": "MiB",
                "userid": "caller",
                "time": "10:11",
            }
        ]
    ],
}


def post_gpustat(port: int, hostname: str) -> str:
    """Do what run-this-on-every-node.sh does once a second: POST / with what gpustat prints."""
    body = {"hostname": hostname, "query_time": datetime.now().isoformat(), **GPUSTAT}  # noqa: DTZ005 - as gpustat does
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - loopback
        return str(answer.read().decode())


@contextmanager
def posting(port: int, hostname: str) -> Iterator[None]:
    """Post every second, as the old loop does, whether or not somebody listens."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            with suppress(OSError):  # the old loop does not care either
                post_gpustat(port, hostname)
            stop.wait(1.0)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def old_backend(port: int) -> Iterator[Queue[str]]:
    """Listen as the Express backend does; gives the names of the nodes that post."""
    posted: Queue[str] = Queue()

    class Backend(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.put(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["hostname"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", port), Backend)):
        yield posted


# What the push tool's Vue page does, in small: the hash of the password to the backend, then everything, each second.
_PUSH_PAGE = """<!doctype html>
<title>GPU Monitor</title>
<input id="user"><input id="password" type="password"><button>Login</button><main></main>
<script>
const backend = "http://%s";
function sha256(text) {
  const rotate = (x, n) => (x >>> n) | (x << (32 - n)), words = [], k = [], h = [];
  for (let n = 2; k.length < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) prime = prime && n %% d;
    if (!prime) continue;
    if (h.length < 8) h.push((Math.sqrt(n) * 2 ** 32) | 0);
    k.push((Math.cbrt(n) * 2 ** 32) | 0);
  }
  const bytes = [...new TextEncoder().encode(text)], bits = bytes.length * 8;
  bytes.push(128);
  while (bytes.length %% 64 !== 60) bytes.push(0);
  bytes.forEach((byte, i) => (words[i >> 2] |= byte << (24 - (i %% 4) * 8)));
  words.push(bits);
  for (let start = 0; start < words.length; start += 16) {
    const w = words.slice(start, start + 16);
    for (let i = 16; i < 64; i++) {
      const a = w[i - 15], b = w[i - 2];
      w[i] = (w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) + w[i - 7]
        + (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10))) | 0;
    }
    let [a, b, c, d, e, f, g, last] = h;
    for (let i = 0; i < 64; i++) {
      const one = (last + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const two = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [a, b, c, d, e, f, g, last] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    }
    [a, b, c, d, e, f, g, last].forEach((x, i) => (h[i] = (h[i] + x) | 0));
  }
  return h.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
}
const main = document.querySelector("main"), field = (id) => document.getElementById(id).value;
async function draw() {
  const nodes = await (await fetch(backend + "/")).json();
  main.textContent = "logged in: " + Object.entries(nodes).map(([name, node]) =>
    `${name} at ${node.ip.substr(7)}: ` + node.gpus.flatMap((gpu) => gpu.processes.map((p) => p.username))).join("; ");
}
document.querySelector("button").onclick = async () => {
  const body = JSON.stringify({ user: field("user"), password: sha256(field("password")) });
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(backend + "/auth", { method: "POST", headers, body });
  if (!answer.ok) { main.textContent = "Authentication Failed"; return; }
  draw(); setInterval(draw, 1000);
};
</script>
"""


@contextmanager
def push_page(backend: str, address: tuple[str, int]) -> Iterator[None]:
    """Serve the push tool's page, which was built with ``VITE_BACKEND=backend``."""
    page = (_PUSH_PAGE % backend).encode()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with serving(ThreadingHTTPServer(address, Page)):
        yield


class _NodeInfo(BaseHTTPRequestHandler):
    """What node_info.py answers; 8888 is the password of its README."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        if self.path != "/get-status" or asked.get("passwd") != server.password:
            self.send_error(403)
            return
        body = json.dumps(
            {
                "hostname": server.hostname,
                "last_update": datetime.now().isoformat(),  # noqa: DTZ005 - as the tool does
                "ips": [["eno1", "192.168.0.3"]],
                "gpus": [NODE_INFO_GPU],
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(server: Any) -> Iterator[int]:
    """Run a server of the standard library in a thread; gives its port."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def node_info_node(hostname: str, password: str = PASSWORD, port: int = 0) -> Iterator[int]:
    """Run a node of the HTTP tool; gives its port."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", port), _NodeInfo)
    server.hostname, server.password = hostname, password
    with serving(server) as taken_port:
        yield taken_port


class _Quiet(SimpleXMLRPCRequestHandler):
    rpc_paths = ("/", "/RPC2")


@contextmanager
def rpc_node(port: int = 0) -> Iterator[int]:
    """Run a node of the XML-RPC tool; gives its port."""
    server = SimpleXMLRPCServer(("127.0.0.1", port), _Quiet, logRequests=False)
    server.register_function(lambda: json.dumps(GPU_STATS), "gpu_stats")
    with serving(server) as taken_port:
        yield taken_port


def drop_files(folder: Path, host: str) -> None:
    """Write what the three loops of the lab's scripts leave behind, as of now."""
    now = datetime.now()  # noqa: DTZ005 - as nvidia-smi and ps do
    stamp = now.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    uuid = "GPU-99999999-aaaa-bbbb-cccc-000000000000"
    _write(
        folder / f"{host}_gpus.csv",
        "index, uuid, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], utilization.memory [%], "
        "temperature.gpu, timestamp\n"
        f"0, {uuid}, GeForce GTX 1080 Ti, 5000 MiB, 11178 MiB, 55 %, 20 %, 66, {stamp}\n",
    )
    _write(
        folder / f"{host}_processes.csv",
        "timestamp, gpu_uuid, used_gpu_memory [MiB], process_name, pid\n"
        f"{stamp}, {uuid}, 4900 MiB, python, 1234\n",
    )
    started = datetime.fromtimestamp(time.time() - 3600, UTC).strftime("%a %b %d %H:%M:%S %Y")
    _write(folder / f"{host}_users.csv", f"{{}}\n1234 dropper {started}\n")
    _write(
        folder / f"{host}_status.csv",
        "/dev/sda1 100000000 40000000 60000000 40% /\nMem: 64000 16000 1000 0 47000 48000\n16\n"
        " 12:00:00 up 3 days,  1:02,  1 user,  load average: 1.00, 2.00, 3.00\n",
    )
    _write(folder / f"{host}_cpus.csv", "1.0;16\n")


@contextmanager
def file_server(folder: Path, port: int) -> Iterator[None]:
    """Serve the files as ``python -m SimpleHTTPServer`` on a node does."""

    class Files(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with serving(ThreadingHTTPServer(("127.0.0.1", port), partial(Files, directory=str(folder)))):
        yield


def _write(file: Path, text: str) -> None:
    fresh = file.with_name("." + file.name)
    fresh.write_text(text)
    fresh.replace(file)


@contextmanager
def dropping(folder: Path, host: str, *, every_seconds: float = 1.0) -> Iterator[None]:
    """Renew the files (the lab's scripts take twenty seconds); a hub lets files come to rest before it takes them."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            drop_files(folder, host)
            stop.wait(every_seconds)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


_SMI = """#!{python}
import sys
values = {values!r}
argument = sys.argv[1]
if argument == "--help-query-gpu":
    for name in values:
        print('"%s"' % name)
        print("Explanation.")
        print()
elif argument.startswith("--query-gpu="):
    print(", ".join(values[name] for name in argument.partition("=")[2].split(",")))
elif argument.startswith("--query-compute-apps="):
    fields = {{"gpu_uuid": values["uuid"], "pid": "{pid}", "used_gpu_memory": "1000", "process_name": "python"}}
    print(", ".join(fields[name] for name in argument.partition("=")[2].split(",")))
else:
    sys.exit(2)
"""
_SMI_VALUES = {
    "index": "0",
    "uuid": "GPU-55555555-aaaa-bbbb-cccc-000000000000",
    "name": "NVIDIA A10",
    "pci.bus_id": "00000000:3B:00.0",
    "driver_version": "535.104.05",
    "memory.total": "23028",
    "memory.used": "1021",
    "utilization.gpu": "42",
    "utilization.memory": "10",
    "temperature.gpu": "50",
    "power.draw": "120.50",
    "power.limit": "150.00",
    "pstate": "P0",
}


def write_nvidia_smi(folder: Path, pid: int, uuid: str = _SMI_VALUES["uuid"]) -> Path:
    """Write an nvidia-smi that knows one card, on which the process ``pid`` computes."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "nvidia-smi"
    program.write_text(_SMI.format(python=sys.executable, values={**_SMI_VALUES, "uuid": uuid}, pid=pid))
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return program
