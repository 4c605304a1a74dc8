"""A trace over OTLP/HTTP: the one place that imports OpenTelemetry, which is an optional part.

Where it goes, with which headers and as which service, is the affair of the SDK and the variables
that it reads. Nothing here waits for a collector for longer than it is told to.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.extras import missing

from ..views.spans import Span
from .trace import Trace
from .tracing import is_installed

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan

_SCOPE = "inbox-orch"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
_UNITS = {
    "orch.attempts": ("{attempt}", "Attempts that have ended, by how they did"),
    "orch.tasks": ("{task}", "How often tasks have come to an end, by which"),
    "orch.questions": ("{question}", "Questions of workers"),
    "orch.checks": ("{check}", "Checks that were run on attempts that have ended"),
}


def export(trace: Trace, seconds: float) -> Iterator[int]:
    """Export a trace, a batch at a time, and then the sums, within so many seconds; yields up to
    which event it was taken. Errors: `extra_missing`, `usage` (a protocol that is not spoken),
    `collector_failed`."""
    if not is_installed():
        raise missing("otel", "exporting a trace")
    _check_protocol()
    until = time.monotonic() + seconds
    told = _Told()
    with told:
        from opentelemetry.sdk.resources import Resource

        resource = Resource.create(_service())
        if os.environ.get("OTEL_TRACES_EXPORTER") != "none":
            yield from _spans(trace, resource, until, told)
        if trace.sums and os.environ.get("OTEL_METRICS_EXPORTER") != "none":
            _within(lambda: _send_sums(trace, resource), until, told)
    yield trace.position


def _spans(trace: Trace, resource: "Resource", until: float, told: "_Told") -> Iterator[int]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    exporter = OTLPSpanExporter()
    for batch, position in trace.batches():
        readable = [_readable(span, trace.id, resource) for span in batch]

        def send(readable: Sequence["ReadableSpan"] = readable) -> bool:
            return exporter.export(readable) is SpanExportResult.SUCCESS

        if readable:
            _within(send, until, told)
        yield position


def _readable(span: Span, trace_id: str, resource: "Resource") -> "ReadableSpan":
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(number: str) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(int(trace_id, 16), int(number, 16), is_remote=False, trace_flags=flags)

    status = Status(StatusCode.ERROR, span.reason) if span.failed else Status(StatusCode.UNSET)
    return ReadableSpan(
        name=span.name,
        context=context(span.id),
        parent=None if span.parent is None else context(span.parent),
        resource=resource,
        attributes=dict(span.attributes),
        kind=SpanKind.INTERNAL,
        instrumentation_scope=InstrumentationScope(_SCOPE),
        status=status,
        start_time=span.begin_ms * 1_000_000,
        end_time=span.end_ms * 1_000_000,
    )


def _send_sums(trace: Trace, resource: "Resource") -> bool:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult

    done = OTLPMetricExporter().export(_metrics(trace, resource))
    return done is MetricExportResult.SUCCESS


def _metrics(trace: Trace, resource: "Resource") -> "MetricsData":
    """Sums since the run was opened, the same whoever exports them: a later export replaces an
    earlier one."""
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    points: dict[str, list[NumberDataPoint]] = {}
    for (name, attribute, value), number in sorted(trace.sums.items()):
        about = {"orch.run.id": trace.run.id, "orch.run.name": trace.run.name}
        said = {**about, attribute: value} if attribute else about
        begun, now = trace.run.created_at * 1_000_000, trace.now_ms * 1_000_000
        points.setdefault(name, []).append(NumberDataPoint(said, begun, now, number))
    metrics = [
        Metric(
            name,
            description=_UNITS[name][1],
            unit=_UNITS[name][0],
            data=Sum(found, AggregationTemporality.CUMULATIVE, is_monotonic=True),
        )
        for name, found in points.items()
    ]
    scope = ScopeMetrics(InstrumentationScope(_SCOPE), metrics, schema_url="")
    return MetricsData([ResourceMetrics(resource, [scope], schema_url="")])


def _service() -> dict[str, str]:
    """The service's name, unless the environment gives one."""
    named = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if named or os.environ.get("OTEL_SERVICE_NAME"):
        return {}
    return {"service.name": _SCOPE}


def _check_protocol() -> None:
    for name in _PROTOCOLS:
        protocol = os.environ.get(name, "").strip()
        if protocol not in ("", "http/protobuf"):
            raise usage(
                f"{name} is {protocol[:40]}: only http/protobuf is spoken",
                hint=f"{name}=http/protobuf, and the collector's address for it, which most often "
                "ends in :4318",
            )


class _Told(logging.Handler):
    """What OpenTelemetry complains of, kept from standard error."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._loggers = [logging.getLogger(name) for name in ("opentelemetry", "urllib3")]

    def emit(self, record: logging.LogRecord) -> None:
        """The handler's part of `logging`."""
        self._lines.append(" ".join(record.getMessage().split())[:300])

    @property
    def last(self) -> str | None:
        """The last complaint."""
        return self._lines[-1] if self._lines else None

    def __enter__(self) -> None:
        for logger in self._loggers:
            logger.addHandler(self)
            logger.propagate = False

    def __exit__(self, *_: object) -> None:
        for logger in self._loggers:
            logger.addHandler(logging.NullHandler())  # for a thread that was left
            logger.removeHandler(self)


def _within(send: Callable[[], bool], until: float, told: _Told) -> None:
    """Send, but wait no longer than until then; error `collector_failed`. What still waits is left
    to a thread that ends with the process."""
    done: list[bool] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(send())
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller tells it
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()))
    if thread.is_alive():
        raise _refused(told.last or "it does not answer in time")
    if failed:
        raise _refused(f"{type(failed[0]).__name__}: {failed[0]}"[:300])
    if not done[0]:
        raise _refused(told.last or "it was refused")


def _refused(reason: str) -> InboxOrchError:
    return InboxOrchError(
        "collector_failed",
        f"the trace was not taken: {reason}",
        hint="see that OTEL_EXPORTER_OTLP_ENDPOINT names a collector that takes OTLP over HTTP; "
        "the next export sends what this one has not",
    )
