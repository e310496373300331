package agentfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
)

// commandsDir is the place of slash commands, in a directory's .claude and in ClaudeHome.
const commandsDir = "commands"

// expandedMax bounds the bytes of arguments in a prompt: more than a node accepts, which then says so.
const expandedMax = 256 << 10

// SlashCommand is a prompt in a file, which the user starts by `/NAME arguments`.
type SlashCommand struct {
	Name        string   `json:"name"` // with the folders of the file: git:commit
	Description string   `json:"description,omitempty"`
	Hint        string   `json:"argument_hint,omitempty"` // which arguments it takes
	Path        string   `json:"from"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"allowed_tools,omitempty"`
	Text        string   `json:"-"`
	// Own: the file is in the user's own directory. Any other may come from anyone, so it grants nothing.
	Own    bool   `json:"own"`
	Digest string `json:"-"`
}

// LoadSlashCommands reads the slash commands of a directory, if that is not empty, and then the user's own. Of two
// with one name the first counts, and a note names the other. A broken file is a problem and keeps its name.
func LoadSlashCommands(dir string) (list []SlashCommand, notes []Note, err error) {
	l := &commandLoader{first: map[string]string{}}
	if dir != "" {
		l.readBelow(dir, path.Join(".claude", commandsDir), false)
	}
	if home := ClaudeHome(); home != "" && (dir == "" || !isSameFile(home, filepath.Join(dir, ".claude"))) {
		l.readBelow(filepath.Join(home, commandsDir), ".", true) // the directory itself is often a link
	}
	return l.list, l.notes, errors.Join(l.problems...)
}

type commandLoader struct {
	list     []SlashCommand
	notes    []Note
	problems []error
	first    map[string]string // name → path of the file that counts
}

// readBelow reads the files of a place below a directory. No link leads out of that directory.
func (l *commandLoader) readBelow(dir, place string, own bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return // there is none, or nothing can be read in it, which the run reports
	}
	defer func() { _ = root.Close() }()
	files := 0
	err = fs.WalkDir(root.FS(), place, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() || !strings.EqualFold(path.Ext(name), ".md"):
			return nil
		}
		if files++; files > filesMax {
			return fmt.Errorf("%w: more than %d files", ErrTooLarge, filesMax)
		}
		l.readFile(root, dir, place, name, own)
		return nil
	})
	if err != nil {
		l.problems = append(l.problems, &Problem{Path: filepath.Join(dir, filepath.FromSlash(place)), Err: reasonWithoutPath(err)})
	}
}

func (l *commandLoader) readFile(root *os.Root, dir, place, name string, own bool) {
	c := SlashCommand{Path: filepath.Join(dir, filepath.FromSlash(name)), Own: own}
	below := strings.TrimPrefix(name, place+"/")
	c.Name = strings.ReplaceAll(strings.TrimSuffix(below, path.Ext(below)), "/", ":")
	if !slashName.MatchString(c.Name) {
		l.notes = append(l.notes, Note{Path: c.Path, Text: "skipped: a command is called by letters, digits, _, - and . alone"})
		return
	}
	if first, taken := l.first[c.Name]; taken {
		l.notes = append(l.notes, Note{Path: c.Path, Text: fmt.Sprintf("skipped: the command /%s is that of %s", c.Name, first), Hidden: c.Name, By: first})
		return
	}
	l.first[c.Name] = c.Path
	data, err := safefile.ReadIn(root, filepath.FromSlash(name), FileBytesMax)
	if err != nil {
		l.problems = append(l.problems, &Problem{Path: c.Path, Err: reasonWithoutPath(err)})
		return
	}
	if err := c.parse(data); err != nil {
		l.problems = append(l.problems, err)
		return
	}
	l.list = append(l.list, c)
}

// parse reads the content of the file: front matter, if it has any, and the prompt.
func (c *SlashCommand) parse(data []byte) error {
	c.Digest = ContentDigest(data)
	front, body, err := cutFrontMatter(data)
	if errors.Is(err, errNoFrontMatter) {
		front, body, err = nil, bytes.TrimPrefix(data, []byte("\uFEFF")), nil
	}
	if err != nil {
		return &Problem{Path: c.Path, Err: err}
	}
	d := newDecoder(c.Path, &Definition{})
	c.Text = strings.TrimSpace(d.decodePrompt(body))
	root, err := d.parseFrontMatter(front)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		value := root.Content[i+1]
		switch root.Content[i].Value {
		case "description":
			c.Description = printable(value.Value)
		case "argument-hint":
			c.Hint = printable(value.Value)
			if value.Kind == yaml.SequenceNode { // [file] is a list in YAML
				c.Hint = "[" + strings.Join(commandTools(value), ", ") + "]"
			}
		case "model":
			c.Model = value.Value
		case "allowed-tools":
			c.Tools = commandTools(value)
		}
	}
	if c.Text == "" {
		return &Problem{Path: c.Path, Err: fmt.Errorf("%w: the file has no prompt", ErrField)}
	}
	if c.Description == "" {
		first, _, _ := strings.Cut(c.Text, "\n")
		c.Description = fmt.Sprintf("%.100s", printable(strings.TrimLeft(first, "# ")))
	}
	return nil
}

