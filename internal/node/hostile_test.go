package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// seed of the hostile bytes: the same in every run of the tests.
const seed = 20260102

// answerTime is how long a request of a test waits.
const answerTime = 30 * time.Second

// otherStreams returns the streams other than the logs, and how much was ever written to each.
func otherStreams(t *testing.T, h *Node) map[string]uint64 {
	t.Helper()
	js, err := jetstream.New(connectRole(t, h, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]uint64{}
	list := js.ListStreams(testContext(t))
	for info := range list.Info() {
		if !strings.HasPrefix(info.Config.Name, "TROUPE_BOX_") {
			others[info.Config.Name] = info.State.LastSeq
		}
	}
	if list.Err() != nil {
		t.Fatal(list.Err())
	}
	return others
}

// awaitRows waits until the node has written the rows of held families: the node of each agent is
// known, nothing else of a row changes before the gate opens, and no write is under way.
func awaitRows(t *testing.T, h *Node, c *client.Client) {
	t.Helper()
	const family = 3
	js, err := jetstream.New(connectRole(t, h, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := js.KeyValue(testContext(t), h.names.RunBucket())
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.List(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		waitUntil(t, "the row of "+i.RunID+" is complete", func() bool {
			stored, err := rows.Get(testContext(t), i.RunID)
			if err != nil {
				t.Fatal(err)
			}
			var row runindex.Row
			if err := json.Unmarshal(stored.Value(), &row); err != nil {
				t.Fatal(err)
			}
			return row.Summary != nil && len(row.Summary.Agents) == family &&
				!slices.ContainsFunc(row.Summary.Agents, func(a supervisor.AgentSummary) bool { return a.Node == "" })
		})
	}
	waitUntil(t, "no row is being written", func() bool {
		h.indexWriter.mu.Lock()
		defer h.indexWriter.mu.Unlock()
		return len(h.indexWriter.pending) == 0
	})
}

// storedEntry is one message of a box stream.
type storedEntry struct {
	at   mailbox.Address
	data []byte
}

// logsInStreams is for tests that reach for the subjects and streams of the logs.
func logsInStreams(c *Config) { c.LogStore = statedir.LogsInJetStream }

// readAllEntries reads all box streams by plain JetStream.
func readAllEntries(t *testing.T, h *Node) (all []storedEntry) {
	t.Helper()
	js, err := jetstream.New(connectRole(t, h, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	names := js.StreamNames(testContext(t))
	for name := range names.Name() {
		if !strings.HasPrefix(name, "TROUPE_BOX_") {
			continue
		}
		s, err := js.Stream(testContext(t), name)
		if err != nil {
			t.Fatal(err)
		}
		for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
			m, err := s.GetMsg(testContext(t), seq)
			if err != nil {
				t.Fatal(err)
			}
			_, _, at, err := h.names.ParseBox(m.Subject)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, storedEntry{at, m.Data})
		}
	}
	if names.Err() != nil {
		t.Fatal(names.Err())
	}
	return all
}

// onlyOwn checks that the logs hold what the actors of some runs wrote, each
// entry once, and of clients only that the runs be opened.
func onlyOwn(t *testing.T, h *Node, runs []string) {
	t.Helper()
	twice, opened := map[string]bool{}, 0
	for _, e := range readAllEntries(t, h) {
		m, err := mailbox.Decode(e.data)
		switch key := string(e.at) + string(e.data); {
		case err != nil, twice[key], !slices.Contains(runs, e.at.Run()):
			t.Errorf("%s holds %.80q (%v)", e.at, e.data, err)
		case m.From != "" && m.From.Run() != e.at.Run():
			t.Errorf("%s has an entry of %s", e.at, m.From)
		case m.From == "" && (len(m.Items) != 1 || m.Items[0].Kind != "opened"):
			t.Errorf("%s has a command %+v", e.at, m.Items)
		case m.From == "":
			opened++
			fallthrough
		default:
			twice[key] = true
		}
	}
	if opened != len(runs) {
		t.Errorf("%d runs were opened, not %d", opened, len(runs))
	}
}

// denialLog collects what the server refused on a connection.
type denialLog struct {
	mu      sync.Mutex
	refused map[string]bool
	done    chan string
}

func (d *denialLog) recordDenial(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	_, subject, _ := strings.Cut(strings.ToLower(err.Error()), ` to "`)
	subject, _, _ = strings.Cut(subject, `"`)
	d.mu.Lock()
	d.refused[subject] = true
	d.mu.Unlock()
	select {
	case d.done <- subject:
	default:
	}
}

// forbiddenSubjects are subjects to which no outsider may publish: every family of the catalogue,
// with addresses that exist and addresses that do not.
func forbiddenSubjects(run string, box string) []string {
	return []string{
		box, "troupe.box.default.0." + run + ".root", "troupe.box.default.0.nobody.root", "troupe.box.default.63.x.super", "troupe.box.x",
		"troupe.evt." + run + ".super.run.finished", "troupe.evt." + run + ".root.message.delta", "troupe.evt.x",
		"$kv.troupe_runs." + run, "$KV.troupe_runs." + run, "$KV.troupe_shards.all", "$KV.troupe_nodes.x", "$O.troupe_blobs.M.x", "$O.troupe_blobs.C.x",
		"$JS.API.STREAM.DELETE.TROUPE_BOX_DEFAULT_0", "$JS.API.STREAM.PURGE.TROUPE_BOX_DEFAULT_0", "$JS.API.STREAM.LIST",
		"$JS.API.STREAM.MSG.GET.TROUPE_BOX_DEFAULT_0", "$JS.API.CONSUMER.CREATE.TROUPE_BOX_DEFAULT_0", "$JS.ACK.TROUPE_BOX_DEFAULT_0.c.1.1.1.1.0",
		"$JS.FC.TROUPE_BOX_DEFAULT_0.x.y", "$SYS.REQ.SERVER.PING", "_INBOX_node.x", "_INBOX_service.x", "_INBOX.x", "agents.hb.troupe.me.x", "other",
	}
}

// harmlessRequests are the verbs, each with a request that would be valid except for one documented
// flaw: none of them changes anything, even when it is answered.
func harmlessRequests(run string) map[string]string {
	return map[string]string{
		"run": `{"run_id":"nobody","resume":true}`, "get": `{"run_id":"` + run + `"}`, "list": `{}`, "questions": `{}`,
		"cancel": `{"run_id":"nobody","request_id":"a","now":true}`, "steer": `{"run_id":"` + run + `","request_id":"a","agent":"nobody","text":"x"}`,
		"answer": `{"run_id":"` + run + `","request_id":"a","query":"none","decision":"approve"}`, "events": `{"run_id":"` + run + `","from":{"x":1}}`,
		"policy": `{"run_id":"nobody","request_id":"a","policy":{"version":1,"rules":[]}}`, "budget": `{"run_id":"nobody","request_id":"a","limits":{"tokens":1}}`,
		"transcript": `{"run_id":"` + run + `","agent":"root"}`, "logs": `{"run_id":"` + run + `","log":"` + run + `.root"}`, "blob": `{"run_id":"` + run + `","blob":"` + strings.Repeat("0", 64) + `"}`,
	}
}

// malformedRequest makes bytes that are no request: random ones, and requests that are
// broken in one place.
func malformedRequest(random *rand.Rand, good string) []byte {
	switch random.IntN(6) {
	case 0:
		raw := make([]byte, 1+random.IntN(300))
		for i := range raw {
			raw[i] = byte(random.Uint32())
		}
		raw[0] |= 0x80 // no JSON begins so
		return raw
	case 1:
		return []byte(good[:1+random.IntN(len(good)-1)]) // cut
	case 2:
		return []byte(good + "}") // more than one value
	case 3:
		return []byte(strings.Replace(good, "{", `{"no_such_field":1,`, 1)[:len(good)+len(`"no_such_field":1,`)-1]) // unknown, and cut
	case 4:
		return []byte(strings.Replace(good, "{", `{"run_id":{},`, 1)) // a wrong type, or an unknown field
	default:
		return []byte(strings.Repeat("[", 1+random.IntN(20_000)))
	}
}

// whileRunsGo calls do with a host that has live runs, which must all end as if nothing had
// happened.
func whileRunsGo(t *testing.T, do func(h *Node, c *client.Client, id string)) (h *Node, runs []string) {
	t.Helper()
	model, gate, agents := heldFamily(t)
	h = startNode(t, t.TempDir(), logsInStreams, func(c *Config) { c.Roots = []string{agents} })
	c, tp := connectClient(t, h), recordEvents(t, h)
	for range 3 {
		runs = append(runs, beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"}))
	}
	for _, id := range runs {
		awaitEvents(t, c, id, event.KindToolStarted, 2)
	}
	do(h, c, runs[0])
	openGate(t, gate)
	for _, id := range runs {
		waitFinished(t, c, id, spec.Completed)
		_, raw := pagedEvents(t, c, id)
		sameEvents(t, tp.waitForEvents(t, id, raw), raw)
	}
	return h, runs
}

// requestCode sends a request and returns the code of its error, "" if there is none.
func requestCode(t *testing.T, nc *nats.Conn, subject string, data []byte) string {
	t.Helper()
	m, err := nc.Request(subject, data, answerTime)
	if err != nil {
		t.Fatalf("%s %.80q: %v", subject, data, err)
	}
	return m.Header.Get("Nats-Service-Error-Code")
}

func TestOutsidersCannotChangeARun(t *testing.T) {
	t.Parallel()
	for _, who := range []bus.Role{bus.RoleObserver, bus.RoleClient} {
		t.Run(string(who), func(t *testing.T) {
			noLeaks(t)
			h, runs := whileRunsGo(t, func(h *Node, c *client.Client, id string) {
				awaitRows(t, h, c)
				others := otherStreams(t, h)
				random := rand.New(rand.NewPCG(seed, 0))
				d := &denialLog{refused: map[string]bool{}, done: make(chan string, 4096)}
				nc := connectRole(t, h, who, nats.ErrorHandler(d.recordDenial))
				forbiddenBytes(t, h, nc, d, random, id)
				if who == bus.RoleClient { // an observer asks for nothing
					brokenRequests(t, nc, random, id)
					repliesElsewhere(t, h, nc, id)
				}
				if now := otherStreams(t, h); !maps.Equal(now, others) {
					t.Errorf("beside the logs there was %v, now %v", others, now)
				}
				if list, err := c.List(testContext(t)); err != nil || len(list) != 3 {
					t.Errorf("%d runs, %v", len(list), err)
				}
			})
			onlyOwn(t, h, runs)
		})
	}
}

// forbiddenBytes publishes to forbidden subjects, and waits for every refusal.
func forbiddenBytes(t *testing.T, h *Node, nc *nats.Conn, d *denialLog, random *rand.Rand, id string) {
	t.Helper()
	box := boxOf(t, h, mailbox.At(id, "root"))
	subjects := forbiddenSubjects(id, box)
	if user := nc.Opts.User; user == string(bus.RoleObserver) {
		subjects = append(subjects, "_INBOX_client.x")
	}
	valid := someEntry(t, h, id)
	for _, subject := range subjects {
		for range 8 {
			data := slices.Clone(valid)
			for range random.IntN(4) {
				data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
			}
			if err := nc.Publish(subject, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	limit := testContext(t)
	missing := func() (left []string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, s := range subjects {
			if !d.refused[strings.ToLower(s)] {
				left = append(left, s)
			}
		}
		return left
	}
	for len(missing()) > 0 {
		select {
		case <-d.done:
		case <-limit.Done():
			t.Fatalf("not refused: %v", missing())
		}
	}
}

// brokenRequests: a malformed request gets an error, and changes nothing.
func brokenRequests(t *testing.T, nc *nats.Conn, random *rand.Rand, id string) {
	t.Helper()
	for verb, good := range harmlessRequests(id) {
		subject := "troupe.cmd." + verb
		if code := requestCode(t, nc, subject, []byte(good)); code != "" && code[0] != '4' {
			t.Errorf("%s: %s", verb, code)
		}
		for range 30 {
			data := malformedRequest(random, good)
			if code := requestCode(t, nc, subject, data); !strings.HasPrefix(code, "4") {
				t.Errorf("%s %.80q: code %q", verb, data, code)
			}
		}
	}
	long := strings.Repeat("x", 800<<10)
	for verb, data := range map[string]string{
		"steer": `{"run_id":"` + id + `","request_id":"a","text":"` + long + `"}`, "cancel": `{"run_id":"` + id + `","request_id":"a","why":"` + long + `"}`,
		"run": `{"run_id":"long","prompt":"x","model":"builtin/scout","constraints":["` + long + `"]}`, "get": `{"run_id":"` + long + `"}`,
	} {
		if code := requestCode(t, nc, "troupe.cmd."+verb, []byte(data)); !strings.HasPrefix(code, "4") {
			t.Errorf("%s, much: code %q", verb, code)
		}
	}
	for field, value := range map[string]string{"max_tokens": "-1", "max_budget_usd": "1e300", "timeout_ms": "9223372036854775807", "max_agents": "-5",
		"max_turns": "9999999999999", "prompt": `" "`, "agent": `"no such"`, "model": `"no/such"`, "policy": `{"rules":[{}]}`} {
		data := fmt.Sprintf(`{"run_id":"bad","prompt":"x","model":"builtin/scout",%q:%s}`, field, value)
		if code := requestCode(t, nc, "troupe.cmd.run", []byte(data)); code != client.CodeBad {
			t.Errorf("%s: code %q", data, code)
		}
	}
	if code := requestCode(t, nc, "troupe.cmd.run", []byte(`{"run_id":"../Bad.*","prompt":"x"}`)); code != client.CodeBad {
		t.Errorf("a bad id: %q", code)
	}
}

// repliesElsewhere asks for the answer to be written into logs, the index and
// the API: the service may not.
func repliesElsewhere(t *testing.T, h *Node, nc *nats.Conn, id string) {
	t.Helper()
	for _, reply := range append(forbiddenSubjects(id, boxOf(t, h, mailbox.At(id, "super"))), "troupe.cmd.cancel", "troupe.cmd.run") {
		if reply == "_INBOX.x" || strings.HasPrefix(reply, "agents.hb.") || reply == "_INBOX_node.x" {
			continue // the service may answer there
		}
		for verb, good := range harmlessRequests(id) {
			for _, data := range []string{good, "{"} {
				if err := nc.PublishRequest("troupe.cmd."+verb, reply, []byte(data)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, verb := range []string{"PING", "INFO", "STATS"} {
			if err := nc.PublishRequest("$SRV."+verb, reply, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Every verb answers in order of arrival or refuses: once these are through,
	// so are those before them.
	for verb, good := range harmlessRequests(id) {
		for requestCode(t, nc, "troupe.cmd."+verb, []byte(good)) == client.CodeLimit {
			continue
		}
	}
}

func boxOf(t *testing.T, h *Node, at mailbox.Address) string {
	t.Helper()
	subject, err := h.names.BoxSubject(names.DefaultPool, mailbox.Shard(at, h.streams.Shards()), at)
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

// someEntry is the first entry of a run's root.
func someEntry(t *testing.T, h *Node, run string) []byte {
	t.Helper()
	var first []byte
	err := h.post.Read(testContext(t), mailbox.At(run, "root"), 0, 0, func(m mailbox.Message) error {
		if first == nil {
			first = slices.Clone(m.Data)
		}
		return nil
	})
	if err != nil || first == nil {
		t.Fatal(err)
	}
	return first
}

// undecodableEntries are bytes that a node with a bug may append: none of them decodes,
// or its body does not.
func undecodableEntries(t *testing.T, random *rand.Rand, valid []byte) [][]byte {
	t.Helper()
	list := [][]byte{{}, {0xc1}, []byte("hello"), []byte(`{"v":1}`)}
	for range 12 {
		raw := make([]byte, 1+random.IntN(500))
		for i := range raw {
			raw[i] = byte(random.Uint32())
		}
		raw[0] = 0xc1 // msgpack never begins so
		list = append(list, raw, valid[:len(valid)-1-random.IntN(len(valid)-1)])
	}
	body, err := json.Marshal("no msgpack")
	if err != nil {
		t.Fatal(err)
	}
	bad, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "x1", Kind: "steered", Body: []byte{0xa1, body[0]}}}})
	if err != nil {
		t.Fatal(err)
	}
	return append(list, bad)
}

// A node with a bug appends garbage to the logs of live runs: it is counted,
// it is stepped as nothing, and the runs end as they would.
func TestGarbageInALogIsIgnored(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	appended := map[mailbox.Address]int{}
	h, _ := whileRunsGo(t, func(h *Node, _ *client.Client, id string) {
		random := rand.New(rand.NewPCG(seed, 1))
		nc := connectRole(t, h, bus.RoleNode)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		list := undecodableEntries(t, random, someEntry(t, h, id))
		for _, name := range []string{"super", "root", "root-1-0", "root-1-1"} {
			at := mailbox.At(id, name)
			for _, data := range list {
				if _, err := js.Publish(testContext(t), boxOf(t, h, at), data); err != nil {
					t.Fatal(err)
				}
				appended[at]++
			}
		}
		// Entries on subjects that are no log of this pool's layout.
		for _, subject := range []string{"troupe.box.default.0." + id + ".root", "troupe.box.default.1." + id + ".root"} {
			if subject == boxOf(t, h, mailbox.At(id, "root")) {
				continue
			}
			if _, err := js.Publish(testContext(t), subject, someEntry(t, h, id)); err != nil {
				t.Fatal(err)
			}
		}
	})
	for at, n := range appended {
		var l *activation.LogReader
		if at.Agent() == mailbox.Super {
			l = activation.Watch(at, &activation.Supervisor{Addr: at})
		} else {
			l = activation.Watch(at, &activation.Agent{Addr: at})
		}
		err := h.post.Read(testContext(t), at, 0, 0, func(m mailbox.Message) error {
			l.Next(m)
			return nil
		})
		if err != nil || l.Garbage != n || l.Phase != activation.Closed {
			t.Errorf("%s: %d of %d counted, %s, %v", at, l.Garbage, n, l.Phase, err)
		}
	}
}

// The streams match their documentation: a plain reader finds the children, each begun by
// the entry that submitted its task.
func TestAPlainReaderFindsTheChildren(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir(), logsInStreams)
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: writeScript(t, family)})
	waitFinished(t, c, id, spec.Completed)

	submitted := map[string]string{}
	for _, m := range readAllEntries(t, h) {
		e, err := mailbox.Decode(m.data)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range e.Items {
			var task agent.Submitted
			if item.Kind == task.Kind() {
				if err := mailbox.Unmarshal(item.Body, &task); err != nil {
					t.Fatal(err)
				}
				submitted[m.at.Agent()] = task.Task.Goal
			}
		}
	}
	for child, goal := range map[string]string{"root-1-0": "first", "root-1-1": "second", "root-1-2": "third"} {
		if submitted[child] != goal {
			t.Errorf("%s was submitted %q", child, submitted[child])
		}
	}
	if len(submitted) != 4 {
		t.Errorf("submitted: %v", submitted)
	}
}
