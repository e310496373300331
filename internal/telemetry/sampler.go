package telemetry

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sampler decides which traces are sent. It decides by the trace alone, so all nodes decide alike.
type sampler struct {
	// parentBased: if another program has started the run in a trace of its own, its decision counts.
	parentBased bool
	ratio       float64 // of the other traces
}

// readSampler reads OTEL_TRACES_SAMPLER and its argument.
func (env environment) readSampler(t *target) error {
	name := strings.TrimSpace(env.get("OTEL_TRACES_SAMPLER"))
	if name == "" {
		name = "parentbased_always_on"
	}
	kind, parentBased := strings.CutPrefix(name, "parentbased_")
	t.sampler = sampler{parentBased: parentBased, ratio: 1}
	switch kind {
	case "always_on":
	case "always_off":
		t.sampler.ratio = 0
	case "traceidratio":
		argument := strings.TrimSpace(env.get("OTEL_TRACES_SAMPLER_ARG"))
		if argument == "" {
			return nil
		}
		ratio, err := strconv.ParseFloat(argument, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return fmt.Errorf("%w: OTEL_TRACES_SAMPLER_ARG is a number from 0 to 1, not %q", ErrSettings, argument)
		}
		t.sampler.ratio = ratio
	default:
		return fmt.Errorf("%w: OTEL_TRACES_SAMPLER is always_on, always_off or traceidratio, with or without parentbased_ before it, not %q", ErrSettings, name)
	}
	return nil
}

// isSampled reports whether the spans of a trace are sent.
func (s sampler) isSampled(c traceContext) bool {
	if s.parentBased && c.parent != (spanID{}) {
		return c.sampled
	}
	if s.ratio >= 1 {
		return true
	}
	// The last 8 bytes of a trace id decide, as in the libraries of OpenTelemetry.
	return float64(binary.BigEndian.Uint64(c.id[8:])>>1) < s.ratio*math.MaxInt64
}
