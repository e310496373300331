package httpapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
)

// countedReader has a number of events, and counts how often it is read from a cursor on, and how many reads have ended.
type countedReader struct{ events, reads, ended int }

func (c *countedReader) Events(_ context.Context, _ string, _ client.Cursor, _ bool, each func(client.Event, []byte) error) error {
	c.reads++
	defer func() { c.ended++ }()
	for i := range c.events {
		if err := each(logged("root", uint64(i+1)), []byte("{}")); err != nil {
			return nil //nolint:nilerr // as client.ErrStop
		}
	}
	return nil
}

// Pages that follow one another read the logs once.
func TestPagesOfEventsShareAReader(t *testing.T) {
	c := &countedReader{events: 95}
	p := &pausedReaders{client: c, ctx: t.Context()}
	sum, cursor := 0, ""
	for more := true; more; {
		r, size := p.open(testRun, cursor, client.Positions{}), 0
		var err error
		if more, err = r.read(t.Context(), func(readEvent) bool { size++; return size <= 10 }); err != nil {
			t.Fatal(err)
		}
		sum += min(size, 10)
		cursor = fmt.Sprint(sum)
		if more {
			p.keep(r, testRun, cursor, time.Now())
		}
	}
	if sum != c.events || c.reads != 1 || len(p.list) != 0 {
		t.Errorf("%d events by %d reads, %d readers wait", sum, c.reads, len(p.list))
	}
	for i := range pausedMax + 2 {
		r := p.open(testRun, "", client.Positions{})
		if more, err := r.read(t.Context(), func(readEvent) bool { return false }); !more || err != nil {
			t.Fatal(more, err)
		}
		p.keep(r, testRun, fmt.Sprint(i), time.Now())
	}
	if len(p.list) != pausedMax || p.list[0].key != testRun+" 2" {
		t.Errorf("%d readers wait, the first %q", len(p.list), p.list[0].key)
	}
	if p.closeBefore(time.Now()); len(p.list) != 0 || c.ended != c.reads {
		t.Errorf("%d readers wait after their time, %d of %d have ended", len(p.list), c.ended, c.reads)
	}
}

// A reader whose client has gone is not kept.
func TestPageOfAGoneClientEnds(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	r := newPageReader(t.Context(), &countedReader{events: 3}, testRun, nil)
	_, err := r.read(gone, func(readEvent) bool { cancel(); <-r.ctx.Done(); return false })
	if err == nil {
		t.Error("it would be kept")
	}
	r.close()
}

// A stream of a run of many agents has a cursor once a second.
func TestCursorsOfManyAgentsAreRare(t *testing.T) {
	st := &eventStream{run: testRun, seen: client.Positions{}}
	now, cursors := time.Now(), 0
	for i := range 10 * cursorEachMax {
		st.seen.Advance(logged(fmt.Sprintf("root-1-%d", i), 1))
		if st.cursorAfter(now.Add(time.Duration(i)*time.Millisecond)) != "" {
			cursors++
		}
	}
	if cursors != cursorEachMax+2 {
		t.Errorf("%d cursors", cursors)
	}
	if !st.cursorPending {
		t.Error("the last cursor is not pending")
	}
}

// slowReader has events without end. Its reads take their time to end.
type slowReader struct{ ending, mayEnd chan struct{} }

func (s slowReader) Events(_ context.Context, _ string, _ client.Cursor, _ bool, each func(client.Event, []byte) error) error {
	for seq := uint64(1); each(logged("root", seq), []byte("{}")) == nil; seq++ {
	}
	s.ending <- struct{}{}
	<-s.mayEnd
	return nil
}

// A reader whose read is slow to end holds up no other page.
func TestSlowEndOfAReaderHoldsUpNoPage(t *testing.T) {
	for name, end := range map[string]func(p *pausedReaders){
		"too many": func(p *pausedReaders) {
			for i := range pausedMax + 1 {
				p.keep(startedReader(t, p), testRun, fmt.Sprint(i), time.Now())
			}
		},
		"too old": func(p *pausedReaders) {
			p.keep(startedReader(t, p), testRun, "0", time.Now())
			p.closeBefore(time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := slowReader{make(chan struct{}), make(chan struct{})}
			p := &pausedReaders{client: s, ctx: t.Context()}
			ended, opened := make(chan struct{}), make(chan struct{})
			go func() { defer close(ended); end(p) }()
			<-s.ending
			go func() { defer close(opened); p.open("another", "", client.Positions{}) }()
			select {
			case <-opened:
			case <-time.After(time.Minute):
				t.Error("the page of another run waits")
			}
			close(s.mayEnd)
			<-ended
			<-opened
		})
	}
}

// startedReader is a reader that has read an event.
func startedReader(t *testing.T, p *pausedReaders) *pageReader {
	t.Helper()
	r := p.open(testRun, "", client.Positions{})
	if more, err := r.read(t.Context(), func(readEvent) bool { return false }); !more || err != nil {
		t.Error(more, err)
	}
	return r
}
