package run

import (
	"errors"
	"os"
	"testing"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// Of the settings of one run nothing remains in the next one, nor in the command.
func TestEachRunBeginsWithItsOwnSettings(t *testing.T) {
	errEnough := errors.New("enough")
	a := &console.Console{Getenv: func(string) string { return "" }, Err: os.Stderr}
	cs := &Commands{Console: a, Sessions: &session.Opener{Console: a, StateDir: "kept"}, Origins: &request.Origins{}}
	begin := cs.Begin(func(_ *cobra.Command, _ []string, s *session.Opener, o *request.Origins) error {
		if s.Model != "" || s.RequestRates != "" || *o != (request.Origins{}) || s.StateDir != "kept" {
			t.Errorf("%q %q %+v %q", s.Model, s.RequestRates, *o, s.StateDir)
		}
		s.Model, s.RequestRates = "m", "1"
		o.TokensByDirectory, o.SchemaBelow = true, "."
		return errEnough
	})
	for range 2 {
		if _, _, err := begin(t.Context(), nil, "go"); !errors.Is(err, errEnough) {
			t.Error(err)
		}
	}
	if cs.Sessions.Model != "" || *cs.Origins != (request.Origins{}) {
		t.Errorf("%q %+v", cs.Sessions.Model, *cs.Origins)
	}
}
