"""An OpenTelemetry collector on this machine, as far as tests want one: what it was sent."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector:
    """Where it is, and what it was sent, in that order. `answers` is the status that it gives."""

    def __init__(self) -> None:
        self.answers = 200
        self.headers: list[dict[str, str]] = []
        self.resources: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        self.sums: list[dict[tuple[Any, ...], int]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def names(self) -> list[str]:
        """Of the spans."""
        return [str(span["name"]) for span in self.spans]

    @contextlib.contextmanager
    def listening(self) -> Iterator["Collector"]:
        """It is there until the end of the block."""
        serving = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        serving.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            serving.join()

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        """One request."""
        self.headers.append(headers)
        if path == "/v1/traces":
            self._take_spans(body)
        else:
            assert path == "/v1/metrics", path
            self._take_sums(body)

    def _take_spans(self, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        sent = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        for of_resource in sent.resource_spans:
            self.resources.append(_plain(of_resource.resource.attributes))
            for of_scope in of_resource.scope_spans:
                self.spans += [_span(span) for span in of_scope.spans]

    def _take_sums(self, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

        sent = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
        found = {}
        for metric in sent.resource_metrics[0].scope_metrics[0].metrics:
            assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
            for point in metric.sum.data_points:
                about = _plain(point.attributes)
                del about["orch.run.id"], about["orch.run.name"]
                found[(metric.name, *about.values())] = point.as_int
        self.sums.append(found)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.answers == 200:
                    collector.take(self.path, body, dict(self.headers))
                self.send_response(collector.answers)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nobody wants to read it."""

        return Handler


def _span(span: Any) -> dict[str, Any]:
    return {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "begin": span.start_time_unix_nano // 1_000_000,
        "end": span.end_time_unix_nano // 1_000_000,
        "failed": span.status.code == 2,
        "reason": span.status.message,
        **_plain(span.attributes),
    }


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
