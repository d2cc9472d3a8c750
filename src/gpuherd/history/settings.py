"""What is remembered, where, and for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from gpuherd.model.errors import Misconfigured
from gpuherd.model.text import LABEL_LENGTH

__all__ = [
    "EarlierAverages",
    "EmbeddedSettings",
    "HistorySettings",
    "PrometheusSettings",
    "StoreSettings",
    "UsageSettings",
    "VictoriaMetricsSettings",
]

Days = Annotated[float, Meta(gt=0, le=36_500)]
Price = Annotated[float, Meta(ge=0, le=1e6)]
Average = Annotated[float, Meta(ge=0, le=1e6)]
Url = Annotated[str, Meta(min_length=8, max_length=2000)]


class EmbeddedSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="embedded", tag_field="in"
):
    """Samples in the hub's own files, which DuckDB, pandas and polars can read."""


class VictoriaMetricsSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="victoriametrics", tag_field="in"
):
    """Samples in VictoriaMetrics, single-node or cluster."""

    url: Annotated[Url, Meta(description="Address, such as http://127.0.0.1:8428.")]
    read_url: Annotated[
        Url | None,
        Meta(
            description="Address for queries, if it differs. For a cluster, the address of vmselect with its "
            "path."
        ),
    ] = None
    user: Annotated[str | None, Meta(description="Name for HTTP basic authentication.")] = None
    password_file: Annotated[Path | None, Meta(description="File with the password.")] = None
    token_file: Annotated[Path | None, Meta(description="File with a bearer token.")] = None
    timeout_seconds: Annotated[
        float,
        Meta(gt=0, le=600, description="How long to wait for a response before trying again, in seconds."),
    ] = 10.0
    resend_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="How long to keep confirmed samples, in seconds. After the server was down, they are sent "
            "again, because it loses its last seconds when it is killed.",
        ),
    ] = 60.0


class PrometheusSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="prometheus", tag_field="in"
):
    """Samples in any server that accepts Prometheus remote write."""

    write_url: Annotated[
        Url, Meta(description="Remote-write address, such as http://127.0.0.1:9090/api/v1/write.")
    ]
    read_url: Annotated[
        Url | None,
        Meta(
            description="Address for PromQL queries, such as http://127.0.0.1:9090. Without it, there are no "
            "charts."
        ),
    ] = None
    user: Annotated[str | None, Meta(description="Name for HTTP basic authentication.")] = None
    password_file: Annotated[Path | None, Meta(description="File with the password.")] = None
    token_file: Annotated[Path | None, Meta(description="File with a bearer token.")] = None
    timeout_seconds: Annotated[
        float,
        Meta(gt=0, le=600, description="How long to wait for a response before trying again, in seconds."),
    ] = 10.0
    resend_seconds: Annotated[
        float,
        Meta(
            ge=0, le=86_400, description="How long to keep confirmed samples, to send them again, in seconds."
        ),
    ] = 60.0


StoreSettings = EmbeddedSettings | VictoriaMetricsSettings | PrometheusSettings


class HistorySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[history]`` table of gpuherd.toml."""

    enabled: Annotated[
        bool, Meta(description="Whether the hub records history beyond the last 15 minutes.")
    ] = True
    folder: Annotated[
        Path | None, Meta(description="Folder for the history. Default: `history` in hub.state_dir.")
    ] = None
    store: Annotated[
        StoreSettings,
        Meta(
            description="Where samples are stored; the key `in` selects the store. Usage is always stored in the "
            "folder."
        ),
    ] = EmbeddedSettings()
    raw_days: Annotated[Days, Meta(description="How long to keep every sample, in days.")] = 7.0
    minute_days: Annotated[
        Days, Meta(description="How long to keep minimum, mean and maximum of each minute, in days.")
    ] = 90.0
    quarter_hour_days: Annotated[
        Days,
        Meta(description="How long to keep minimum, mean and maximum of each quarter of an hour, in days."),
    ] = 730.0
    usage_days: Annotated[Days, Meta(description="How long to keep usage, in days.")] = 1825.0
    pseudonymise_after_days: Annotated[
        Days, Meta(description="After this many days, names in usage are permanently replaced by pseudonyms.")
    ] = 180.0
    command_line_days: Annotated[Days, Meta(description="How long to keep command lines, in days.")] = 7.0
    max_bytes: Annotated[
        Annotated[int, Meta(ge=2**24)] | None,
        Meta(
            description="Limit for all samples together; the oldest samples of the highest resolution are deleted "
            "first. Default: no limit.",
        ),
    ] = None
    min_free_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=2**50,
            description="If less disk space than this is free, no history is stored until there is space again.",
        ),
    ] = 512 * 2**20
    memory_bytes: Annotated[
        int,
        Meta(ge=2**23, le=2**40, description="Memory for samples before they are written to their files."),
    ] = 64 * 2**20
    query_memory_bytes: Annotated[
        int, Meta(ge=2**26, le=2**42, description="Memory for all queries of the history together.")
    ] = 512 * 2**20

    def check(self) -> None:
        """Raise ``Misconfigured`` for settings that contradict each other."""
        if not self.raw_days <= self.minute_days <= self.quarter_hour_days:
            raise Misconfigured(
                "history.raw_days, minute_days and quarter_hour_days must increase or stay the same in "
                "this order: coarser data is kept at least as long"
            )
        if self.pseudonymise_after_days < self.command_line_days:
            raise Misconfigured(
                "history.command_line_days must not be more than history.pseudonymise_after_days: a "
                "command line can identify its user"
            )
        store = self.store
        if not isinstance(store, EmbeddedSettings):
            addresses = (
                {"url": store.url, "read_url": store.read_url}
                if isinstance(store, VictoriaMetricsSettings)
                else {"write_url": store.write_url, "read_url": store.read_url}
            )
            for key, url in addresses.items():
                _check_url(url, f"history.store.{key}")
            if store.token_file is not None and store.password_file is not None:
                raise Misconfigured("history.store: set either token_file or password_file, not both")
            if (store.user is None) != (store.password_file is None):
                raise Misconfigured("history.store: set both user and password_file")


def _check_url(url: str | None, key: str) -> None:
    if url is None:
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misconfigured(
            f"{key}: is not an http or https address; write for example http://127.0.0.1:8428"
        )
    if parts.username is not None or parts.password is not None:
        raise Misconfigured(f"{key}: contains a password; put it into a file and set password_file")


class EarlierAverages(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[usage.earlier]`` table: averages of an older page, with which those of *Who to ask* begin."""

    until: Annotated[
        float,
        Meta(gt=0, description="Time of the averages, in seconds since 1970 (UTC). Used for four weeks."),
    ]
    gpus: Annotated[
        dict[Annotated[str, Meta(max_length=LABEL_LENGTH)], tuple[Average, Average, Average]],
        Meta(description="GPUs that each user held on average: over 2 hours, a day, a week."),
    ] = {}


class UsageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[usage]`` table of gpuherd.toml: how use is counted and what it costs."""

    session_gap_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=86_400,
            description="A break on a device that is shorter than this does not end a session, in seconds.",
        ),
    ] = 300.0
    currency: Annotated[str, Meta(max_length=8, description="Currency of costs, such as EUR.")] = "EUR"
    cost_per_gpu_hour: Annotated[
        Price | None, Meta(description="Price of holding one GPU for an hour. Default: no cost is shown.")
    ] = None
    cost_per_gpu_hour_by_type: Annotated[
        dict[str, Price],
        Meta(description="Other prices for some types, by short name such as `H100 80GB`."),
    ] = {}
    cost_per_kwh: Annotated[
        Price | None, Meta(description="Price of a kilowatt-hour. Default: no cost is shown.")
    ] = None
    earlier: EarlierAverages | None = None
