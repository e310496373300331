package request

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/trust"
)

const slashHint = "`troupe agents commands` lists the commands; a space before the / sends the text as it is; see docs/agentfiles.md#commands"

// expandCommand replaces `/NAME arguments` by the prompt of the file NAME. Any other prompt stays as it is.
func (r *Flags) expandCommand(a *console.Console, text string) (string, error) {
	name, args, ok := agentfile.CutSlashCommand(text)
	if !ok {
		return text, nil
	}
	dir := r.Request.Dir
	if err := AbsoluteDir(&dir); err != nil {
		return "", err
	}
	list, notes, problems := agentfile.LoadSlashCommands(dir)
	c, similar, found := agentfile.FindSlashCommand(list, name)
	if !found {
		for _, wrong := range agentfile.SplitProblems(problems) {
			if strings.TrimSuffix(filepath.Base(wrong.Path), filepath.Ext(wrong.Path)) == name[strings.LastIndex(name, ":")+1:] {
				return "", exit.UsageError("fix the file", "%s", strings.ReplaceAll(wrong.Error(), "agentfile: ", ""))
			}
		}
		hint := slashHint
		if here, _, _ := agentfile.LoadSlashCommands("."); dir == "" && len(here) > len(list) {
			hint = "--dir . uses the commands of this directory; " + hint
		}
		return "", exit.UsageError(hint, "no command is called /%s%s", term.CleanLine(name), similar)
	}
	say := func(format string, args ...any) {
		if !a.Quiet {
			a.Say(a.ErrStyle.Dim("note   ") + term.CleanLine(fmt.Sprintf(format, args...)))
		}
	}
	say("/%s is the prompt of %s", c.Name, console.ShortPath(c.Path, dir))
	for _, n := range notes {
		if n.Hidden == c.Name {
			say("%s is not used: it has the same name", console.ShortPath(n.Path, dir))
		}
	}
	prompt, lines, files := c.Expand(args, dir)
	if len(lines) > 0 {
		say("its command lines do not run before the prompt is sent: the agent is told to run %s, with the permissions of its shell", quoteSome(lines))
	}
	if len(files) > 0 {
		say("the agent is told to read %s", quoteSome(files))
	}
	r.grantByCommand(c, dir, say)
	return prompt, nil
}

// grantByCommand applies what a command of the user's own directory sets. A file that a run could change, or that
// came with the directory, grants nothing.
func (r *Flags) grantByCommand(c agentfile.SlashCommand, dir string, say func(string, ...any)) {
	q := &r.Request
	if c.Own && (trust.Policy{}).MayChange(c.Path, dir) {
		c.Own = false
	}
	switch {
	case len(c.Tools) == 0:
	case !c.Own:
		say("allowed-tools of %s has no effect: the file may come from anyone", console.ShortPath(c.Path, dir))
	case len(q.AllowedTools) > 0:
		say("allowed-tools of %s has no effect: --allowed-tools counts", console.ShortPath(c.Path, dir))
	default:
		q.AllowedTools = c.Tools
	}
	route, ok := c.Model, strings.Contains(c.Model, "/")
	if !ok && c.Model != "" && !provider.IsAlias(c.Model) {
		route, ok = provider.ResolveRoute(c.Model, "")
	}
	switch {
	case c.Model == "" || c.Model == "inherit" || q.Model != "":
	case !c.Own:
		say("model of %s has no effect: the file may come from anyone; -m names a model", console.ShortPath(c.Path, dir))
	case !ok || strings.HasPrefix(route, scriptPrefix):
		say("model %s of %s has no effect: write PROVIDER/MODEL", c.Model, console.ShortPath(c.Path, dir))
	default:
		q.Model = route
	}
}

const quotedMax = 3

// quoteSome quotes the first texts of a list, and counts the rest.
func quoteSome(list []string) string {
	var b strings.Builder
	for i, text := range list {
		if i == quotedMax {
			return fmt.Sprintf("%s and %d more", b.String(), len(list)-i)
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "`%.80s`", text)
	}
	return b.String()
}
