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
		rule    string
		keys    []key
		want    byte
		ignored ignored
	}{
		"one key":                      {keys: []key{{600, "y"}}, want: 'y'},
		"with shift":                   {keys: []key{{600, "N"}}, want: 'n'},
		"and Enter":                    {keys: []key{{600, "y\n"}}, want: 'y'},
		"Enter behind it":              {keys: []key{{600, "y"}, {620, "\r"}}, want: 'y'},
		"Enter alone":                  {keys: []key{{600, "\n"}}, ignored: ignoredMeaningless},
		"too early":                    {keys: []key{{400, "y"}}, ignored: ignoredEarly},
		"in the middle of typing":      {keys: []key{{300, "e"}, {600, "y"}, {900, "y"}}, ignored: ignoredEarly},
		"after a pause":                {keys: []key{{300, "e"}, {801, "y"}}, want: 'y'},
		"a paste":                      {keys: []key{{900, "yes"}}, ignored: ignoredEarly},
		"a paste in two parts":         {keys: []key{{900, "y"}, {930, "es"}}, ignored: ignoredEarly},
		"the beginning of a word":      {rule: "shell(make)", keys: []key{{900, "p"}, {1100, "w"}, {1300, "d"}}, ignored: ignoredEarly},
		"a key that is held":           {keys: []key{{600, "y"}, {700, "y"}, {800, "y"}}, ignored: ignoredEarly},
		"an arrow":                     {keys: []key{{900, "\x1b[A"}}, ignored: ignoredEarly},
		"Alt and a key":                {keys: []key{{900, "\x1by"}}, ignored: ignoredEarly},
		"another letter":               {keys: []key{{900, "q"}}, ignored: ignoredMeaningless},
		"a letter of another alphabet": {keys: []key{{900, "ы"}}, ignored: ignoredEarly},
		"always, without a rule":       {keys: []key{{900, "a"}}, ignored: ignoredMeaningless},
		"a letter after an early key":  {keys: []key{{400, "y"}, {1200, "q"}}, ignored: ignoredMeaningless},
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
		if got := p.settled(shown.Add(time.Duration(last)*time.Millisecond + keySettle)); got != c.want || p.ignored != c.ignored {
			t.Errorf("%s: key %q, ignored %d, want %q, %d", name, got, p.ignored, c.want, c.ignored)
		}
	}
}

// A key that nothing followed in time answers, whatever is typed before the command looks at it: Enter is called no key
// without a meaning, and another key does not take its place.
func TestKeyThatHasSettledAnswers(t *testing.T) {
	shown := time.UnixMilli(1_000_000)
	for _, typed := range []string{"\n", "q", "n"} {
		for _, after := range []time.Duration{keySettle, 400 * time.Millisecond, 2 * keyQuiet} {
			p := newKeyPrompt(client.Question{}, shown)
			pressed := shown.Add(keyQuiet)
			p.press("y", pressed)
			p.press(typed, pressed.Add(after))
			if p.ignored != ignoredNone {
				t.Errorf("%q after %s: ignored %d", typed, after, p.ignored)
			}
			if got := p.settled(pressed.Add(after)); got != 'y' {
				t.Errorf("%q after %s: %q answers", typed, after, got)
			}
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
