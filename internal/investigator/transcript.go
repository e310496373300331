package investigator

import (
	"encoding/json"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/estimate"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// The tools that scout knows how to use.
const (
	toolList     = "list_dir"
	toolRead     = "read_file"
	toolGrep     = "grep"
	toolGlob     = "glob"
	toolLog      = "git_log"
	toolNumstat  = "git_numstat"
	toolWrite    = "write_file"
	toolDelegate = toolname.Delegate
)

const (
	// wavesMax is how many replies with calls a child makes before it answers.
	wavesMax = 6
	// outputMin is taken when a request names no output limit.
	outputMin = 64
)

// conversation is a request as scout reads it.
type conversation struct {
	role        string
	asked       string // every user message, the task first
	task        string // the task alone
	hints       hints
	exchanges   []toolExchange
	callReplies int // replies with calls so far
	offered     map[string]bool
	closing     bool
	final       string // last reply without calls, "" if there is none
	max         int64
	tokens      *tokenCounter
}

// toolExchange is one call and its result.
type toolExchange struct {
	wantedCall
	text     string
	answered bool
	failed   bool
}

var (
	roleLine    = lazyregexp.New(`(?m)\Aagent:[ \t]*([\w-]+)`)
	newQuestion = lazyregexp.New(`(?i)\binvestigate\b`)
)

// readConversation keeps the messages of the last task: in a longer conversation an earlier
// investigation is not evidence for a new one.
func readConversation(req model.Request, tokens *tokenCounter) *conversation {
	t := &conversation{offered: map[string]bool{}, closing: req.NoTools, max: max(req.MaxOutput, 1), tokens: tokens}
	if req.MaxOutput <= 0 {
		t.max = outputMin
	}
	if t.role = req.Caller.Name; t.role == "" { // a caller that is no node names the agent in the prompt
		if m := roleLine.FindStringSubmatch(strings.TrimSpace(req.System)); m != nil {
			t.role = m[1]
		}
	}
	if !req.NoTools {
		for _, spec := range req.Tools {
			t.offered[spec.Name] = true
		}
	}
	var users []string
	for i, m := range req.Messages {
		if m.Tombstone {
			continue
		}
		switch m.Role {
		case model.User:
			if t.final != "" && newQuestion.MatchString(m.Text) {
				users, t.exchanges, t.callReplies, t.final = nil, nil, 0, ""
			}
			users = append(users, m.Text)
		case model.Assistant:
			if len(m.Calls) == 0 {
				t.final = m.Text
				continue
			}
			t.callReplies++
			t.exchanges = append(t.exchanges, exchangesOf(m.Calls, resultsAfter(req.Messages[i+1:]))...)
		}
	}
	t.asked = strings.Join(users, "\n")
	if len(users) > 0 {
		t.task = users[0]
	}
	t.hints = readHints(t.asked)
	return t
}

// resultsAfter finds the tool message that answers the assistant message before.
func resultsAfter(rest []model.Message) []model.ToolResult {
	for _, m := range rest {
		if m.Tombstone {
			continue
		}
		if m.Role != model.ToolRole {
			return nil
		}
		return m.Results
	}
	return nil
}

func exchangesOf(calls []model.ToolCall, results []model.ToolResult) []toolExchange {
	byID := map[string]model.ToolResult{}
	for _, r := range results {
		byID[r.Call] = r
	}
	var all []toolExchange
	for i, c := range calls {
		ex := toolExchange{wantedCall: wantedCall{name: c.Name}}
		_ = json.Unmarshal([]byte(c.Args), &ex.args) // arguments that do not decode match no call of ours
		r, ok := byID[c.ID]
		if (!ok || c.ID == "") && i < len(results) {
			r, ok = results[i], true
		}
		ex.text, ex.answered, ex.failed = r.Text, ok, r.Error
		all = append(all, ex)
	}
	return all
}

// wantedCall is a call that a rule needs.
type wantedCall struct {
	name  string
	args  map[string]any
	label string // how a limit names it
	quiet bool   // its failure is no limit: it was only an attempt
}

// encodeArgs is the arguments as JSON; equal arguments are equal text.
func (w wantedCall) encodeArgs() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(w.args) != nil {
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (w wantedCall) callKey() string { return w.name + w.encodeArgs() }

func (w wantedCall) tokenCost(c *tokenCounter) int64 {
	return estimate.MessageTokens + c.count(w.name) + c.count(w.encodeArgs())
}

// findExchange returns the last exchange of the same call.
func (t *conversation) findExchange(w wantedCall) (toolExchange, bool) {
	key := w.callKey()
	for i := len(t.exchanges) - 1; i >= 0; i-- {
		if t.exchanges[i].name == w.name && t.exchanges[i].callKey() == key {
			return t.exchanges[i], true
		}
	}
	return toolExchange{}, false
}

// resultOf is the text of a call that succeeded.
func (t *conversation) resultOf(w wantedCall) (string, bool) {
	ex, ok := t.findExchange(w)
	return ex.text, ok && ex.answered && !ex.failed
}

// canLook reports whether a tool that looks at a directory is offered.
func (t *conversation) canLook() bool {
	return t.offered[toolList] || t.offered[toolGlob] || t.offered[toolGrep] || t.offered[toolRead]
}

func (t *conversation) sawAnything() bool {
	for _, ex := range t.exchanges {
		if ex.answered && !ex.failed && strings.TrimSpace(ex.text) != "" {
			return true
		}
	}
	return false
}

// isClosedUnseen reports whether this is a closing turn and nothing was called before it.
func (t *conversation) isClosedUnseen() bool { return t.closing && len(t.exchanges) == 0 }

// missingCalls lists the calls not made yet whose tool is offered.
func (t *conversation) missingCalls(wants []wantedCall) []wantedCall {
	var rest []wantedCall
	seen := map[string]bool{}
	for _, w := range wants {
		if _, ok := t.findExchange(w); ok || !t.offered[w.name] || seen[w.callKey()] {
			continue
		}
		seen[w.callKey()] = true
		rest = append(rest, w)
	}
	return rest
}

// callsThatFit takes as many calls as the output limit allows; the others follow in the next reply.
func (t *conversation) callsThatFit(wants []wantedCall) []wantedCall {
	var n int64
	for i, w := range wants {
		if n += w.tokenCost(t.tokens); n > t.max {
			return wants[:i]
		}
	}
	return wants
}

var clipNote = lazyregexp.New(`\[clipped: [^\]]*\]`)

// describeGaps reports which wanted calls returned nothing, or not everything.
func (t *conversation) describeGaps(wants []wantedCall) []string {
	var limits []string
	for _, w := range wants {
		ex, made := t.findExchange(w)
		switch {
		case w.quiet:
		case !made && t.closing:
			limits = append(limits, w.label+": not looked at, the run was closing")
		case !made && !t.offered[w.name]:
			limits = append(limits, w.label+": not looked at, tool "+w.name+" was not offered")
		case !made:
			limits = append(limits, w.label+": not looked at, no room for the call")
		case !ex.answered:
			limits = append(limits, w.label+": no result came back")
		case ex.failed:
			limits = append(limits, w.label+": "+w.name+" failed: "+clip.Marked(clip.FirstLine(ex.text), errorShown, "…"))
		case strings.TrimSpace(ex.text) == "" && w.name != toolList: // an empty directory is no gap
			limits = append(limits, w.label+": "+w.name+" gave an empty result")
		case clipNote.MatchString(ex.text):
			limits = append(limits, w.label+": result "+strings.Trim(clip.Marked(clipNote.FindString(ex.text), errorShown, "…"), "[]"))
		}
	}
	return limits
}

// errorShown is how much of a tool's error text a limit repeats.
const errorShown = 100

// hints are what the coordinator passes to a child: one JSON line in the task, so that the
// child need not repeat searches.
type hints struct {
	Exts    []string `json:"exts,omitempty"`    // source extensions, most bytes first
	Files   int      `json:"files,omitempty"`   // files in the place
	Largest []string `json:"largest,omitempty"` // largest source files
	Root    []string `json:"root,omitempty"`    // notable names in the top directory
	Logs    []string `json:"logs,omitempty"`    // log files
	// JSONLogs are the log files that only their lines show to be logs; MoreLogs tells that there may be
	// further logs, with names of logs.
	JSONLogs []string `json:"json_logs,omitempty"`
	MoreLogs bool     `json:"more_logs,omitempty"`
	// LogBytes is the total size of the log files that were seen.
	LogBytes int64 `json:"log_bytes,omitempty"`
}

func (h *hints) setLogs(p directoryProfile) {
	h.Logs, h.LogBytes, h.JSONLogs, h.MoreLogs = p.logs, p.logSize, nil, p.logFiles.more
	if len(h.Logs) >= logsMax || h.MoreLogs {
		h.JSONLogs = p.logFiles.confirmed
	}
}

func (h hints) encodeLine() string {
	b, err := json.Marshal(h)
	if err != nil || string(b) == "{}" {
		return ""
	}
	return string(b)
}

func readHints(text string) hints {
	var h hints
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &h) == nil {
			return h
		}
		h = hints{}
	}
	return h
}
