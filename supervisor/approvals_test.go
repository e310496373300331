package supervisor

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// Of two people who approve at the same moment, the second one has seen the question before the first approval: it stays
// the same question, or the second approval would be refused as an answer to one that is closed.
func TestQuestionStaysTheSameAfterTheFirstApproval(t *testing.T) {
	s := State{Now: 100}.put(Member{ID: spec.Root})
	ask := func(entry uint64, f agent.Park) OpenQuestion {
		s.Now += 10
		s, _ = handlePark(s, spec.Root, f, entry)
		return s.Summary(true).Questions[0]
	}
	first := ask(3, agent.Park{Query: "2-0.0", Approvals: 2})
	approved := ask(5, agent.Park{Query: "2-0.0", Approvals: 2, ApprovedBy: "ann", ApprovedRequest: "r"})
	if approved.Asked != first.Asked || approved.AskedMS != first.AskedMS || approved.ApprovedBy != "ann" {
		t.Errorf("asked as entry %d at %d, after one approval as %d at %d: %+v", first.Asked, first.AskedMS, approved.Asked, approved.AskedMS, approved)
	}
	if again := ask(8, agent.Park{Query: "2-0.0", Approvals: 2}); again.Asked != 8 || again.AskedMS == first.AskedMS {
		t.Errorf("a later question of the same name: %+v", again)
	}
}
