package filechange

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatAPersonChangedBetweenTwoCommandsIsTheContentBefore: what the look after a command has read is used again
// before the next one, but not of a file that was touched since, even if its size and its time are as before.
func TestWhatAPersonChangedBetweenTwoCommandsIsTheContentBefore(t *testing.T) {
	dir := t.TempDir()
	name, long := filepath.Join(dir, "f"), time.Now().Add(-time.Hour)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = at.Close() }()
	command := func(text string) Change {
		t.Helper()
		compare := Watch(t.Context(), at, nil)
		write(text)
		changes, lost := compare()
		if len(changes) != 1 || lost != "" {
			t.Fatalf("%v, %s", changes, lost)
		}
		return changes[0]
	}
	write("0000")
	command("1111")
	write("2222")
	if c := command("3333"); string(c.Before.Data) != "2222" || string(c.After.Data) != "3333" {
		t.Errorf("from %q to %q", c.Before.Data, c.After.Data)
	}
}

// TestFilesThatNobodyTouchedAreNotReadAgain, and the snapshots in memory are bounded.
func TestFilesThatNobodyTouchedAreNotReadAgain(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	kept := func(at time.Time) map[string]seenFile {
		return map[string]seenFile{"f": {info: info, state: State{Exists: true, Kept: true, Size: 1, Data: []byte("x")}, at: at}}
	}
	if _, ok := (&Snapshot{began: now, files: kept(now.Add(time.Hour))}).find("f", info); !ok {
		t.Error("a file that was not touched is read again")
	}
	if _, ok := (&Snapshot{began: now.Add(time.Hour), files: kept(now)}).find("f", info); ok {
		t.Error("a file that was changed as the directory was looked at is believed")
	}
	var r recentSnapshots
	for range 2 * recentMax {
		other, err := os.Stat(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		r.put(other, &Snapshot{})
	}
	if len(r.list) != recentMax {
		t.Errorf("%d snapshots are in memory", len(r.list))
	}
	r.expiry.Stop()
}

// TestALookThatFindsAFileUntouchedDoesNotVouchForItsContent: a file was read in the tick of the clock in which it was
// changed, and perhaps once more after that. A later look keeps what was read, and it stays in doubt.
func TestALookThatFindsAFileUntouchedDoesNotVouchForItsContent(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	s := Take(t.Context(), root, nil, nil)
	stale := s.files["f"]
	stale.state = Content([]byte("1"), 0o600)
	s.files["f"] = stale
	_, _, now := s.Compare(root)
	now.began = now.began.Add(time.Hour)
	if again := Take(t.Context(), root, nil, now); string(again.files["f"].state.Data) != "2" {
		t.Errorf("the content is %q", again.files["f"].state.Data)
	}
}

// TestSnapshotsLeaveMemoryAfterTheLastCommand: an idle node keeps no contents of files.
func TestSnapshotsLeaveMemoryAfterTheLastCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, err := os.Stat(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var r recentSnapshots
		r.put(dir, &Snapshot{})
		<-time.After(recentFor - time.Second)
		r.put(dir, &Snapshot{})
		<-time.After(recentFor - time.Second)
		if r.find(dir) == nil {
			t.Error("a snapshot left memory while commands run")
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if r.find(dir) != nil {
			t.Error("a snapshot is in memory long after the last command")
		}
	})
}
