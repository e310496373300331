package follow

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// A key answers only if no other key was pressed shortly before or after it while the question was on the screen.
func TestOnlyASingleKeyInAQuietMomentAnswers(t *testing.T) {
	type key struct {
		atMS  int
		typed string
	}
	for name, c := range map[string]struct {
		rule  string
		keys  []key
		want  byte
		early bool
		none  bool // the key means nothing
	}{
		"one key":                      {keys: []key{{600, "y"}}, want: 'y'},
		"with shift":                   {keys: []key{{600, "N"}}, want: 'n'},
		"and Enter":                    {keys: []key{{600, "y\n"}}, want: 'y'},
		"Enter behind it":              {keys: []key{{600, "y"}, {620, "\r"}}, want: 'y'},
		"Enter alone":                  {keys: []key{{600, "\n"}}, none: true},
		"too early":                    {keys: []key{{400, "y"}}, early: true},
		"in the middle of typing":      {keys: []key{{300, "e"}, {600, "y"}, {900, "y"}}, early: true},
		"after a pause":                {keys: []key{{300, "e"}, {801, "y"}}, want: 'y'},
		"a paste":                      {keys: []key{{900, "yes"}}, early: true},
		"a paste in two parts":         {keys: []key{{900, "y"}, {930, "es"}}, early: true},
		"the beginning of a word":      {rule: "shell(make)", keys: []key{{900, "p"}, {1100, "w"}, {1300, "d"}}, early: true},
		"a key that is held":           {keys: []key{{600, "y"}, {700, "y"}, {800, "y"}}, early: true},
		"an arrow":                     {keys: []key{{900, "\x1b[A"}}, early: true},
		"Alt and a key":                {keys: []key{{900, "\x1by"}}, early: true},
		"another letter":               {keys: []key{{900, "q"}}, none: true},
		"a letter of another alphabet": {keys: []key{{900, "ы"}}, early: true},
		"always, without a rule":       {keys: []key{{900, "a"}}, none: true},
		"a letter after an early key":  {keys: []key{{400, "y"}, {1200, "q"}}, none: true},
		"always, with a rule":          {rule: "shell(make)", keys: []key{{900, "a"}}, want: 'a'},
		"the project":                  {rule: "shell(make)", keys: []key{{900, "p"}}, want: 'p'},
		"again after a paste":          {keys: []key{{900, "yes"}, {1500, "y"}}, want: 'y'},
		"the end of the input":         {keys: []key{{900, "\x04"}}, want: keyEnd},
	} {
		shown := time.UnixMilli(1_000_000)
		p := newKeyPrompt(client.Question{Rule: c.rule}, shown)
		last := 0
		for _, k := range c.keys {
			p.press(k.typed, shown.Add(time.Duration(k.atMS)*time.Millisecond))
			last = k.atMS
		}
		if got := p.settled(shown.Add(time.Duration(last)*time.Millisecond + keySettle/2)); got != 0 {
			t.Errorf("%s: %q answers at once", name, got)
		}
		if got := p.settled(shown.Add(time.Duration(last)*time.Millisecond + keySettle)); got != c.want || p.early != c.early || p.unknown && !p.early != c.none {
			t.Errorf("%s: key %q early %v unknown %v, want %q %v %v", name, got, p.early, p.unknown, c.want, c.early, c.none)
		}
	}
}

// A typed text never turns into an approval, and each answer counts for the call of its question.
func TestKeysDecide(t *testing.T) {
	p := newKeyPrompt(client.Question{RunID: "r", Agent: "root", Query: "1-0.0", Digest: "d", Rule: "shell(make)"}, time.Time{})
	for key, want := range map[byte]client.AnswerRequest{
		keyOnce:    {Decision: spec.Approve},
		keyRun:     {Decision: spec.Approve, Always: "run"},
		keyProject: {Decision: spec.Approve, Always: "project"},
		keyNo:      {Decision: spec.Deny},
		keyReason:  {Decision: spec.Deny, Text: "yes"},
		keySkip:    {Decision: spec.Skip},
		keyResult:  {Decision: spec.TextOnly, Text: "yes"},
	} {
		got := p.decide(key, want.Text)
		want.RunID, want.Agent, want.Query, want.Digest, want.By = "r", "root", "1-0.0", "d", got.By
		if got != want {
			t.Errorf("%q: %+v, want %+v", key, got, want)
		}
	}
}
