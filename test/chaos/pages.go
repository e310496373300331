package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// httpToken is the token of the nodes' HTTP servers.
const httpToken = "the-token-of-a-scenario"

// Number of times that a page reconnects, and the pause before each.
const (
	pageAttempts = 5
	pagePause    = time.Second
)

// pagesPerRun is how many pages a run gets when it starts, of n pages in all: so all are open while several runs are
// at work.
func pagesPerRun(n int) int { return max(n/6, 1) }

// openPages opens n pages. Each follows a run from its start to its end over HTTP, and then waits for another run.
func (w *observerConns) openPages(d *observerDialer, n int, address string) error {
	starts := *d
	starts.subject = fmt.Sprintf("%s*.super.%s", strings.TrimSuffix(names.Names{}.AllEvents(), ">"), event.KindRunStarted)
	c, events, err := starts.dial()
	if err != nil {
		return err
	}
	w.keep(c)
	started := make(chan string, n)
	w.wait.Go(func() {
		defer close(started)
		for {
			line, err := events.ReadString('\n')
			if err != nil {
				return
			}
			fields := strings.Split(line, ".")
			if !strings.HasPrefix(line, "MSG ") || len(fields) < 3 {
				continue
			}
			for range pagesPerRun(n) {
				select {
				case started <- fields[2]:
				default: // all pages are open
				}
			}
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	w.wait.Go(func() {
		<-w.over
		stop()
	})
	pages := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	for range n {
		w.wait.Go(func() {
			for run := range started {
				if !w.showRun(ctx, pages, address, run) {
					w.countBroken()
				}
			}
		})
	}
	return nil
}

// showRun follows a run to its end, and comes back when the stream breaks, as a page does.
func (w *observerConns) showRun(ctx context.Context, pages *http.Client, address, run string) bool {
	for range pageAttempts {
		if w.followPage(ctx, pages, address, run) == nil || ctx.Err() != nil {
			return true
		}
		select {
		case <-time.After(pagePause):
		case <-ctx.Done():
			return true
		}
	}
	return false
}

// followPage reads the events of a run until its end.
func (w *observerConns) followPage(ctx context.Context, pages *http.Client, address, run string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/v1/runs/"+run+"/events", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+httpToken)
	r.Header.Set("Accept", "text/event-stream")
	reply, err := pages.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	lines, ended := bufio.NewReaderSize(reply.Body, 64<<10), false
	for {
		line, err := lines.ReadSlice('\n')
		w.read.Add(int64(len(line)))
		ended = ended || strings.HasPrefix(string(line), "event: end")
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && ended:
			return nil
		case err != nil:
			return err
		}
	}
}
