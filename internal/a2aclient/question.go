package a2aclient

import (
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/troupe-run/troupe/internal/clip"
)

// Question says that the agent needs an answer to go on with its task. A call with its ID brings the answer.
type Question struct{ ID, Text string }

func (q *Question) Error() string { return "the agent asks: " + quoteText(q.Text) }

// openTasksMax bounds the tasks of a node that wait for the answer to a question.
const openTasksMax = 256

// openTasks are the calls whose agents wait for an answer, the oldest first.
type openTasks struct {
	mu   sync.Mutex
	list []openTask
}

type openTask struct {
	id, name string
	call     *call
}

// keep keeps a call whose agent waits, and returns its question. The oldest one goes if there are too many.
func (o *openTasks) keep(k *call, name string) *Question {
	q := &Question{ID: strings.ReplaceAll(uuid.NewString(), "-", ""), Text: clip.Text(k.answer.statusText, quotedBytesMax)}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) == openTasksMax {
		o.list = slices.Delete(o.list, 0, 1)
	}
	o.list = append(o.list, openTask{q.ID, name, k})
	return q
}

// take returns the call that waits for the answer to a question; nil: there is none.
func (o *openTasks) take(id, name string) *call {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.list, func(t openTask) bool { return t.id == id && t.name == name })
	if i < 0 {
		return nil
	}
	k := o.list[i].call
	o.list = slices.Delete(o.list, i, i+1)
	return k
}
