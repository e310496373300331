package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// Permissions say which calls of an agent run, which wait for a person, and which never run. A rule that
// denies counts more than one that asks, and that more than one that allows; Mode decides about calls
// that no rule fits. Package permission applies them.
type Permissions struct {
	Mode  PermissionMode   `msgpack:"m,omitempty" json:"mode,omitempty"`
	Allow []PermissionRule `msgpack:"a,omitempty" json:"allow,omitempty"`
	Ask   []PermissionRule `msgpack:"k,omitempty" json:"ask,omitempty"`
	Deny  []PermissionRule `msgpack:"d,omitempty" json:"deny,omitempty"`
	// Only keep tools that they name to the calls that fit one of them.
	Only []PermissionRule `msgpack:"o,omitempty" json:"only,omitempty"`
	// Within are further lists like Only: a call must match each of them, too. The list of a run is separate from
	// that of a definition.
	Within [][]PermissionRule `msgpack:"w,omitempty" json:"within,omitempty"`
	// Confined: Mode came with a request, so it lets commands run only where the sandbox confines them.
	Confined bool `msgpack:"c,omitempty" json:"confined,omitempty"`
	// Yes: writes in the directory, and commands that the sandbox confines, need no question.
	Yes bool `msgpack:"y,omitempty" json:"yes,omitempty"`
	// ShellForChildren: the agent only passes the shell on to its children, so no command is its own, and only
	// the rules that deny or ask bind them.
	ShellForChildren bool `msgpack:"p,omitempty" json:"passes_shell,omitempty"`
	// NoUserNotes: anyone may have written the agent's file, so its children do not reach notes of the user.
	NoUserNotes bool `msgpack:"n,omitempty" json:"no_user_notes,omitempty"`
	// UserEnv: a command of the user started the run, so its commands get the variables of the user's own settings, as the
	// node where they run has them.
	UserEnv bool `msgpack:"u,omitempty" json:"user_env,omitempty"`
	// Approvals is how many different people must approve a call that is asked about, 1 or 2; 0: one.
	Approvals int `msgpack:"v,omitempty" json:"approvals,omitempty"`
	// Taint says what holds for calls that send data out, once the agent has read text from outside: off, ask or deny.
	// "": as off, and what the agent reads is not noted.
	Taint string `msgpack:"t,omitempty" json:"taint,omitempty"`
	// TaintFiles: files of the directory, and what commands print, are text from outside.
	TaintFiles bool `msgpack:"tf,omitempty" json:"taint_files,omitempty"`
	// Narrows: they came from a Narrowing. What their rules and mode leave alone, the other permissions of the agent decide.
	Narrows bool `msgpack:"nr,omitempty" json:"narrows,omitempty"`
}

// PermissionRule is one rule, such as shell(git log:*), in troupe's names of tools.
type PermissionRule struct {
	Text string `json:"rule"`
	From string `json:"from,omitempty"` // where a person wrote it
	// Confined: the rule came with a request, so it lets commands run only where the sandbox confines them.
	Confined bool `json:"confined,omitempty"`
	// Approvals is how many different people have added the rule while the run worked; 0: one.
	Approvals int `json:"approvals,omitempty"`
	// AllowsTainted: a rule that allows also holds for calls that send data out, once the agent
	// has read text from outside.
	AllowsTainted bool `json:"tainted,omitempty"`
}

// taintedMark ends the third part of a rule that is AllowsTainted.
const taintedMark = "t"

// MarshalBinary is the form of a rule in an entry: one element, because a run has many. The third part is there if the
// rule is confined, if several people have added it, or if it is AllowsTainted.
func (r PermissionRule) MarshalBinary() ([]byte, error) {
	text, third := r.Text+ruleSeparator+r.From, ""
	if r.Approvals > 1 {
		third = strconv.Itoa(r.Approvals)
	}
	if r.AllowsTainted {
		third += taintedMark
	}
	if third != "" || r.Confined {
		text += ruleSeparator + third
	}
	return []byte(text), nil
}

// UnmarshalBinary reads the form that MarshalBinary writes.
func (r *PermissionRule) UnmarshalBinary(data []byte) error {
	text, rest, _ := strings.Cut(string(data), ruleSeparator)
	from, people, third := strings.Cut(rest, ruleSeparator)
	*r = PermissionRule{Text: text, From: from, Confined: third && people == ""}
	people, r.AllowsTainted = strings.CutSuffix(people, taintedMark)
	if people != "" {
		n, err := strconv.Atoi(people)
		if err != nil {
			return fmt.Errorf("permission rule %.80q: %w", text, err)
		}
		r.Approvals = n
	}
	return nil
}

// ruleSeparator is neither in a rule nor in the name of a file.
const ruleSeparator = "\x00"

// PermissionHook is the hook that prepares the question about a call, on the node where the call would
// run. The loop adds it to the hooks before the call; its Rules are a PermissionQuery.
const PermissionHook = "permission"

// PermissionQuery is what the loop wants to know of the node about a call.
type PermissionQuery struct {
	Why string `json:"why"` // a person is asked
	// Confined: the call needs no approval if the node's sandbox confines it.
	Confined bool `json:"confined,omitempty"`
	// OnlyConfined: elsewhere it is denied.
	OnlyConfined bool `json:"only_confined,omitempty"`
}

// PermissionMode decides about calls that no rule fits.
type PermissionMode string

// Permission modes, as in Claude Code.
const (
	ModeDefault     PermissionMode = "default"           // reads run, all else that may do harm is asked about
	ModeAcceptEdits PermissionMode = "acceptEdits"       // writes in the directory run, too
	ModePlan        PermissionMode = "plan"              // only reads run
	ModeDontAsk     PermissionMode = "dontAsk"           // what would be asked about is denied
	ModeBypass      PermissionMode = "bypassPermissions" // all runs, but for the rules that deny or ask
)

// PermissionModes are the modes, the strictest first.
var PermissionModes = []PermissionMode{ModePlan, ModeDontAsk, ModeDefault, ModeAcceptEdits, ModeBypass}