// commandTools reads a list of tools: a sequence, or a text with commas, where those within parentheses do not count.
func commandTools(n *yaml.Node) (tools []string) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			tools = append(tools, item.Value)
		}
		return tools
	}
	depth := 0
	parts := strings.FieldsFunc(n.Value, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	})
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			tools = append(tools, part)
		}
	}
	return tools
}

var (
	slashName = lazyregexp.New(`^[\w.-]+(:[\w.-]+)*$`)
	slashForm = lazyregexp.New(`(?s)^/([\w.-]+(?::[\w.-]+)*)(?:\s+(.*))?$`)
	argForm   = lazyregexp.New(`\$(ARGUMENTS\b|[1-9])`)
	// shellForm matches a command line whose output Claude Code puts into the prompt.
	shellForm = lazyregexp.New("!`([^`\n]+)`")
	fileForm  = lazyregexp.New(`(?:^|[\s(])@([\w./-]*\w)`)
)

// CutSlashCommand returns the name and the arguments of a prompt that calls a slash command. A path such as /etc/hosts calls
// none, nor does a name that is a file or directory of the machine.
func CutSlashCommand(prompt string) (name, args string, ok bool) {
	m := slashForm.FindStringSubmatch(strings.TrimRight(prompt, " \t\r\n"))
	if m == nil {
		return "", "", false
	}
	if _, err := os.Lstat("/" + m[1]); err == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// FindSlashCommand finds a command by its name, or by the name of its file, if only one has that. similar is for the message
// if there is none.
func FindSlashCommand(list []SlashCommand, name string) (c SlashCommand, similar string, ok bool) {
	var named []SlashCommand
	var names []string
	for _, c := range list {
		if c.Name == name {
			return c, "", true
		}
		names = append(names, "/"+c.Name)
		if _, file, ok := strings.Cut(c.Name, ":"); ok && (file == name || strings.HasSuffix(file, ":"+name)) {
			named = append(named, c)
		}
	}
	if len(named) == 1 {
		return named[0], "", true
	}
	return c, didYouMean("/"+name, names), false
}

// Expand returns the prompt of a command with its arguments, the command lines that it leaves to the agent, and the files of
// the directory that it names. Neither is read or run here: the agent does it, with the permissions of its tools.
func (c SlashCommand) Expand(args, dir string) (prompt string, lines, files []string) {
	text := shellForm.ReplaceAllStringFunc(c.Text, func(found string) string {
		line := strings.TrimSuffix(strings.TrimPrefix(found, "!`"), "`")
		lines = append(lines, line)
		return "[run `" + line + "` first and use its output here]"
	})
	words := splitWords(args)
	hasPlace, room := argForm.MatchString(text), expandedMax
	text = argForm.ReplaceAllStringFunc(text, func(found string) string {
		value := ""
		if i := int(found[1] - '1'); found == "$ARGUMENTS" {
			value = args
		} else if i < len(words) {
			value = words[i]
		}
		room -= len(value)
		if room < 0 {
			return ""
		}
		return value
	})
	if !hasPlace && args != "" {
		text += "\n\nARGUMENTS: " + args
	}
	if dir == "" {
		return text, lines, nil
	}
	for _, m := range fileForm.FindAllStringSubmatch(codeForm.ReplaceAllString(text, " "), -1) {
		name := path.Clean(m[1])
		if !filepath.IsLocal(filepath.FromSlash(name)) || slices.Contains(files, name) || len(files) >= importsMax {
			continue
		}
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && (info.Mode().IsRegular() || info.IsDir()) {
			files = append(files, name)
		}
	}
	if len(files) > 0 {
		text += "\n\n[An @ before a path means a file of the directory. Read these first: " + strings.Join(files, ", ") + "]"
	}
	return text, lines, files
}

// splitWords splits arguments at spaces, except within quotes.
func splitWords(args string) (words []string) {
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range args {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && strings.ContainsRune(" \t\n", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
