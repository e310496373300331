package cli

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
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
		flags := runFlags{resume: "half"}
		command := &cobra.Command{}
		flags.add(command.Flags())
		if c.setting != "" {
			if err := command.Flags().Lookup("timeout").Value.Set(c.setting); err != nil { // as settings are applied
				t.Fatal(err)
			}
		}
		if err := command.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		if err := flags.complete(&console{getenv: func(string) string { return "" }}, &settingOrigins{}, command, nil); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := time.Duration(flags.request.TimeoutMS) * time.Millisecond; got != c.want || !flags.request.Resume {
			t.Errorf("%s: resume %t with a limit of %s, want %s", c.name, flags.request.Resume, got, c.want)
		}
	}
}
