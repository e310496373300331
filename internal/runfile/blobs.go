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
	for _, m := range entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil || m.To.Agent() == mailbox.Super {
			continue
		}
		for _, item := range e.Items {
			fact, ok, err := agent.Decode(item.Kind, func(into any) error { return mailbox.Unmarshal(item.Body, into) })
			if ok && err == nil {
				addBlobs(fact, add)
			}
		}
	}
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
