package activation_test

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// stepNames is a machine that records the kinds of the facts that it steps.
type stepNames struct{ kinds []string }

func (m *stepNames) Ended() bool          { return false }
func (m *stepNames) Rests() (int64, bool) { return 0, false }
func (m *stepNames) Step(f activation.Fact) activation.Stepped {
	m.kinds = append(m.kinds, f.Kind)
	return activation.Stepped{}
}

// TestLogReader_ReadsTheEndOfADamagedLog: a log that has lost its head counts its messages anew, so the
// identity of its end may have been used. If the log of the run has lost what the agent said of the
// damage, that end is all that the supervisor hears, and it is read once (P6, P25).
func TestLogReader_ReadsTheEndOfADamagedLog(t *testing.T) {
	end := func(why spec.Reason) mailbox.Item {
		f := agent.Finish{Outcome: spec.Outcome{Reason: why}}
		return mailbox.Item{N: 7, I: 1, Kind: f.Kind(), Body: decodeBody(t, f)}
	}
	back := agent.ReportLog{Activation: "b", Node: "n1"}
	shorter := mailbox.Item{N: 7, I: 0, Kind: back.Kind(), Body: decodeBody(t, back)}
	for name, c := range map[string]struct {
		entries []mailbox.Item
		want    []string
	}{
		"the end of a damaged log":               {[]mailbox.Item{end(spec.LogDamaged), end(spec.LogDamaged)}, []string{"delegate", "finish"}},
		"any other end was read before":          {[]mailbox.Item{end(spec.Completed)}, []string{"delegate"}},
		"an end after the agent told its damage": {[]mailbox.Item{shorter, end(spec.LogDamaged)}, []string{"delegate", "report_log"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &stepNames{}
			l := activation.NewLogReader(super, "", mailbox.Epoch{}, m)
			f := agent.Delegate{Call: "1-0", Child: "root-1-0"}
			items := append([]mailbox.Item{{N: 7, I: 1, Kind: f.Kind(), Body: decodeBody(t, f)}}, c.entries...)
			for i, item := range items {
				data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: root, Items: []mailbox.Item{item}})
				if err != nil {
					t.Fatal(err)
				}
				l.Next(mailbox.Message{To: super, Place: uint64(i + 1), At: 1000, Data: data})
			}
			if !slices.Equal(m.kinds, c.want) {
				t.Errorf("the supervisor reads %v, want %v", m.kinds, c.want)
			}
		})
	}
}
