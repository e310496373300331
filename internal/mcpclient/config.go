package mcpclient

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/internal/workdir"
)

// FileName is the file of a directory that names servers, as other tools write it.
const FileName = ".mcp.json"

// UserFileName is the operator's own, in the directory of the user's settings.
const UserFileName = "mcp.json"

// Server is how a server is reached, as its file defines it: variables in it are
// not expanded.
type Server struct {
	Name    string            `json:"name"`
	Source  string            `json:"source"` // the file
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Dir     string            `json:"cwd,omitempty"` // "": that of the run
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Timeout time.Duration     `json:"timeout,omitempty"` // of a call; 0: the default
	// Own: the operator wrote the file. Only then may a name in it lead to a private
	// address. No file sets it for itself.
	Own bool `json:"-"`
	// UserEnv are variables (NAME=value) of the user's own settings; those of Env count more.
	UserEnv []string `json:"-"`
	// Files are the files that the command names, as they were when the definition was judged
	// (see NamedFiles), unless the definition is the operator's own. nil: it was not judged.
	Files map[string]string `json:"-"`
	// At is held open where Source is a file of the directory of a run: a rename above it
	// must not lead the program elsewhere. nil: the directory is found by its name.
	At *workdir.HeldDirectory `json:"-"`
	// Flags are the flags with which the commands of `troupe mcp` find the server from anywhere.
	Flags []string `json:"-"`
}

