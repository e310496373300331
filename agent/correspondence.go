package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

// correspondence is what other agents have sent to this one, and what they still owe it.
type correspondence struct {
	Mail               []Messaged        // until the next turn boundary
	BackgroundChildren []backgroundChild // each answers with a message
}

// backgroundChild is a background child.
type backgroundChild struct {
	Child spec.ID
	Call  string
	Name  string
	Born  int64 // the parent's clock when it requested the child
}

// awaitsOthers reports whether there is a reason not to stop yet, which the model may not know.
func (c correspondence) awaitsOthers() bool { return len(c.Mail) > 0 || len(c.BackgroundChildren) > 0 }

// withMail keeps a message until the next turn boundary.
func (c correspondence) withMail(m Messaged) correspondence {
	c.Mail = append(slices.Clip(c.Mail), m)
	return c
}

// withChild records that a child works in the background.
func (c correspondence) withChild(b backgroundChild) correspondence {
	c.BackgroundChildren = append(slices.Clip(c.BackgroundChildren), b)
	return c
}

// takeAnswer removes the child that a message answers for; ok is false if the agent awaits no such answer.
func (c correspondence) takeAnswer(m Messaged) (child backgroundChild, rest correspondence, ok bool) {
	i := slices.IndexFunc(c.BackgroundChildren, func(b backgroundChild) bool { return b.Call == m.Call && b.Child == m.From })
	if i < 0 {
		return child, c, false
	}
	child = c.BackgroundChildren[i]
	c.BackgroundChildren = slices.Delete(slices.Clone(c.BackgroundChildren), i, i+1)
	return child, c, true
}
