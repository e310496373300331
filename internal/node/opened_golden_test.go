//go:build unix

package node

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/test/golden"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// goldenOpened is the directory of the golden files of TestOpenedRuns.
const goldenOpened = "testdata/opened"

// longText is the length from which a text is stored in texts.json once, and in the entries
// by its beginning and a hash.
const longText = 160

// openedCase is one request and its record in NAME.json: the request, the reply to the
// client, and the first entry of the run's log.
type openedCase struct {
	name string
	node string // whose Config it is; see openedNodes
	ask  func(t *testing.T, in openedInputs, r *client.RunRequest)
}

// openedInputs is what requests name.
type openedInputs struct {
	dir    string // a project with instructions, agents, skills and MCP servers
	agents string // a directory of agent files
	past   string // a run that has ended, on the node that plays
	client *client.Client
}

// TestOpenedRuns builds runs as a client does and compares the first entry of each
// log with testdata/opened/NAME.json. The nodes do not play the runs: nothing is
// sent to a model. What differs from machine to machine stands there as a name:
// $DIR, $AGENTS, $TESTBINARY, $TODAY, $HASH. A text of more than longText bytes and the
// description and schema of a tool stand once, in texts.json.
//
// Eval cases are opened by package eval and stand in internal/eval/testdata/opened. The
// programs of examples/ other than embed write their Opened as a literal, so
// nothing builds it and it is not recorded; the case "embedded" is that of embed.
func TestOpenedRuns(t *testing.T) {
	noLeaks(t)
	in := openedProject(t)
	texts, files, clients, asked := map[string]string{}, map[string]bool{"texts.json": true}, map[string]*Node{}, map[string]bool{}
	for _, c := range openedCases {
		h := clients[c.node]
		if h == nil {
			h = openedNode(t, c.node, &in)
			clients[c.node] = h
		}
		in.client = connectClient(t, h)
		r := client.RunRequest{RunID: "golden-" + c.name, Prompt: "Compare A and B."}
		c.ask(t, in, &r)
		noteFields(asked, r)
		got := map[string]any{"request": openedTree(in, texts, r)}
		accepted, err := in.client.Run(testContext(t), r)
		if err != nil {
			got["refused"] = openedTree(in, texts, asClientError(t, err))
		} else {
			got["accepted"], got["opened"] = openedTree(in, texts, accepted), openedTree(in, texts, firstEntry(t, h, r.RunID))
		}
		files[c.name+".json"] = true
		golden.Compare(t, filepath.Join(goldenOpened, c.name+".json"), golden.JSON(t, got))
	}
	golden.Compare(t, filepath.Join(goldenOpened, "texts.json"), golden.JSON(t, texts))
	golden.CheckUnused(t, goldenOpened, files)
	for f := range reflect.TypeFor[client.RunRequest]().Fields() {
		isSchedule := slices.Contains([]string{"At", "Every", "Zone", "On", "Missed", "Overlap"}, f.Name)                                                                      // they open runs later
		if !asked[f.Name] && !isSchedule && f.Name != "Resume" && f.Name != "DryRun" && f.Name != "Instead" && f.Name != "Layers" && f.Name != "Holder" && f.Name != "Owner" { // they open no run from what they ask for: one exists, or its tree is copied; the node fills in Holder and Owner
			t.Errorf("no case asks for %s: add one to openedCases", f.Name)
		}
	}
}

// noteFields notes the fields of a request that are set.
func noteFields(asked map[string]bool, r client.RunRequest) {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			asked[v.Type().Field(i).Name] = true
		}
	}
}

func asClientError(t *testing.T, err error) client.Error {
	t.Helper()
	var refused *client.Error
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	return *refused
}

