package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Limits of what the exporter knows of runs.
const (
	runsMax        = 4096             // that are known at once
	runReadMax     = 10 * time.Second // to read the first entry of one
	errorBytesMax  = 1 << 10          // of the text of an error
	valueBytesMax  = 256              // of a name
	contextTextMax = 32               // constraints, criteria and failure conditions on a span, each
)

var errNoRun = errors.New("telemetry: the run has no first entry")

// runFacts are what all spans of a run have in common, from its first entry.
type runFacts struct {
	trace      traceContext
	openedMS   int64
	attributes []attribute
}

// runCache holds the facts of runs.
type runCache struct {
	cfg    *Config
	target target
	known  map[string]runFacts
}

func newRunCache(cfg *Config, t target) *runCache {
	return &runCache{cfg, t, map[string]runFacts{}}
}

// find returns the facts of a run. It reads its log if they are not known.
func (c *runCache) find(ctx context.Context, run string) (runFacts, error) {
	if f, ok := c.known[run]; ok {
		return f, nil
	}
	ctx, cancel := context.WithTimeout(ctx, runReadMax)
	defer cancel()
	f, err := c.read(ctx, run)
	if err != nil {
		return f, fmt.Errorf("telemetry: read run %s: %w", run, err)
	}
	for old := range c.known {
		if len(c.known) < runsMax {
			break
		}
		delete(c.known, old)
	}
	c.known[run] = f
	return f, nil
}

func (c *runCache) read(ctx context.Context, run string) (f runFacts, err error) {
	at := mailbox.At(run, mailbox.Super)
	machine := &activation.Supervisor{Addr: at}
	reader := activation.Watch(at, machine)
	err = c.cfg.Logs.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		reader.Next(m)
		if machine.State.Run.Run == "" {
			return nil
		}
		f = c.facts(machine.State.Run, reader.At)
		return errEnough
	})
	switch {
	case errors.Is(err, errEnough):
		return f, nil
	case err != nil:
		return f, err
	}
	return f, errNoRun
}

// facts derives what all spans of a run have: its goal, caller, constraints, criteria and budget. Goal, constraints and
// criteria are texts of people, so without content their sizes stand in their place.
func (c *runCache) facts(o supervisor.Opened, at int64) runFacts {
	f := runFacts{trace: traceOf(o.Run, o.Trace), openedMS: at}
	f.trace.sampled = c.target.sampler.isSampled(f.trace)
	set := func(key string, value any) { f.attributes = append(f.attributes, attribute{key, value}) }
	set(keyRun, o.Run)
	conversation := o.Conversation
	if conversation == "" {
		conversation = o.Run
	}
	set(keyConversation, conversation)
	if o.Caller != "" {
		set("troupe.caller", clipMasked(c.cfg.Mask, o.Caller))
	}
	set("troupe.budget.tokens", o.Limits.Tokens)
	if o.Limits.Nano > 0 {
		set("troupe.budget.usd", float64(o.Limits.Nano)/budget.NanoPerUSD)
	}
	set("troupe.budget.tool_calls", o.Limits.Calls)
	lists := []struct {
		key   string
		texts []string
	}{{"troupe.constraints", o.Constraints}, {"troupe.criteria", o.Criteria}, {"troupe.failure_conditions", o.FailIf}}
	if !c.target.content {
		set("troupe.goal.bytes", int64(len(o.Goal)))
		for _, l := range lists {
			set(l.key+".count", int64(len(l.texts)))
		}
		return f
	}
	set("troupe.goal", clipMasked(c.cfg.Mask, o.Goal))
	for _, l := range lists {
		texts := []string{}
		for _, text := range l.texts[:min(len(l.texts), contextTextMax)] {
			texts = append(texts, clipMasked(c.cfg.Mask, text))
		}
		set(l.key, texts)
	}
	return f
}

// encode encodes a span of the run.
func (f runFacts) encode(s span, mask func(string) string) *tracepb.Span {
	parent := s.parent
	if parent == (spanID{}) { // of the run
		parent, s.startMS = f.trace.parent, f.openedMS
	}
	p := &tracepb.Span{TraceId: f.trace.id[:], SpanId: s.id[:], Name: validText(mask(clip.Text(s.name, valueBytesMax))), Kind: s.kind,
		StartTimeUnixNano: nanos(s.startMS), EndTimeUnixNano: nanos(max(s.startMS, s.endMS)), Flags: sampledFlag}
	if parent != (spanID{}) {
		p.ParentSpanId = parent[:]
	}
	for _, a := range slices.Concat(f.attributes, s.attributes) {
		if name, ok := a.value.(string); ok && len(name) <= valueBytesMax { // longer texts are masked before they are cut
			a.value = mask(name)
		}
		p.Attributes = append(p.Attributes, encodeAttribute(a))
	}
	if s.errorType != "" {
		p.Attributes = append(p.Attributes, encodeAttribute(attribute{keyErrorType, clip.Text(s.errorType, valueBytesMax)}))
		p.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: validText(mask(clip.Text(s.errorText, errorBytesMax)))}
	}
	return p
}

func nanos(ms int64) uint64 { return uint64(max(ms, 0)) * uint64(time.Millisecond) }

func encodeAttribute(a attribute) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: a.key, Value: encodeValue(a.value)}
}

func encodeValue(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case string:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: validText(v)}}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case int64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}
	case float64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
	case []string:
		list := &commonpb.ArrayValue{}
		for _, s := range v {
			list.Values = append(list.Values, encodeValue(s))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	}
	panic(fmt.Sprintf("telemetry: an attribute of type %T", v))
}

// scope names what made the spans.
func scope(version string) *commonpb.InstrumentationScope {
	return &commonpb.InstrumentationScope{Name: "github.com/troupe-run/troupe", Version: version}
}

// resource describes the node.
func (t target) resource(cfg *Config) *resourcepb.Resource {
	r := &resourcepb.Resource{}
	for _, a := range append([]attribute{{"service.name", t.service}, {"service.version", cfg.Version}, {"service.instance.id", cfg.Node}}, t.attributes...) {
		r.Attributes = append(r.Attributes, encodeAttribute(a))
	}
	return r
}
