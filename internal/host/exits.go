package host

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool/mask"
)

// exits keep the values of secrets inside. Without a value they cost nothing.
type exits struct{ mask *mask.Masker }

func (x exits) bytes(data []byte) []byte {
	if !x.mask.Holds(data) {
		return data
	}
	return []byte(x.mask.Values(string(data)))
}

// entry is for what goes into logs.
func (x exits) entry(data []byte) ([]byte, error) {
	if !x.mask.Holds(data) {
		return data, nil
	}
	return rewritten(data, x.mask.Values)
}

// rewritten is an encoded entry with every text in the bodies of its items
// changed; who wrote it, its claims and the kinds of its items stay. The same
// bytes always become the same.
func rewritten(data []byte, change func(string) string) ([]byte, error) {
	e, err := mailbox.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	for i := range e.Items {
		if len(e.Items[i].Body) == 0 {
			continue
		}
		var body any
		if err := mailbox.Unmarshal(e.Items[i].Body, &body); err != nil {
			return nil, fmt.Errorf("host: %w", err)
		}
		if e.Items[i].Body, err = mailbox.Marshal(changed(body, change)); err != nil {
			return nil, fmt.Errorf("host: %w", err)
		}
	}
	data, err = mailbox.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	return data, nil
}

// changed applies change to all texts in a decoded value, binary ones among
// them; keys stay.
func changed(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []byte:
		return []byte(change(string(v)))
	case []any:
		for i := range v {
			v[i] = changed(v[i], change)
		}
	case map[string]any:
		for k := range v {
			v[k] = changed(v[k], change)
		}
	}
	return v
}

// cleanPost is for what goes into logs.
type cleanPost struct {
	*jetstream.Post
	exits exits
}

// logs are the logs, for those who write them.
func (h *Host) logs() cleanPost { return cleanPost{h.post, h.exits} }

// Append implements mailbox.Post.
func (p cleanPost) Append(ctx context.Context, to mailbox.Address, data []byte, done func(place uint64, err error)) {
	clean, err := p.exits.entry(data)
	if err != nil {
		done(0, err)
		return
	}
	p.Post.Append(ctx, to, clean, done)
}

// cleanBlobs is for what is too large for a log.
type cleanBlobs struct {
	*jetstream.Blobs
	exits exits
}

// Put implements mailbox.Blobs.
func (b cleanBlobs) Put(ctx context.Context, run string, data []byte) (string, error) {
	return b.Blobs.Put(ctx, run, b.exits.bytes(data))
}

// cleanLog is for what the process says to its operator.
type cleanLog struct {
	slog.Handler
	exits exits
}

func (l cleanLog) text(s string) string { return l.exits.mask.Values(s) }

func (l cleanLog) attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(l.text(a.Value.String()))
	case slog.KindAny:
		if s := a.Value.String(); l.exits.mask.Holds([]byte(s)) {
			a.Value = slog.StringValue(l.text(s))
		}
	case slog.KindGroup:
		var list []slog.Attr
		for _, b := range a.Value.Group() {
			list = append(list, l.attr(b))
		}
		a.Value = slog.GroupValue(list...)
	}
	return a
}

func (l cleanLog) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, l.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool { clean.AddAttrs(l.attr(a)); return true })
	return l.Handler.Handle(ctx, clean)
}

func (l cleanLog) WithAttrs(list []slog.Attr) slog.Handler {
	var clean []slog.Attr
	for _, a := range list {
		clean = append(clean, l.attr(a))
	}
	return cleanLog{l.Handler.WithAttrs(clean), l.exits}
}

func (l cleanLog) WithGroup(name string) slog.Handler {
	return cleanLog{l.Handler.WithGroup(name), l.exits}
}

// cleanClient is for what a reply shows while it streams: a value may come in
// pieces, so what may be the beginning of one waits for what follows.
type cleanClient struct {
	model.Client
	exits exits
}

// Complete implements model.Client.
func (c cleanClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if emit == nil {
		return c.Client.Complete(ctx, req, nil)
	}
	held := map[model.DeltaKind]string{}
	reply, err := c.Client.Complete(ctx, req, func(d model.Delta) {
		text := c.exits.mask.Values(held[d.Kind] + d.Text)
		n := len(text) - c.exits.mask.Begun(text)
		held[d.Kind] = text[n:]
		if n > 0 {
			emit(model.Delta{Kind: d.Kind, Text: text[:n]})
		}
	})
	for _, kind := range []model.DeltaKind{model.ReasoningDelta, model.TextDelta} {
		if text := held[kind]; text != "" {
			emit(model.Delta{Kind: kind, Text: text})
		}
	}
	return reply, err
}

// still is logs whose entries wake nobody.
type still struct{ cleanPost }

func (still) Tail(context.Context, func(mailbox.Message)) (stop func(), err error) {
	return func() {}, nil
}
