package bus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Profile names the durability that a server promises for acknowledged writes.
type Profile string

// The profiles. The embedded ones are chosen when the server starts; for a server elsewhere
// the profile follows from the number of copies that it keeps, and from whether it must sync
// each write.
const (
	EmbeddedSync Profile = "embedded-sync"
	EmbeddedLazy Profile = "embedded-lazy"
	ServerSync   Profile = "server"
	ServerLazy   Profile = "server-lazy"
	ClusterSync  Profile = "cluster"
	ClusterLazy  Profile = "cluster-lazy"
)

// AllProfiles lists them all.
func AllProfiles() []Profile {
	return []Profile{EmbeddedSync, EmbeddedLazy, ServerSync, ServerLazy, ClusterSync, ClusterLazy}
}

// ClusterCopies is the least number of copies of each log in a cluster.
const ClusterCopies = 3

var promises = map[Profile]string{
	EmbeddedSync: "acknowledged writes survive kill -9, and a power loss if the disk honors syncs; not the loss of the disk",
	EmbeddedLazy: "acknowledged writes survive kill -9 only: a power loss can lose the last two minutes",
	ServerSync:   "acknowledged writes survive a crash of the server and a power loss; not the loss of its disk",
	ServerLazy:   "acknowledged writes survive a crash of the server's process only",
	ClusterSync:  "acknowledged writes survive the loss of any one server with its disk, and a power loss of all servers",
	ClusterLazy:  "acknowledged writes survive the loss of any one server, not a power loss of several",
}

// Promise describes the promise of a profile in a sentence.
func (p Profile) Promise() string { return promises[p] }

// IsLazy reports whether writes may be acknowledged before they are on a disk.
func (p Profile) IsLazy() bool { return p == EmbeddedLazy || p == ServerLazy || p == ClusterLazy }

func profileOf(embedded, lazy bool, copies int) Profile {
	switch {
	case embedded && lazy:
		return EmbeddedLazy
	case embedded:
		return EmbeddedSync
	case copies >= ClusterCopies && lazy:
		return ClusterLazy
	case copies >= ClusterCopies:
		return ClusterSync
	case lazy:
		return ServerLazy
	}
	return ServerSync
}

// FindingStatus of a Finding.
type FindingStatus string

// A finding was verified, cannot be verified from here, or does not hold.
const (
	Proven   FindingStatus = "proven"
	Unproven FindingStatus = "unproven"
	Failed   FindingStatus = "failed"
)

// Finding is the result of one check.
type Finding struct {
	Check  string        `json:"check"`
	Status FindingStatus `json:"status"`
	Detail string        `json:"detail"`
	Remedy string        `json:"remedy,omitempty"`
	// Refuses says that no node starts if the check fails.
	Refuses bool `json:"-"`
}

// Proof is what was verified of a profile's promise.
type Proof struct {
	Profile  Profile   `json:"profile"`
	Promise  string    `json:"promise"`
	Findings []Finding `json:"findings"`
}

// ErrUnfit says that the server does not keep what its profile promises.
var ErrUnfit = errors.New("bus: the server does not satisfy the durability profile")

// Err reports the findings that prevent a node from starting, each with its remedy; nil if
// there are none.
func (p Proof) Err() error {
	var wrong []string
	for _, f := range p.Findings {
		if f.Refuses && f.Status == Failed {
			wrong = append(wrong, f.Detail+" ("+f.Remedy+")")
		}
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%w: profile %s: %s", ErrUnfit, p.Profile, strings.Join(wrong, "; "))
}

// UnprovenChecks names the checks that are not proven.
func (p Proof) UnprovenChecks() []string {
	var open []string
	for _, f := range p.Findings {
		if f.Status != Proven {
			open = append(open, f.Check)
		}
	}
	return open
}

// String describes the profile in a few words, for a line of a log or a table.
func (p Proof) String() string {
	if open := p.UnprovenChecks(); len(open) > 0 {
		return fmt.Sprintf("%s (not proven: %s)", p.Profile, strings.Join(open, ", "))
	}
	return string(p.Profile)
}

// advisories are the reasons why a server is too old: on the network of an unpatched server,
// any client may harm what the roles protect. The newest fix of each release line counts.
var advisories = []struct {
	fixed []string // first releases with the fix, oldest first
	what  string
}{
	{[]string{"v2.12.7", "v2.14.0"}, "older releases accept any process that reaches the routes port as a server of the cluster (NATS advisory 2026-16)"},
}

// ServerMin is the oldest release of nats-server that a node accepts.
const ServerMin = "2.12.7"

// versionProblem says why a release is rejected; "" if it is accepted.
func versionProblem(version string) string {
	v := "v" + strings.TrimPrefix(version, "v")
	if !semver.IsValid(v) {
		return fmt.Sprintf("version %q is unknown; at least %s is needed", version, ServerMin)
	}
	for _, a := range advisories {
		if semver.Compare(v, releaseWithFix(v, a.fixed)) < 0 {
			return fmt.Sprintf("version %s is too old, at least %s is needed: %s", strings.TrimPrefix(v, "v"), strings.TrimPrefix(releaseWithFix(v, a.fixed), "v"), a.what)
		}
	}
	return ""
}

// releaseWithFix is the release that has the fix for users of v.
func releaseWithFix(v string, fixed []string) string {
	i := slices.IndexFunc(fixed, func(f string) bool { return semver.Compare(semver.MajorMinor(f), semver.MajorMinor(v)) >= 0 })
	if i < 0 {
		return fixed[len(fixed)-1]
	}
	return fixed[i]
}
