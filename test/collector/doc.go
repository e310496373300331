// Package collector lets the OpenTelemetry Collector receive the spans of a run on two nodes. It is a module of its
// own, so that nobody who builds troupe builds the Collector.
package collector
