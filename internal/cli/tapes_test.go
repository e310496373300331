package cli

import (
	"errors"
	"strings"
	"testing"
)

// A recording into the directory of the run is refused before anything is written there.
func TestARecordingOfTheDirectoryItselfIsRefusedFirst(t *testing.T) {
	dir := t.TempDir()
	for _, flags := range []tapeFlags{{record: dir}, {replay: dir}, {record: dir + "/x/.."}} {
		err := flags.check(dir, false, false)
		var f *failure
		if !errors.As(err, &f) || f.code != exitUsage || !strings.Contains(err.Error(), "is the recording") {
			t.Errorf("%+v: %v", flags, err)
		}
	}
	beside := tapeFlags{record: dir + "/tape"}
	if err := beside.check(dir, false, false); err != nil {
		t.Error(err)
	}
}
