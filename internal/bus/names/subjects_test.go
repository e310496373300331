package names_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

func TestSubjects(t *testing.T) {
	var n names.Names
	at := mailbox.At("01k9zabc", "root-3-1")
	box, err := n.BoxSubject("default", 17, at)
	if err != nil || box != "troupe.box.default.17.01k9zabc.root-3-1" {
		t.Fatalf("%s, %v", box, err)
	}
	pool, shard, back, err := n.ParseBox(box)
	if pool != "default" || shard != 17 || back != at || err != nil {
		t.Errorf("%s %d %s %v", pool, shard, back, err)
	}
	event, err := n.EventSubject("01k9zabc", "root", "turn.started")
	if err != nil || event != "troupe.evt.01k9zabc.root.turn.started" {
		t.Fatalf("%s, %v", event, err)
	}
	other, err := names.NewNames("acme")
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		n.BoxStream("default", 3):                     "TROUPE_BOX_DEFAULT_3",
		other.BoxStream("gpu-1", 0):                   "ACME_BOX_GPU-1_0",
		n.ShardSubjects("default", 3):                 "troupe.box.default.3.*.*",
		n.AllBoxes():                                  "troupe.box.>",
		n.AllEvents():                                 "troupe.evt.>",
		n.AllCommands():                               "troupe.cmd.>",
		n.CommandPrefix():                             "troupe.cmd",
		other.ShardBucket():                           "acme_shards",
		n.NodeBucket():                                "troupe_nodes",
		n.RunBucket():                                 "troupe_runs",
		n.BlobStore():                                 "troupe_blobs",
		n.AllTriggers():                               "troupe.trigger.>",
		n.TriggerStream():                             "TROUPE_TRIGGERS",
		mustSubject(n.TriggerSubject("git.push")):     "troupe.trigger.git.push",
		mustSubject(n.RunSubjects("r")):               "troupe.box.*.*.r.*",
		mustSubject(n.RunEvents("r")):                 "troupe.evt.r.>",
		mustSubject(other.CommandSubject("run")):      "acme.cmd.run",
		mustSubject(n.AgentSubject("hb", "me", "x")):  "agents.hb.troupe.me.x",
		mustSubject(names.KVSubject("b", "a.1")):      "$KV.b.a.1",
		n.AllAnswers():                                "troupe.answer.*",
		mustSubject(other.AnswerSubject("r")):         "acme.answer.r",
		mustSubject(n.ParseAnswer("troupe.answer.r")): "r",
		n.StoredAnswers("r"):                          "troupe.stored.r",
		other.AnswerStream():                          "ACME_ANSWER",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, bad := range []string{
		"", "troupe.box", "troupe.box.default.17.run", "troupe.box.default.17.run.a.b", "troupe.box.default.x.run.a",
		"troupe.box.default.-1.run.a", "acme.box.default.1.run.a", "troupe.evt.run.a.b.c.d",
	} {
		if _, _, _, err := n.ParseBox(bad); !errors.Is(err, names.ErrSubject) {
			t.Errorf("box %q: %v", bad, err)
		}
	}
}

func mustSubject(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

var badTokens = []string{"", "*", ">", "a.b", "a b", "A", "ä", "a\x00", "a\n", "$sys", strings.Repeat("x", 64)}

func TestBadTokens(t *testing.T) {
	var n names.Names
	for _, bad := range badTokens {
		_, prefix := names.NewNames(bad)
		_, box1 := n.BoxSubject(bad, 0, "r.a")
		_, box2 := n.BoxSubject("p", 0, mailbox.At(bad, "a"))
		_, box3 := n.BoxSubject("p", 0, mailbox.At("r", bad))
		_, run := n.RunSubjects(bad)
		_, event1 := n.EventSubject(bad, "a", "b.c")
		_, event2 := n.EventSubject("r", bad, "b.c")
		_, event3 := n.EventSubject("r", "a", bad+".c")
		_, event4 := n.EventSubject("r", "a", "b."+bad)
		_, events := n.RunEvents(bad)
		_, cmd := n.CommandSubject(bad)
		_, answer := n.AnswerSubject(bad)
		_, agent := n.AgentSubject("hb", bad, "x")
		_, key := names.KVSubject("b", "x."+bad)
		_, trigger := n.TriggerSubject("x." + bad)
		if bad == "a.b" {
			key, trigger = names.ErrToken, names.ErrToken // they may have several tokens
		}
		for i, err := range []error{prefix, box1, box2, box3, run, event1, event2, event3, event4, events, cmd, answer, agent, key, trigger} {
			if !errors.Is(err, names.ErrToken) && (i > 0 || bad != "") {
				t.Errorf("%q, builder %d: %v", bad, i, err)
			}
		}
	}
}

func FuzzBox(f *testing.F) {
	for _, bad := range badTokens {
		f.Add("run", bad)
		f.Add(bad, "agent")
	}
	f.Fuzz(func(t *testing.T, run, agent string) {
		var n names.Names
		subject, err := n.BoxSubject("default", 1, mailbox.At(run, agent))
		if err != nil {
			return
		}
		if strings.Count(subject, ".") != 5 || strings.ContainsAny(subject, "*> \t\r\n\x00") {
			t.Errorf("%q", subject)
		}
		if _, _, at, err := n.ParseBox(subject); err != nil || at.Run() != run || at.Agent() != agent {
			t.Errorf("%q: %s, %v", subject, at, err)
		}
	})
}

// The name of an agent of another program becomes one subject with five tokens, or none.
func FuzzForeignPrompts(f *testing.F) {
	for _, seed := range []string{"cc/derek/reviewer", "cc/derek", "a/b/c/d", "*/b/c", "a/>/c", "a.b/c/d", "$SYS/a/b", "a/b/c\n", "//"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		subject, err := names.ForeignPrompt(name)
		if err != nil {
			return
		}
		tokens := strings.Split(subject, ".")
		if len(tokens) != 5 || tokens[0] != "agents" || tokens[1] != "prompt" || strings.Join(tokens[2:], "/") != name || strings.ContainsAny(subject, "*>$ \t\r\n") {
			t.Errorf("%q is %q", name, subject)
		}
	})
}
