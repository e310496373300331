package tokens

import "github.com/troupe-run/troupe/model"

// Message estimates the texts of a message: what was said, calls and results.
func Message(m model.Message) int64 {
	n := Estimate(m.Text)
	for _, c := range m.Calls {
		n += Estimate(c.Name) + Estimate(c.Args)
	}
	for _, r := range m.Results {
		n += Estimate(r.Text)
	}
	return n
}
