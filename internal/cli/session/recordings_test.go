package session

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/cli/exit"
)

// A recording into the directory of the run is refused before anything is written there.
func TestARecordingOfTheDirectoryItselfIsRefusedFirst(t *testing.T) {
	dir := t.TempDir()
	for _, flags := range []Recordings{{record: dir}, {replay: dir}, {record: dir + "/x/.."}} {
		err := flags.Check(dir, false, false)
		var f *exit.Failure
		if !errors.As(err, &f) || f.Code != exit.Usage || !strings.Contains(err.Error(), "is the recording") {
			t.Errorf("%+v: %v", flags, err)
		}
	}
	beside := Recordings{record: dir + "/tape"}
	if err := beside.Check(dir, false, false); err != nil {
		t.Error(err)
	}
}
