package actors

import (
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

// TestShellThatCrashedWhileAnsweringAnswersAfterRestart: a shell said that it was through, read a question
// and crashed over the answer. The router hears of the crash first: the shell that it
// starts again has the question to answer.
func TestShellThatCrashedWhileAnsweringAnswersAfterRestart(t *testing.T) {
	at := mailbox.At("r", "root")
	r := newRouter(t.Context(), Config{}, nil)
	r.shells[at] = &shellPlace{head: 5} // no shell: it waits for a restart
	r.forgetEnded(nil, logEnded{at, 4})
	if _, gone := r.gone[at]; gone || r.shells[at] == nil {
		t.Error("the log counts as ended, and its question is never answered")
	}
	r.forgetEnded(nil, logEnded{at, 5})
	if _, gone := r.gone[at]; !gone {
		t.Error("a log that was read to its end is not let go")
	}
}
