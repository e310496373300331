package request

import (
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/console"
)

// A run that is resumed takes a time limit from the flag alone: the setting is for new
// runs, and would put back what somebody gave to this one.
//
//behaviour:shows A9
func TestAResumedRunTakesItsTimeFromTheFlagAlone(t *testing.T) {
	for _, c := range []struct {
		name, setting string
		args          []string
		want          time.Duration
	}{
		{"neither", "", nil, 0},
		{"the setting", "90s", nil, 0},
		{"the flag", "90s", []string{"--timeout", "2h"}, 2 * time.Hour},
	} {
		flags := Flags{Resume: "half"}
		command := &cobra.Command{}
		flags.AddFlags(command.Flags())
		if c.setting != "" {
			if err := command.Flags().Lookup("timeout").Value.Set(c.setting); err != nil { // as settings are applied
				t.Fatal(err)
			}
		}
		if err := command.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		if err := flags.Complete(&console.Console{Getenv: func(string) string { return "" }}, &Origins{}, command, nil); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := time.Duration(flags.Request.TimeoutMS) * time.Millisecond; got != c.want || !flags.Request.Resume {
			t.Errorf("%s: resume %t with a limit of %s, want %s", c.name, flags.Request.Resume, got, c.want)
		}
	}
}
