// Package collector lets the OpenTelemetry Collector receive the spans and the metrics of a run on two nodes. It is a module of its
// own, so that a build of troupe does not compile the Collector.
package collector
