package runlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// Logs of conversations and of schedules belong to no actor: any node appends facts, and their order
// decides which have an effect.

// ReadFacts calls apply for each fact of such a log, in order. An entry that does not decode has no effect on any node.
func ReadFacts(ctx context.Context, logs mailbox.Store, at mailbox.Address, apply func(mailbox.Message, mailbox.Item)) error {
	err := logs.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		if errors.Is(err, mailbox.ErrForm) {
			return refuse.NewerLog(at)
		}
		if err != nil {
			return nil
		}
		for _, item := range e.Items {
			apply(m, item)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("control: read %s: %w", at, err)
	}
	return nil
}

// AppendFacts appends facts to such a log as one entry.
func AppendFacts[F interface{ Kind() string }](ctx context.Context, logs mailbox.Store, at mailbox.Address, facts ...F) error {
	e := mailbox.Entry{Form: mailbox.Form}
	for _, f := range facts {
		body, err := mailbox.Marshal(f)
		if err != nil {
			return fmt.Errorf("control: append to %s: %w", at, err)
		}
		e.Items = append(e.Items, mailbox.Item{ID: client.NewID(), Kind: f.Kind(), Body: body})
	}
	data, err := mailbox.Encode(e)
	if err == nil {
		_, err = mailbox.Put(ctx, logs, at, data)
	}
	if err != nil {
		return fmt.Errorf("control: append to %s: %w", at, err)
	}
	return nil
}
