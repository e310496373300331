package rule

import (
	"path"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// programOptions are what a program that people take for one that only reads can do beside: options that write a file
// or run another program. A rule with a prefix covers none of them that it does not name itself, so that git log:*
// does not allow git log --output=main.go.
type programOptions struct {
	long    []string // --output; also its beginnings, which many programs accept, and --output=x
	short   string   // letters: -o, also -ofile and -no
	exact   []string // words as they are, also with =x behind: find's -delete, go's -toolexec
	first   []string // words that count only in front of the subcommand: git -c
	files   int      // more arguments that are no options than this write the last; 0: any number only reads
	scripts bool     // sed: the arguments are programs of its own language
}

// readers are the programs with such options: the first words of a command, and of two that fit the longer. It is a
// list of known ones and not all that exist: a rule for any other program allows what the options of that program do.
var readers = map[string]programOptions{
	"git":         {long: []string{"--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--upload-pack", "--receive-pack", "--exec", "--exec-path", "--config-env"}, first: []string{"-c"}},
	"git archive": {long: []string{"--output", "--exec", "--remote"}, short: "o"},
	"git diff":    {long: []string{"--output", "--ext-diff", "--textconv"}},
	"git grep":    {long: []string{"--open-files-in-pager", "--ext-grep", "--textconv"}, short: "O"},
	"git log":     {long: []string{"--output", "--ext-diff", "--textconv"}},
	"git show":    {long: []string{"--output", "--ext-diff", "--textconv"}},
	"go env":      {exact: goOptions("w", "u")},
	"go list":     {exact: goOptions("toolexec", "mod", "modfile")},
	"go vet":      {exact: goOptions("toolexec", "vettool", "mod", "modfile", "fix")},
	"fd":          {long: []string{"--exec", "--exec-batch"}, short: "xX"},
	"file":        {long: []string{"--compile"}, short: "C"},
	"find":        {exact: strings.Fields("-delete -exec -execdir -fls -fprint -fprint0 -fprintf -ok -okdir")},
	"less":        {long: []string{"--log-file", "--LOG-FILE"}, short: "oO"},
	"rg":          {long: []string{"--pre", "--hostname-bin"}},
	"sed":         {long: []string{"--in-place"}, short: "i", scripts: true},
	"sort":        {long: []string{"--output", "--compress-program"}, short: "o"},
	"tar":         {long: []string{"--to-command", "--use-compress-program", "--checkpoint-action", "--rsh-command", "--rmt-command", "--info-script", "--new-volume-script", "--index-file"}, short: "IF"},
	"tree":        {short: "o"},
	"uniq":        {files: 1},
	"xxd":         {files: 1},
	"yq":          {long: []string{"--inplace", "--split-exp", "--split-exp-file"}, short: "is"},
}

// goOptions are options of go, which takes one dash or two.
func goOptions(names ...string) (list []string) {
	for _, name := range names {
		list = append(list, "-"+name, "--"+name)
	}
	return list
}

// optionsOf returns the known options of the program of a command.
func optionsOf(words []string) (o programOptions, known bool) {
	name := path.Base(words[0])
	if len(words) > 1 {
		if o, known = readers[name+" "+words[1]]; known {
			return o, true
		}
	}
	o, known = readers[name]
	return o, known
}

// uncovered returns the first argument by which a command that begins as the rule does more than read, although the
// rule does not name it; "" if there is none.
func (r commandRule) uncovered(words []string) string {
	if name := path.Base(words[0]); len(r.words) == 1 && isStarter(name) && !slices.Contains(searchers, name) {
		return firstOperand(words[1:]) // env and xargs run what it names
	}
	o, known := optionsOf(words)
	if !known {
		return ""
	}
	operands := 0
	for i, w := range words[1:] {
		own := i+1 < len(r.words) // a word of the rule
		if i == 0 && words[0] == "tar" && !strings.HasPrefix(w, "-") {
			w = "-" + w // tar xf is tar -xf
		}
		if isOption(w) {
			front := slices.Contains(o.first, w) && isOption(words[1])
			if !own && (front || o.matches(w) && !r.namesOption(w, o) || o.scripts && !o.matches(w) && !plainSed.MatchString(w)) {
				return w
			}
			continue
		}
		if operands++; !own && (o.files > 0 && operands > o.files || o.scripts && operands == 1 && !plainScript.MatchString(w)) {
			return w
		}
	}
	return ""
}

// searchers are starters that look for files, and run a command only if an option says so.
var searchers = []string{"fd", "find"}

func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

// firstOperand returns the first argument that is no option; "" if there is none.
func firstOperand(args []string) string {
	if i := slices.IndexFunc(args, func(w string) bool { return !isOption(w) }); i >= 0 {
		return args[i]
	}
	return ""
}

// matches reports whether a word is one of the options.
func (o programOptions) matches(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	if slices.Contains(o.exact, name) {
		return true
	}
	if strings.HasPrefix(name, "--") {
		return len(name) > 2 && slices.ContainsFunc(o.long, func(l string) bool { return strings.HasPrefix(l, name) })
	}
	return o.short != "" && strings.ContainsAny(name, o.short)
}

// namesOption reports whether the rule itself names the option that a word is.
func (r commandRule) namesOption(word string, o programOptions) bool {
	name, _, _ := strings.Cut(word, "=")
	return slices.ContainsFunc(r.words[1:], func(w string) bool {
		named, _, _ := strings.Cut(w, "=")
		return o.matches(w) && (named == name || len(named) == 2 && strings.HasPrefix(word, named))
	})
}

var (
	// plainScript are the programs of sed that only print or substitute: an address of lines or one
	// pattern, and one command.
	plainScript = lazyregexp.New(`^(([0-9]+|\$|/[^/\\\n]*/)(,([0-9]+|\$|\+[0-9]+|/[^/\\\n]*/))?)?!?[pdqQ=]$|^s/[^/\\\n]*/[^/\\\n]*/[gpiI0-9]*$|^s\|[^|\\\n]*\|[^|\\\n]*\|[gpiI0-9]*$`)
	plainSed    = lazyregexp.New(`^-[nErsuz]+$|^--(quiet|silent|regexp-extended|posix|separate|unbuffered|null-data|zero-terminated)$`)
)
