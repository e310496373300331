package runfile

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// NamedBlobs returns the blobs that the facts of agents name, each once.
func NamedBlobs(entries []mailbox.Message) (refs []string) {
	seen := map[string]bool{"": true}
	add := func(ref string) {
		if !seen[ref] && mailbox.CheckBlobRef(ref) == nil {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	EachFact(entries, func(_ mailbox.Message, fact agent.Fact, _ bool) { addBlobs(fact, add) })
	return refs
}

func addBlobs(fact agent.Fact, add func(ref string)) {
	switch f := fact.(type) {
	case agent.Submitted:
		for _, m := range f.Task.Media {
			add(m.Ref)
		}
	case agent.Returned:
		add(f.Ref)
		for _, c := range f.Files {
			add(c.Before.Ref)
			add(c.After.Ref)
		}
	}
}
