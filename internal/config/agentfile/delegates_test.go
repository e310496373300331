package agentfile

import (
	"slices"
	"strings"
	"testing"
)

// A delegate of another program is three tokens of a subject. Anything else with a slash is an error that names the file, the
// line and the form.
func TestDelegatesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	parse := func(list string) (Definition, error) {
		d, _, err := Parse("boss.md", []byte("---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: "+list+"\n---\nDelegate.\n"))
		return d, err
	}
	for _, list := range []string{"[cc/derek]", "[cc/derek/a/b]", "[cc/derek/*]", "['cc/de rek/x']", "[cc//x]", "[/derek/x]", "[agents.prompt.cc.derek.x]", "[cc/derek/a.b]", "['cc/derek/>']",
		"[cc/derek/" + strings.Repeat("x", 64) + "]"} {
		if _, err := parse(list); err == nil || !strings.Contains(err.Error(), "boss.md:5") || !strings.Contains(err.Error(), "HARNESS/OWNER/NAME") {
			t.Errorf("%s: %v", list, err)
		}
	}
	d, err := parse("[helper, cc/derek/Review_er-1]")
	if err != nil || !slices.Equal(d.Delegates, []string{"helper", "cc/derek/Review_er-1"}) {
		t.Fatalf("%q %v", d.Delegates, err)
	}
	less, off := d.WithoutTrust()
	if !slices.Equal(less.Delegates, []string{"helper"}) || !slices.Contains(off, "agents of other programs (x-troupe.delegates)") {
		t.Errorf("without trust: %q, off %q", less.Delegates, off)
	}
	d, err = parse("[cc/derek/x]")
	if less, _ := d.WithoutTrust(); err != nil || less.Delegates == nil || len(less.Delegates) > 0 {
		t.Errorf("an agent that may call nobody else may call all: %v, %v", less.Delegates, err)
	}
}

// A conversation can be handed off to agents of the run alone, and the key grants no other delegate.
func TestHandoffs(t *testing.T) {
	t.Parallel()
	parse := func(list string) (Definition, error) {
		d, _, err := Parse("triage.md", []byte("---\nname: triage\ndescription: Finds who can help.\nx-troupe:\n  handoffs: "+list+"\n---\nFind out.\n"))
		return d, err
	}
	d, err := parse("[billing, shipping]")
	if err != nil || !slices.Equal(d.Handoffs, []string{"billing", "shipping"}) || d.Delegates != nil {
		t.Errorf("%q %q %v", d.Handoffs, d.Delegates, err)
	}
	if _, err := parse("[cc/derek/x]"); err == nil || !strings.Contains(err.Error(), "triage.md:5") || !strings.Contains(err.Error(), "x-troupe.delegates") {
		t.Errorf("an agent of another program: %v", err)
	}
}
