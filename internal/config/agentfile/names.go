package agentfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/internal/toolname"
)

// ToolRef is a tool as a definition names it, with the part in parentheses:
// "Bash(git log:*)" is {shell, "git log:*"}.
type ToolRef struct {
	Name string // ours: see ToolName
	Args string // "" : any arguments
}

// builtinTools are the names that troupe knows.
var builtinTools = []string{"append_run_journal_entry", "ask_human", "backlog_claim", "backlog_done", "backlog_list", "backlog_post", "backlog_return", "declare_failure", "delegate", "edit_file", "get_run_journal", "git_blame", "git_log",
	"git_numstat", "git_show", "glob", "grep", "handoff", "http_get", "list_dir", agentmemory.DeleteTool, agentmemory.ReadTool, agentmemory.WriteTool,
	"read_file", "read_result", "send_message", "shell", "skill", "update_run_journal", "write_file"}

// aliases are the names that other tools use, in lower case.
var aliases = map[string]string{
	"read": "read_file", "write": "write_file", "edit": "edit_file", "multiedit": "edit_file", "bash": "shell", "exec": "shell",
	"glob": "glob", "grep": "grep", "ls": "list_dir", "list": "list_dir", "webfetch": "http_get", "http": "http_get", "task": "delegate", "agent": "delegate",
	"skill": "skill", "askuserquestion": "ask_human", "question": "ask_human", "sendmessage": "send_message", "execute": "shell",
	"search": "grep", "web": "http_get", "custom-agent": "delegate",
}

// toolWords are all words for tools that are known.
func toolWords() []string {
	return slices.Concat(slices.Sorted(maps.Keys(aliases)), builtinTools)
}

// SuggestTool returns the end of a message about an unknown tool: a suggestion of a similar name, or "".
func SuggestTool(name string) string { return didYouMean(name, toolWords()) }

// LacksParenthesis reports whether a reference to a tool has no end: Bash(ls:* instead of Bash(ls:*).
func LacksParenthesis(ref string) bool {
	return strings.Contains(ref, "(") && !strings.HasSuffix(strings.TrimSpace(ref), ")")
}

// foreignTools are tools of other programs, in lower case, that have no equivalent here.
var foreignTools = []string{"apply_patch", "bashoutput", "codesearch", "croncreate", "crondelete", "cronlist", "enterplanmode", "doom_loop", "enterworktree",
	"exitplanmode", "exitworktree", "external_directory", "killbash", "killshell", "listmcpresourcestool", "lsp", "monitor", "multiedit", "notebookedit",
	"notebookread", "patch", "readmcpresourcetool", "slashcommand", "taskcreate", "taskget", "tasklist", "taskoutput", "taskstop",
	"taskupdate", "teamcreate", "teamdelete", "todo", "todoread", "todowrite", "toolsearch", "websearch", "workflow"}

// IsForeign reports whether another program has a tool of this name, and troupe has no equivalent.
func IsForeign(name string) bool { return slices.Contains(foreignTools, strings.ToLower(name)) }

// ToolName returns troupe's name of a tool that other programs may call otherwise: Read is
// read_file. An unknown name stays as it is.
func ToolName(name string) string {
	lower := strings.ToLower(name)
	if ours, ok := aliases[lower]; ok {
		return ours
	}
	if slices.Contains(builtinTools, lower) {
		return lower
	}
	return name
}

// ParseToolRefs reads the names of tools as a definition has them.
func ParseToolRefs(items []string) []ToolRef { return parseToolRefs(items) }

var refForm = lazyregexp.New(`^([^()\s]+)\s*(?:\((.*)\))?$`)

// parseToolRefs is never nil: an empty list of tools means none.
func parseToolRefs(items []string) []ToolRef {
	list := []ToolRef{}
	for _, item := range items {
		ref := ToolRef{Name: item}
		if m := refForm.FindStringSubmatch(item); m != nil {
			ref = ToolRef{Name: ToolName(m[1]), Args: m[2]}
			if server, tool, ok := strings.Cut(ref.Name, "/"); ok { // Copilot's notation
				ref.Name = toolname.MCPPrefix + server + "__" + tool
			}
		}
		list = append(list, ref)
	}
	return list
}

func (r ToolRef) isForeign() bool { return slices.Contains(foreignTools, strings.ToLower(r.Name)) }

func (r ToolRef) isKnown() bool {
	return slices.Contains(builtinTools, r.Name) || strings.HasPrefix(r.Name, toolname.MCPPrefix) || strings.ContainsRune(r.Name, '*')
}

// matchesTool reports whether a reference matches a tool. "mcp__server" matches all tools of that
// server, and * matches any text.
func (r ToolRef) matchesTool(tool string) bool {
	if before, after, ok := strings.Cut(r.Name, "*"); ok {
		return len(tool) >= len(before)+len(after) && strings.HasPrefix(tool, before) && strings.HasSuffix(tool, after)
	}
	return r.Name == tool || strings.HasPrefix(r.Name, toolname.MCPPrefix) && strings.HasPrefix(tool, r.Name+"__")
}

// suggestDistance is the maximum number of letters in which a suggested name may differ.
const suggestDistance = 2

// didYouMean suggests the nearest known word, "" if there is none.
func didYouMean(name string, known []string) string {
	if len(name) == 0 || len(name) > suggest.WordMax {
		return ""
	}
	best, nearest := suggestDistance+1, ""
	for _, k := range known {
		n, half := suggest.EditDistance(suggest.NormalizeWord(name), suggest.NormalizeWord(k)), len(k)/2
		closer := n < best || n == best && len(k) == len(name) && len(nearest) != len(name) // modle is model, not mode
		if closer && (n < half || n == half && strings.EqualFold(name[:1], k[:1])) {
			best, nearest = n, k
		}
	}
	if nearest == "" {
		return ""
	}
	return "; did you mean " + nearest + "?"
}
