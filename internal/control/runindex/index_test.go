package runindex_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/control/runindex"
)

// TestARottenRowDoesNotHoldUpTheList: one bit of a row of the index turns over
// while the server is down. The list comes, without it: a node asks for it when
// it starts, and would never be there.
func TestARottenRowDoesNotHoldUpTheList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	use := func(do func(*runindex.Index)) {
		e, err := embedded.Start(embedded.Config{StateDir: dir, DontListen: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		nc, err := e.Connect(bus.RoleNode)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		buckets, err := bus.ConnectBuckets(ctx, nc, bus.BucketConfig{})
		if err != nil {
			t.Fatal(err)
		}
		do(runindex.Open(buckets))
	}
	use(func(r *runindex.Index) {
		for _, run := range []string{"first", "second"} {
			if _, err := r.Add(ctx, client.RunInfo{RunID: run, State: client.RunLive, Title: "title of " + run}); err != nil {
				t.Fatal(err)
			}
		}
	})
	flipped := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".blk") {
			return err
		}
		data, err := os.ReadFile(path)
		if at := bytes.Index(data, []byte("title of second")); err == nil && at >= 0 {
			flipped = true
			data[at] ^= 1
			err = os.WriteFile(path, data, 0o600)
		}
		return err
	})
	if err != nil || !flipped {
		t.Fatal("no row was found", err)
	}
	use(func(r *runindex.Index) {
		r.ListQuiet = time.Second
		list, err := r.List(ctx)
		if err != nil || len(list) != 1 || list[0].RunID != "first" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