// firstEntry reads what the log of a run begins with.
func firstEntry(t *testing.T, h *Node, run string) (o supervisor.Opened) {
	t.Helper()
	found := false
	err := h.post.Read(testContext(t), mailbox.At(run, "super"), 0, 0, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		if err != nil || found || len(e.Items) == 0 || e.Items[0].Kind != o.Kind() {
			return err
		}
		found = true
		return mailbox.Unmarshal(e.Items[0].Body, &o)
	})
	if err != nil || !found {
		t.Fatalf("the log of %s: opened %v, %v", run, found, err)
	}
	return o
}

var today = regexp.MustCompile(`Today is [A-Z][a-z]+day, \d+ [A-Z][a-z]+ \d+\.`)

// openedTree makes a value of an entry readable and the same on every machine.
func openedTree(in openedInputs, texts map[string]string, v any) any {
	names := strings.NewReplacer(in.dir, "$DIR", in.agents, "$AGENTS", os.Args[0], "$TESTBINARY")
	shorten := func(text string) string {
		text = today.ReplaceAllString(names.Replace(text), "Today is $$TODAY.")
		if len(text) < longText {
			return text
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(text)) // of a hash it never fails
		key := fmt.Sprintf("%.40s… #%08x", strings.Join(strings.Fields(text), " "), h.Sum32())
		texts[key] = text
		return key
	}
	if o, ok := v.(supervisor.Opened); ok {
		tools := o.Tools
		o.Tools, o.Servers, o.Hashes = nil, slices.Clone(o.Servers), maps.Clone(o.Hashes)
		for what := range o.Hashes {
			if strings.Contains(what, in.dir) {
				o.Hashes[what] = "$HASH" // of a name that holds the place
			}
		}
		for i := range o.Servers {
			o.Servers[i].Hash = "$HASH" // of a command whose path differs between machines
		}
		root := golden.ToTree(o, shorten).(map[string]any)
		var list []string
		for _, toolSpec := range tools {
			list = append(list, shortTool(texts, toolSpec, names))
		}
		root["tools"] = list
		return root
	}
	return golden.ToTree(v, shorten)
}

// shortTool returns a tool in one line; the rest of it is among the texts.
func shortTool(texts map[string]string, toolSpec model.ToolSpec, names *strings.Replacer) string {
	rest := names.Replace(fmt.Sprintf("%s\n%s", toolSpec.Description, toolSpec.Schema))
	h := fnv.New32a()
	_, _ = h.Write([]byte(rest)) // of a hash it never fails
	name, class := toolSpec.Name, toolSpec.Class
	key := fmt.Sprintf("tool %s #%08x", name, h.Sum32())
	texts[key] = rest
	toolSpec.Name, toolSpec.Class, toolSpec.Description, toolSpec.Schema = "", "", "", ""
	more := ""
	if flags := golden.ToTree(toolSpec, func(s string) string { return s }).(map[string]any); len(flags) > 0 {
		for _, flag := range slices.Sorted(maps.Keys(flags)) {
			more += fmt.Sprintf(" %s=%v", flag, flags[flag])
		}
	}
	return fmt.Sprintf("%s %s%s", key, class, more)
}

// openedProject writes what requests name: testdata/opened/given, at a place that
// belongs to no repository.
func openedProject(t *testing.T) openedInputs {
	t.Helper()
	place, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(place, os.DirFS(filepath.Join(goldenOpened, "given"))); err != nil {
		t.Fatal(err)
	}
	return openedInputs{dir: filepath.Join(place, "project"), agents: filepath.Join(place, "agents")}
}

// openedNode starts a node of a kind. Only the one that plays runs them.
func openedNode(t *testing.T, kind string, in *openedInputs) *Node {
	t.Helper()
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Roots, c.Machine, c.NoActors = []string{in.dir, in.agents}, "machine", kind != "plays"
		openedNodes[kind](c)
	})
	if kind == "plays" {
		c := connectClient(t, h)
		in.past = beginRun(t, c, client.RunRequest{RunID: "past", Prompt: "What is B?", Model: "script/" + filepath.Join(in.dir, "script.yaml"), Dir: in.dir})
		waitFinished(t, c, in.past, spec.Completed)
	}
	return h
}
