package main

import (
	"context"
	"os"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control/runindex"
)

// olden lets time pass for runs that have ended: olden DIR DURATION RUN... sets back when the index of a state directory says that they
// started and ended. Nobody may own the directory meanwhile.
func olden() {
	ctx := context.Background()
	passed, err := time.ParseDuration(os.Args[2])
	check(err)
	e, err := embedded.Start(embedded.Config{StateDir: os.Args[1], Lazy: true, LogStore: statedir.LogsInFiles})
	check(err)
	nc, err := e.Connect(bus.RoleNode)
	check(err)
	buckets, err := bus.ConnectBuckets(ctx, nc, bus.BucketConfig{})
	check(err)
	runs := runindex.Open(buckets)
	for _, run := range os.Args[3:] {
		check(runs.Change(ctx, run, func(i *client.RunInfo) {
			for _, at := range []*string{&i.Started, &i.Ended} {
				was, err := time.Parse(time.RFC3339, *at)
				check(err)
				*at = was.Add(-passed).UTC().Format(time.RFC3339)
			}
		}))
	}
	nc.Close()
	check(e.Close())
}
