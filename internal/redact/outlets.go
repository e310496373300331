package redact

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// MaskBytes replaces the exact values in data. Without one of them it returns data itself.
func (m *Masker) MaskBytes(data []byte) []byte {
	if !m.MayContainValue(data) {
		return data
	}
	return []byte(m.MaskValues(string(data)))
}

// MaskEntry replaces the exact values in an encoded log entry.
func (m *Masker) MaskEntry(data []byte) ([]byte, error) {
	if !m.MayContainValue(data) {
		return data, nil
	}
	return rewriteEntry(data, m.MaskValues)
}

// rewriteEntry applies change to every text in the bodies of the items of an encoded
// entry. The sender, the claims and the kinds of the items stay. The same bytes always
// give the same result.
func rewriteEntry(data []byte, change func(string) string) ([]byte, error) {
	e, err := mailbox.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	for i := range e.Items {
		if len(e.Items[i].Body) == 0 {
			continue
		}
		var body any
		if err := mailbox.Unmarshal(e.Items[i].Body, &body); err != nil {
			return nil, fmt.Errorf("redact: %w", err)
		}
		if e.Items[i].Body, err = mailbox.Marshal(rewriteValue(body, change)); err != nil {
			return nil, fmt.Errorf("redact: %w", err)
		}
	}
	data, err = mailbox.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	return data, nil
}

// rewriteValue applies change to all texts and byte strings in a decoded value. Keys stay.
func rewriteValue(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []byte:
		return []byte(change(string(v)))
	case []any:
		for i := range v {
			v[i] = rewriteValue(v[i], change)
		}
	case map[string]any:
		for k := range v {
			v[k] = rewriteValue(v[k], change)
		}
	}
	return v
}

// Store is a store of logs that appends entries without the exact values.
type Store struct {
	mailbox.Store
	Mask *Masker
}

// Append implements mailbox.Post.
func (s Store) Append(ctx context.Context, to mailbox.Address, data []byte, done func(place uint64, err error)) {
	clean, err := s.Mask.MaskEntry(data)
	if err != nil {
		done(0, err)
		return
	}
	s.Store.Append(ctx, to, clean, done)
}

// Blobs is a store of blobs that puts data without the exact values.
type Blobs struct {
	mailbox.Blobs
	Mask *Masker
}

// Put implements mailbox.Blobs.
func (b Blobs) Put(ctx context.Context, run string, data []byte) (string, error) {
	return b.Blobs.Put(ctx, run, b.Mask.MaskBytes(data))
}

// Handler is a slog.Handler that handles records without the exact values.
type Handler struct {
	slog.Handler
	Mask *Masker
}

func (l Handler) maskAttr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(l.Mask.MaskValues(a.Value.String()))
	case slog.KindAny:
		if s := a.Value.String(); l.Mask.MayContainValue([]byte(s)) {
			a.Value = slog.StringValue(l.Mask.MaskValues(s))
		}
	case slog.KindGroup:
		var list []slog.Attr
		for _, b := range a.Value.Group() {
			list = append(list, l.maskAttr(b))
		}
		a.Value = slog.GroupValue(list...)
	}
	return a
}

// Handle implements slog.Handler.
func (l Handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, l.Mask.MaskValues(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool { clean.AddAttrs(l.maskAttr(a)); return true })
	return l.Handler.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (l Handler) WithAttrs(list []slog.Attr) slog.Handler {
	var clean []slog.Attr
	for _, a := range list {
		clean = append(clean, l.maskAttr(a))
	}
	return Handler{l.Handler.WithAttrs(clean), l.Mask}
}

// WithGroup implements slog.Handler.
func (l Handler) WithGroup(name string) slog.Handler {
	return Handler{l.Handler.WithGroup(name), l.Mask}
}

// Client is a model client whose streamed deltas contain none of the exact values. A value
// may arrive in pieces, so text that may be the beginning of one waits for the next delta.
type Client struct {
	model.Client
	Mask *Masker
}

// Complete implements model.Client.
func (c Client) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	if emit == nil {
		return c.Client.Complete(ctx, req, nil)
	}
	held := map[model.DeltaKind]string{}
	reply, err := c.Client.Complete(ctx, req, func(d model.Delta) {
		text := c.Mask.MaskValues(held[d.Kind] + d.Text)
		n := len(text) - c.Mask.PartialValueLen(text)
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
