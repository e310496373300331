package control

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/schedule"
)

func readDocument(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// textUnder returns the text under a heading, up to the next heading.
func textUnder(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("there is no section %q", heading)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	return body
}

var code = regexp.MustCompile("`([^`]+)`")

// codeWords are the pieces of code in a text.
func codeWords(text string) (all []string) {
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// The table of kinds is that of the code, with the fields of the schemas.
func TestEventsAreDocumented(t *testing.T) {
	text := readDocument(t, "events.md")
	documented := map[string][]string{}
	for line := range strings.Lines(textUnder(t, text, "Kinds")) {
		cells := strings.Split(line, "|")
		if len(cells) == 6 && strings.HasPrefix(cells[1], " `") {
			documented[codeWords(cells[1])[0]] = codeWords(cells[4])
		}
	}
	for kind := range eventKinds() {
		s, err := schemaOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		data := s.Properties["data"]
		for name := range data.Properties {
			if !slices.Contains(data.Required, name) {
				name += "?"
			}
			want = append(want, name)
		}
		got := slices.Sorted(slices.Values(documented[kind]))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("docs/events.md: the data of %s is %v, and it says %v", kind, want, got)
		}
		delete(documented, kind)
	}
	if len(documented) > 0 {
		t.Errorf("docs/events.md has kinds that are not: %v", slices.Sorted(maps.Keys(documented)))
	}
}

// Whatever else the document calls a kind is one.
func TestTableOfOtherNamesListsOnlyKindsOfEvents(t *testing.T) {
	text := readDocument(t, "events.md")
	rows := 0
	for line := range strings.Lines(textUnder(t, text, "Where other words went")) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		rows++
		for _, kind := range codeWords(cells[2]) {
			_, built := eventKinds()[kind]
			if kindForm.MatchString(kind) && !built {
				t.Errorf("docs/events.md: %s in %s", kind, strings.TrimSpace(line))
			}
		}
	}
	if rows < 28 {
		t.Errorf("only %d rows", rows)
	}
}

// requests are the types behind the verbs.
var requests = map[string]any{
	"run": &client.RunRequest{}, "get": &client.GetRequest{}, "list": &client.ListRequest{}, "cancel": &client.CancelRequest{}, "steer": &client.SteerRequest{},
	"answer": &client.AnswerRequest{}, "events": &client.EventsRequest{}, "policy": &client.PolicyRequest{}, "budget": &client.BudgetRequest{},
	"questions": &struct{}{}, "transcript": &client.TranscriptRequest{},
	"export": &client.ExportRequest{}, "recall": &client.RecallRequest{}, "attach": &client.AttachRequest{},
	"delete": &client.DeleteRequest{}, "prune": &client.PruneRequest{},
	"logs": &client.LogsRequest{}, "blob": &client.BlobRequest{}, "restore": &client.RestoreRequest{},
	"conversations": &client.ConversationsRequest{}, "lane": &client.LaneRequest{}, "schedules": &schedule.Request{},
	"context": &client.ContextRequest{}, "backlog": &client.BacklogRequest{}, "permissions": &client.PermissionsRequest{}, "nodes": &NodesRequest{}, "cluster": &ClusterRequest{}, "drain": &client.DrainRequest{},
}

var example = regexp.MustCompile(`nats req troupe\.cmd\.([a-z]+) '([^']*)'`)

// Every verb has its section, which names all fields, and an example that decodes.
func TestVerbsAreDocumented(t *testing.T) {
	text := readDocument(t, "control.md")
	verbs := newControl(Config{}).verbHandlers()
	for _, m := range regexp.MustCompile("(?m)^## `troupe.cmd.([a-z]+)`$").FindAllStringSubmatch(text, -1) {
		if verbs[m[1]] == nil {
			t.Errorf("docs/control.md has a verb %s that is not", m[1])
		}
	}
	for _, name := range codeWords(textUnder(t, text, "Not built yet")) {
		if verbs[name] != nil {
			t.Errorf("docs/control.md says that %s is not built", name)
		}
	}
	for verb := range verbs {
		body := textUnder(t, text, "`troupe.cmd."+verb+"`")
		named := codeWords(body)
		kind := reflect.TypeOf(requests[verb]).Elem()
		for _, field := range reflect.VisibleFields(kind) {
			if field.Anonymous {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "-" && !slices.Contains(named, name) {
				t.Errorf("docs/control.md: %s has a field %s", verb, name)
			}
		}
		if !strings.Contains(body, "nats req troupe.cmd."+verb+" '") {
			t.Errorf("docs/control.md: no example for %s", verb)
		}
	}
	for _, m := range example.FindAllStringSubmatch(text, -1) {
		into := reflect.New(reflect.TypeOf(requests[m[1]]).Elem()).Interface()
		if err := decodeStrict([]byte(m[2]), into); err != nil {
			t.Errorf("docs/control.md: %s: %v", m[0], err)
		}
		if p, ok := into.(*client.PolicyRequest); ok && p.Policy.Validate() != nil {
			t.Errorf("docs/control.md: %s: %v", m[0], p.Policy.Validate())
		}
	}
	for limit := range reflect.TypeFor[spec.RunLimits]().Fields() {
		if name, _, _ := strings.Cut(limit.Tag.Get("json"), ","); !slices.Contains(codeWords(textUnder(t, text, "`troupe.cmd.budget`")), name) {
			t.Errorf("docs/control.md: budget has a limit %s", name)
		}
	}
	for _, c := range []string{client.CodeBad, client.CodeForbidden, client.CodeNotFound, client.CodeConflict, client.CodeGone, client.CodeLimit, client.CodeInternal, client.CodeUnavailable} {
		if !strings.Contains(textUnder(t, text, "Errors"), "| "+c+" |") {
			t.Errorf("docs/control.md: no code %s", c)
		}
	}
}
