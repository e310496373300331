// Package testlog puts entries into the logs of a store and counts what is read of them, for tests.
package testlog

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// PutFact appends an entry with one item to a log, in the form after this program's if newer.
func PutFact(t *testing.T, post mailbox.Store, at, from mailbox.Address, f agent.Fact, newer bool) {
	t.Helper()
	body, err := mailbox.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	item := mailbox.Item{ID: "q-" + f.Kind(), Kind: f.Kind(), Body: body}
	if from != "" {
		item.ID, item.N = "", 2
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: from, Items: []mailbox.Item{item}})
	if err != nil {
		t.Fatal(err)
	}
	if newer {
		data[bytes.Index(data, []byte{'v', mailbox.Form})+1]++
	}
	if _, err := mailbox.Put(t.Context(), post, at, data); err != nil {
		t.Fatal(err)
	}
}

// CountingStore counts the entries that are read. Hold, if it is set, is called before the entries of a run are counted.
type CountingStore struct {
	mailbox.Store
	Reads *atomic.Int64
	Hold  func(ctx context.Context) error
}

func (s CountingStore) count(each func(mailbox.Message) error) func(mailbox.Message) error {
	return func(m mailbox.Message) error {
		s.Reads.Add(1)
		return each(m)
	}
}

// Read is that of the store.
func (s CountingStore) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	return s.Store.Read(ctx, at, after, through, s.count(each))
}

// ReadRun is that of the store.
func (s CountingStore) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	return s.Store.ReadRun(ctx, run, s.count(each))
}

// Entries is that of the store.
func (s CountingStore) Entries(ctx context.Context, run string) (map[mailbox.Address]uint64, error) {
	if s.Hold != nil {
		if err := s.Hold(ctx); err != nil {
			return nil, err
		}
	}
	return s.Store.Entries(ctx, run)
}

// PutPolicy appends a request to the log of a run, which makes an event.
func PutPolicy(t *testing.T, post mailbox.Store, run string, number int) {
	t.Helper()
	body, err := mailbox.Marshal(supervisor.PolicySet{By: fmt.Sprint(number)})
	if err != nil {
		t.Fatal(err)
	}
	putRequest(t, post, mailbox.At(run, mailbox.Super), mailbox.Item{ID: fmt.Sprint("q-", number), Kind: supervisor.PolicySet{}.Kind(), Body: body})
}

func putRequest(t *testing.T, post mailbox.Store, at mailbox.Address, item mailbox.Item) {
	t.Helper()
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{item}})
	if err == nil {
		_, err = mailbox.Put(t.Context(), post, at, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// OpenRun puts a run of some requests into a store.
func OpenRun(t *testing.T, post mailbox.Store, run string, requests int) {
	t.Helper()
	PutFact(t, post, mailbox.At(run, mailbox.Super), "", supervisor.Opened{Run: run, Goal: "do it", Root: "lead", Definitions: []supervisor.Definition{{Name: "lead"}}}, false)
	for i := range requests {
		PutPolicy(t, post, run, i)
	}
}
