package bus

import (
	"strings"
	"testing"
)

// TestServersWithKnownHolesAreTooOld: and it is said why.
func TestServersWithKnownHolesAreTooOld(t *testing.T) {
	for version, old := range map[string]bool{
		"2.10.29": true, "2.11.4": true, "2.12.6": true, "2.12.7-RC.1": true, "2.12.7": false, "v2.12.9": false, "2.13.0": true,
		"2.14.0-beta.2": true, "2.14.0": false, "2.15.2": false, "2.16.0-dev": false, "3.0.0": false, "": true, "nightly": true,
	} {
		if why := versionProblem(version); (why != "") != old || old && !strings.Contains(why, "needed") {
			t.Errorf("%q: %q", version, why)
		}
	}
}

// TestEveryProfileDescribesItsGuarantee: and no two the same.
func TestEveryProfileDescribesItsGuarantee(t *testing.T) {
	said := map[string]bool{}
	for _, p := range AllProfiles() {
		if p.Promise() == "" || said[p.Promise()] {
			t.Errorf("%s: %q", p, p.Promise())
		}
		said[p.Promise()] = true
	}
	for _, c := range []struct {
		embedded, lazy bool
		copies         int
		want           Profile
	}{
		{true, false, 1, EmbeddedSync}, {true, true, 1, EmbeddedLazy}, {false, false, 1, ServerSync}, {false, true, 2, ServerLazy},
		{false, false, 3, ClusterSync}, {false, true, 5, ClusterLazy},
	} {
		if got := profileOf(c.embedded, c.lazy, c.copies); got != c.want || got.IsLazy() != c.lazy {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