// fileServer is a server in a file.
type fileServer struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Dir      string            `json:"cwd"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Timeout  int64             `json:"timeout"` // milliseconds
	Disabled bool              `json:"disabled"`
}

var formKeys = []string{"type", "command", "args", "env", "cwd", "url", "headers", "timeout", "disabled"}

// File is the content of a file of servers.
type File struct {
	Digest  string   // SHA-256 of its bytes; "" where there is no file
	Servers []Server // sorted by name
	Notes   []string // what its author should know
}

// Read reads a file of servers. A missing file contains none.
func Read(path string) (File, error) {
	data, err := safefile.Read(path, FileBytesMax)
	return parseFile(path, data, err)
}

// ReadBelow is Read for a file below a directory: no link leads out of that.
func ReadBelow(dir, path string) (File, error) {
	data, err := safefile.ReadBelow(dir, path, FileBytesMax)
	return parseFile(path, data, err)
}

func parseFile(path string, data []byte, err error) (File, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return parseConfig(path, data)
}

// parseConfig reads the text of a file: {"mcpServers": {"name": {…}}}.
func parseConfig(path string, data []byte) (File, error) {
	sum := sha256.Sum256(data)
	out := File{Digest: hex.EncodeToString(sum[:])}
	if len(data) > FileBytesMax {
		return out, fmt.Errorf("%w: %s has more than %d bytes", ErrConfig, path, FileBytesMax)
	}
	var whole struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\uFEFF")), &whole); err != nil {
		return out, fmt.Errorf("%w: %s: %s", ErrConfig, path, jsonPosition(data, err))
	}
	if whole.Servers == nil {
		out.Notes = append(out.Notes, path+`: it has no "mcpServers"`)
	}
	if len(whole.Servers) > DefinitionsMax {
		return out, fmt.Errorf("%w: %s defines %d servers, at most %d are read", ErrConfig, path, len(whole.Servers), DefinitionsMax)
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(whole.Servers)) {
		s, notes, err := parseServer(path, name, whole.Servers[name])
		out.Notes = append(out.Notes, notes...)
		twin := slices.ContainsFunc(out.Servers, func(t Server) bool { return t.Name == s.Name })
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case s.Name == "":
		case twin:
			wrong = append(wrong, fmt.Errorf("%w: %s: %.80q: another server has the name %s in the names of tools; give it another", ErrConfig, path, name, s.Name))
		default:
			out.Servers = append(out.Servers, s)
		}
	}
	return out, errors.Join(wrong...)
}

// jsonPosition reports the position at which the JSON of a text is invalid.
func jsonPosition(data []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return wrongType(err)
	}
	at, what := min(int(syntax.Offset), len(data)), err.Error()
	if strings.HasPrefix(what, "invalid character") { // which it quotes
		what = "a character that has no place there"
	}
	return fmt.Sprintf("line %d: %s", 1+bytes.Count(data[:at], []byte("\n")), what)
}

// wrongType names the field whose type is wrong, but not its value.
func wrongType(err error) string {
	var other *json.UnmarshalTypeError
	if !errors.As(err, &other) {
		return "it is not JSON of the form that is expected"
	}
	found, _, _ := strings.Cut(other.Value, " ")
	if other.Field == "" {
		return "it is not an object but " + found
	}
	return fmt.Sprintf("%s cannot be %s", other.Field, found)
}

// Inline is a server that stands in another file, as values.
func Inline(path, name string, config map[string]any) (Server, []string, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return Server{}, nil, fmt.Errorf("%w: %s: %s: %w", ErrConfig, path, name, err)
	}
	return parseServer(path, name, raw)
}

// parseServer reads one server.
func parseServer(path, name string, raw json.RawMessage) (Server, []string, error) {
	fail := func(format string, args ...any) (Server, []string, error) {
		return Server{}, nil, fmt.Errorf("%w: %s: %.80q: %s", ErrConfig, path, name, fmt.Sprintf(format, args...))
	}
	proper := ServerName(name)
	if proper == "" {
		return fail("the name must have letters or digits, at most %d", ServerNameMax)
	}
	var f fileServer
	if err := json.Unmarshal(raw, &f); err != nil {
		return fail("%s", wrongType(err))
	}
	notes := f.unknownKeys(path, name, raw)
	if f.Disabled {
		return Server{}, append(notes, fmt.Sprintf("%s: the server %s is disabled in the file", path, name)), nil
	}
	s := Server{Name: proper, Source: path, Command: f.Command, Args: f.Args, Env: f.Env, Dir: f.Dir, URL: f.URL, Headers: f.Headers,
		Timeout: min(time.Duration(max(0, min(f.Timeout, 1<<40)))*time.Millisecond, TimeoutMax)}
	switch strings.ToLower(f.Type) {
	case "", "stdio", "http", "streamable-http", "streamablehttp":
	case "sse":
		return fail("the transport sse is not supported: servers that have it speak http (streamable HTTP) at another address today")
	default:
		return fail("its type is neither stdio nor http; use one of them")
	}
	switch {
	case (s.Command == "") == (s.URL == ""):
		return fail(`give either "command" or "url"`)
	case strings.EqualFold(f.Type, "stdio") && s.Command == "", f.Type != "" && !strings.EqualFold(f.Type, "stdio") && s.URL == "":
		return fail("type is %s, and there is no %s", f.Type, map[bool]string{true: "command", false: "url"}[s.Command == ""])
	case s.Dir != "" && !filepath.IsAbs(s.Dir):
		s.Dir = filepath.Join(filepath.Dir(path), s.Dir)
	}
	for key := range s.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return fail("env has the name %.40q", key)
		}
	}
	return s, notes, nil
}

// keysNamed is how many keys of one server are named that mean nothing.
const keysNamed = 8

// unknownKeys names the keys that mean nothing here.
func (fileServer) unknownKeys(path, name string, raw json.RawMessage) []string {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil // it was an object a moment ago
	}
	var notes []string
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool { return slices.Contains(formKeys, key) })
	for i, key := range unknown {
		if i == keysNamed {
			return append(notes, fmt.Sprintf("%s: the server %.80s: %d more keys are not known and do nothing", path, name, len(unknown)-i))
		}
		note := fmt.Sprintf("%s: the server %.80s: the key %.40q is not known and does nothing", path, name, key)
		if near := suggest.Nearest(key, formKeys); near != "" {
			note += "; did you mean " + near + "?"
		}
		notes = append(notes, note)
	}
	return notes
}

// Hash is the version of a definition: another command, argument, variable or
// address is another server.
func (s Server) Hash() string {
	s.Source, s.Timeout = "", 0
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("mcp: a definition has no JSON: %v", err)) // strings and maps of strings have
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Line is the command or address for a person who decides about it:
// nothing is left out, and no variable is expanded.
func (s Server) Line() string {
	if s.URL != "" {
		return s.URL
	}
	return shellLine(append([]string{s.Command}, s.Args...))
}

// Remedy is the command of `troupe mcp` about the server, to be run from anywhere.
func (s Server) Remedy(verb string) string {
	return shellLine(append([]string{"troupe", "mcp", verb, s.Name}, s.Flags...))
}

// shellLine is a command as a shell reads it.
func shellLine(argv []string) string {
	words := make([]string, 0, len(argv))
	for _, w := range argv {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plainRune(r) }) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@=+,%", r)
}

// Variables are the names that the definition reads from the environment.
func (s Server) Variables() []string {
	names := map[string]bool{}
	_, _ = s.expandVariables(func(name string) string { names[name] = true; return "x" }) // all are set
	return slices.Sorted(maps.Keys(names))
}

var variable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expandVariables puts the values of variables in: ${NAME}, and ${NAME:-text} for one that
// may be unset.
func (s Server) expandVariables(getenv func(string) string) (Server, error) {
	var missing []string
	expand := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(word string) string {
			m := variable.FindStringSubmatch(word)
			switch v := getenv(m[1]); {
			case v != "":
				return v
			case m[2] == "":
				missing = append(missing, m[1])
			}
			return m[3]
		})
	}
	values := func(in map[string]string) map[string]string {
		out := make(map[string]string, len(in))
		for k, v := range in {
			out[k] = expand(v)
		}
		return out
	}
	out := s
	out.Command, out.Dir, out.URL, out.Env, out.Headers = expand(s.Command), expand(s.Dir), expand(s.URL), values(s.Env), values(s.Headers)
	out.Args = make([]string, len(s.Args))
	for i, a := range s.Args {
		out.Args[i] = expand(a)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return s, fmt.Errorf("%w: %s of the server %s in %s; set it, or write ${%s:-default}", ErrVariable, strings.Join(slices.Compact(missing), ", "), s.Name, s.Source, missing[0])
	}
	return out, nil
}
