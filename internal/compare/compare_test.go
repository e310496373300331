package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The steps around the first difference are paired by what they are, and begin and end near it.
func TestStepsAroundTheFirstDifference(t *testing.T) {
	t.Parallel()
	side := func(text string) Run {
		r := Run{steps: map[string][]step{}}
		for i, word := range strings.Fields(text) {
			turn, what, _ := strings.Cut(word, "=")
			s := step{kind: "k", text: what, after: time.Duration(i) * time.Second}
			if _, err := fmt.Sscan(turn, &s.turn); err != nil {
				t.Fatal(err)
			}
			r.steps["root"] = append(r.steps["root"], s)
		}
		return r
	}
	for _, c := range []struct{ name, a, b, want string }{
		{"the same", "1=x 2=y", "1=x 2=y", ""},
		{"another text", "1=a 2=b 3=c 4=d 5=e 6=f", "1=a 2=b 3=c 4=X 5=e 6=g", "2:b|b 3:c|c 4:d|X! 5:e|e"},
		{"one has a step more", "1=a 2=b 4=d", "1=a 4=d", "1:a|a 2:b|! 4:d|d"},
		{"the other has", "1=a 4=d", "1=a 2=b 4=d", "1:a|a 2:|b! 4:d|d"},
		{"one ends", "1=a", "1=a 2=b 3=c 4=d", "1:a|a 2:|b! 3:|c!"},
		{"nothing in one", "", "1=a", "1:|a!"},
	} {
		var got []string
		for _, p := range Runs(side(c.a), side(c.b)).Around(2, 1) {
			mark := ""
			if p.Differs {
				mark = "!"
			}
			got = append(got, fmt.Sprintf("%d:%s|%s%s", p.Turn, p.A, p.B, mark))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}
