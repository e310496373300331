package nodes

import (
	"strings"

	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/term"
)

// readyWord begins the line in which a node reports that it answers requests.
const readyWord = "ready "

// nextStep says how to start a run on the nodes, and which directories it may have.
func (cs *Commands) nextStep(roots []string) string {
	flags := cs.Sessions.HintFlags()
	dir, without := "", "; runs get no directory: troupe up --root DIR permits DIR and what is below it"
	if len(roots) > 0 {
		dir, without = " --dir "+session.QuoteForShell(roots[0]), ""
	}
	return term.CleanLine("all nodes are ready; next: troupe start" + dir + ` "what to do"` + flags + " starts a run, troupe top" + flags + " shows all" + without)
}

// reportTexts says that observers get events without texts, and how to change that. Wrong settings are reported by the
// nodes, which read the same.
func (cs *Commands) reportTexts() {
	found, err := config.Load(config.SettingSources{Getenv: cs.Console.Getenv})
	if err == nil && found["events_content"].Value != "full" {
		cs.Console.Say("its events have no texts of people, models and tools (docs/events.md#texts): TROUPE_EVENTS_CONTENT=full troupe up shows them, troupe follow RUN and troupe events RUN always do")
	}
}

// reportReady notes that a line of a node says that it answers requests. The next step follows the line of the last node.
func (w *lineWriter) reportReady(text string) {
	if !strings.HasPrefix(text, readyWord) {
		return
	}
	w.mu.Lock()
	w.starting--
	isLast := w.starting == 0
	w.mu.Unlock()
	if isLast {
		w.writeLine(w.next)
	}
}
