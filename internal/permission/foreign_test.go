package permission_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// A rule that allows a call of an agent of another program names it, or those of its owner or harness. One that denies or
// asks also covers it as a whole.
//
//behaviour:shows H5
func TestRulesAboutAgentsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	const call = `{"agent":"cc/derek/reviewer","task":"x"}`
	for _, c := range []struct {
		allow, ask, deny, args string
		yes                    bool
		want                   permission.Decision
	}{
		{args: call, want: permission.Ask},
		{args: call, yes: true, want: permission.Allow},
		{allow: "delegate", args: call, want: permission.Ask},
		{allow: "delegate(*)", args: call, want: permission.Ask},
		{allow: "delegate(cc/derek/reviewer)", args: call, want: permission.Allow},
		{allow: "delegate(cc/derek/*)", args: call, want: permission.Allow},
		{allow: "delegate(cc/*)", args: call, want: permission.Allow},
		{allow: "delegate(cc/derek/*)", args: `{"agent":"cc/derek2/x","task":"x"}`, want: permission.Ask},
		{allow: "delegate(oc/*)", args: call, want: permission.Ask},
		{allow: "delegate(cc/*)", args: `{"agent":"cc/derek/reviewer","agent":"oc/derek/x","task":"x"}`, want: permission.Ask},
		{allow: "delegate(cc/*)", ask: "delegate(cc/derek/*)", args: call, want: permission.Ask},
		{allow: "delegate(cc/*)", deny: "delegate", args: call, want: permission.Deny},
		{yes: true, deny: "delegate(cc/derek/*)", args: call, want: permission.Deny},
		{deny: "delegate(cc/*)", args: `{"agent":"cc","task":"x"}`, want: permission.Allow},
		{yes: true, deny: "delegate(*/*)", args: call, want: permission.Deny},
		{deny: "delegate(*/*)", args: `{"agent":"helper","task":"x"}`, want: permission.Allow},
		{yes: true, deny: "delegate(*/*)", args: `{"agent":"a2a/reviewer","task":"x"}`, want: permission.Deny},
		{allow: "delegate", args: `{"agent":"a2a/reviewer","task":"x"}`, want: permission.Ask},
		{allow: "delegate(a2a/*)", args: `{"agent":"a2a/reviewer","task":"x"}`, want: permission.Allow},
		{allow: "delegate(a2a/reviewer)", args: `{"agent":"a2a/other","task":"x"}`, want: permission.Ask},
		{allow: "delegate(", args: call, want: permission.Deny},
		{allow: "delegate(*/x)", args: call, want: permission.Deny},
		{allow: "delegate(cc*)", args: call, want: permission.Deny},
		{allow: "delegate(/*)", args: call, want: permission.Deny},
		{allow: "delegate(cc/derek/reviewer/*)", args: call, want: permission.Deny},
	} {
		p := spec.Permissions{Allow: rules(c.allow), Ask: rules(c.ask), Deny: rules(c.deny), Yes: c.yes}
		if got := decide(p, "delegate", c.args); got.Decision != c.want {
			t.Errorf("allow %q, ask %q, deny %q, yes %v, %s: %+v, want %d", c.allow, c.ask, c.deny, c.yes, c.args, got, c.want)
		}
	}
	if got := permission.RuleFor(permission.Call{Tool: "delegate", Args: call}); got != "delegate(cc/derek/reviewer)" {
		t.Errorf("the rule that an answer adds is %q", got)
	}
	if got := permission.RuleFor(permission.Call{Tool: "delegate", Args: `{"agent":"cc/derek/*","task":"x"}`}); got != "" {
		t.Errorf("a name with a star becomes the rule %q", got)
	}
}
