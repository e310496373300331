package verify

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/mailbox"
)

// log is one log that is verified.
type log struct {
	at       mailbox.Address
	n        uint64
	chain    [sha256.Size]byte
	hashes   [][]byte // of the first 1, 2, … entries
	chained  int
	whole    uint64 // entries that a hash has confirmed
	findings []Finding

	epoch       mailbox.Epoch
	activation  string          // the current activation
	activations map[string]bool // that have claimed
	claims      int
	closed      uint64
	damaged     bool
	deleted     bool

	now      int64           // the stamp, never decreasing
	own      map[string]bool // items of activations that were read, by id and content
	answers  []answer        // of models
	turns    map[int]*answer // see replies
	attempts attempts
	gated    map[string]bool   // calls about which hooks were asked
	hooked   []verdict         // what hooks decided, but passing
	woke     map[string]uint64 // timers
	requests map[string]bool   // commands, by id
	decided  []decision        // of people about questions
	inbox    inbox
	seen     map[string][]byte // messages by sender and identity
	last     map[mailbox.Address]message

	task      *submittedBody
	taskAt    uint64 // its entry
	taskCause uint64 // in the log of the run
	tasks     int
	classes   map[string]string // of the tools
	canceled  uint64
	cancel    canceledBody
	granted   map[int]grant
	finish    *finishBody // that Closed names

	opened   []openedBody
	budget   budgetChanges
	models   []modelSetBody // that take the place of the model of the task
	contexts []contextChange

	narrowings []narrowing
	preempted  []uint64 // entries of messages that take effect at once
}

// budgetChange is a command about the budget of a run. One of the four is set.
type budgetChange struct {
	entry  uint64
	set    *limitBody
	others *othersBody
	below  *subtreeBody
	gone   string // an agent that is given up
}

// budgetChanges are the commands about the budget of a run, in the order of its log.
type budgetChanges []budgetChange

// hasGivenUp reports whether the run has given an agent up.
func (c budgetChanges) hasGivenUp(agent string) bool {
	return slices.ContainsFunc(c, func(change budgetChange) bool { return change.gone == agent })
}

// setsLimit reports whether the command sets a limit of tokens, money or tool calls.
func (c budgetChange) setsLimit() bool {
	return c.set != nil && !c.set.Freeze && !c.set.namesOnlyTime()
}

func newLog(at mailbox.Address) *log {
	return &log{at: at, activations: map[string]bool{}, own: map[string]bool{}, attempts: attempts{byKey: map[string]*attempt{}},
		gated: map[string]bool{}, woke: map[string]uint64{}, requests: map[string]bool{}, seen: map[string][]byte{},
		last:    map[mailbox.Address]message{},
		classes: map[string]string{}, granted: map[int]grant{}}
}

func (l *log) addFinding(rule Rule, entry uint64, format string, args ...any) {
	l.findings = append(l.findings, Finding{rule, l.at, entry, fmt.Sprintf(format, args...)})
}

func (l *log) isSuper() bool { return l.at.Agent() == mailbox.Super }

// decode decodes the body of an item of the newest entry; a body that does not decode is a finding.
func (l *log) decode(item mailbox.Item, into any) bool {
	return l.decodeOf(l.n, item.Kind, item.Body, into)
}

func (l *log) decodeOf(entry uint64, kind string, body []byte, into any) bool {
	if err := mailbox.Unmarshal(body, into); err != nil {
		l.addFinding(Readable, entry, "the body of %q does not decode: %v", kind, err)
		return false
	}
	return true
}

// read reads the next entry.
func (l *log) read(m mailbox.Message) {
	l.n++
	l.now = max(l.now, m.At)
	sum := sha256.New()
	sum.Write(l.chain[:])
	sum.Write(m.Data)
	sum.Sum(l.chain[:0])
	l.hashes = append(l.hashes, slices.Clone(l.chain[:16]))
	e, err := mailbox.Decode(m.Data)
	if err != nil {
		l.addFinding(Readable, l.n, "%v", err)
		return
	}
	if l.n == 1 {
		l.checkHead(e)
	}
	switch {
	case e.From == l.at:
		l.readOwn(e)
	case e.From == "":
		l.readCommands(e)
	case e.From.Run() == l.at.Run():
		l.readMessages(e)
	}
}

// heads are the kinds that may begin a log.
var heads = []string{"submitted", "recalled", "opened", "canceled", "steered", "model_set", "context_set"}

func (l *log) checkHead(e mailbox.Entry) {
	if len(e.Items) == 0 {
		l.addFinding(Head, 1, "the first entry is empty")
		return
	}
	kind := e.Items[0].Kind
	l.deleted = e.From == l.at && kind == "closed"
	var mark struct {
		First bool `msgpack:"f"` // a fork puts its mark before the task
	}
	isFirstMark := kind == "forked" && mailbox.Unmarshal(e.Items[0].Body, &mark) == nil && mark.First
	if !l.deleted && (e.From == l.at || !slices.Contains(heads, kind) && !isFirstMark) {
		l.addFinding(Head, 1, "the log begins with %q, so its first entries are lost", kind)
	}
}

// readOwn reads an entry of an activation of this actor.
func (l *log) readOwn(e mailbox.Entry) {
	if len(e.Items) == 0 || l.deleted {
		return
	}
	item := e.Items[0]
	if item.Kind == "resumed" {
		l.readClaim(e, item)
		return
	}
	current := e.Start != "" && e.Epoch == l.epoch && e.Start == l.activation
	late := item.Kind == "returned" // the result of a tool is evidence, whichever activation appends it
	switch {
	case current:
	case l.activations[e.Start] && !higher(e.Epoch, l.epoch) && e.Epoch != l.epoch: // superseded: it counts for nothing
	case e.Epoch == l.epoch && e.Start != l.activation && !late:
		l.addFinding(OneActing, l.n, "activation %q writes %q under the epoch %d-%d of activation %q", e.Start, item.Kind,
			e.Epoch.Lease, e.Epoch.Start, l.activation)
	case !late:
		l.addFinding(Claimed, l.n, "activation %q writes %q under the epoch %d-%d, which it has not claimed", e.Start,
			item.Kind, e.Epoch.Lease, e.Epoch.Start)
	}
	if current {
		l.checkFloor(e)
	}
	for _, item := range e.Items {
		l.checkID(e, item)
		if (current || item.Kind == "returned") && !l.isRepeated(item) {
			l.readFact(e, item)
		}
	}
}

// isRepeated reports whether an item of an activation was read before: an append that was not acknowledged in time is
// sent again, and the log may then hold it twice.
func (l *log) isRepeated(item mailbox.Item) bool {
	sum := sha256.Sum256(item.Body)
	key := item.ID + " " + string(sum[:])
	if l.own[key] {
		return true
	}
	l.own[key] = true
	return false
}

func higher(a, b mailbox.Epoch) bool {
	return a.Lease > b.Lease || a.Lease == b.Lease && a.Start > b.Start
}

func (l *log) readClaim(e mailbox.Entry, item mailbox.Item) {
	var c claimBody
	l.checkID(e, item)
	if !l.decode(item, &c) {
		return
	}
	l.checkFloor(e)
	l.damaged = l.damaged || c.Damaged != ""
	if !higher(e.Epoch, l.epoch) {
		return // it lost: it must claim again before it acts
	}
	l.epoch, l.activation = e.Epoch, e.Start
	l.activations[e.Start] = true
	l.claims++
}

// checkFloor checks the hash that an own entry carries.
func (l *log) checkFloor(e mailbox.Entry) {
	switch {
	case e.Floor == 0:
	case e.Floor >= l.n:
		l.addFinding(Floor, l.n, "it claims %d entries, and %d precede it", e.Floor, l.n-1)
	case !bytes.Equal(e.Hash, l.hashes[e.Floor-1]):
		l.addFinding(Chain, l.n, "its hash is not that of the %d entries before it: one of the entries %d to %d was changed",
			e.Floor, l.whole+1, e.Floor)
	default:
		l.chained++
		l.whole = max(l.whole, e.Floor)
	}
}

// checkID checks the id of an own item against its entry.
func (l *log) checkID(e mailbox.Entry, item mailbox.Item) {
	tail := "." + strconv.FormatUint(e.Epoch.Lease, 10) + "-" + strconv.FormatUint(e.Epoch.Start, 10) + "." + e.Start
	if !strings.HasPrefix(item.ID, string(l.at)+"!"+item.Kind+".") || !strings.HasSuffix(item.ID, tail) {
		l.addFinding(OwnID, l.n, "its id is %.200q", item.ID)
	}
}

func (l *log) readFact(e mailbox.Entry, item mailbox.Item) {
	switch item.Kind {
	case "replied", "failed":
		l.readAnswer(item)
	case "started":
		l.readStarted(e, item)
	case "returned":
		l.readReturned(item)
	case "hooked":
		l.readHooked(item)
	case "woke":
		var b wokeBody
		if l.decode(item, &b) {
			l.woke[b.Timer] = l.n
		}
	case "released": // everything that the activation began has a result: the other calls never began
		l.attempts.release(e.Start)
	case "closed":
		var b closedBody
		if l.decode(item, &b) {
			l.finish, l.closed = b.Finish, l.n
		}
	}
}

// requestsMax is how many commands of clients count in one log. Of those after them only cancels do.
const requestsMax = 1024

// commandKinds are the kinds of commands; an entry of another one without a sender does not count.
var commandKinds = []string{"opened", "canceled", "steered", "context_set", "backlog_set", "answered", "policy_set", "limit_set", "subtree_limit_set", "permissions_set",
	"given_up", "recalled", "lane_started", "forked", "model_set", "others_use"}

// readCommands reads the commands of clients, each once.
func (l *log) readCommands(e mailbox.Entry) {
	for _, item := range e.Items {
		isFull := len(l.requests) >= requestsMax
		if item.ID == "" || l.requests[item.ID] || !slices.Contains(commandKinds, item.Kind) || isFull && item.Kind != "canceled" {
			continue
		}
		if !isFull {
			l.requests[item.ID] = true
		}
		switch item.Kind {
		case "canceled":
			l.readCancel(item)
		case "answered":
			l.readDecision(item)
		case "opened":
			var b openedBody
			if len(l.opened) == 0 && l.decode(item, &b) {
				l.opened = append(l.opened, b)
				first := &limitBody{}
				first.Limits.Amount = b.Limits
				l.budget = append(l.budget, budgetChange{entry: l.n, set: first})
			}
		case "model_set":
			var b modelSetBody
			if l.decode(item, &b) {
				l.models = append(l.models, b)
			}
		case "context_set":
			l.readContext(item, 0)
		case "permissions_set":
			l.readNarrowing(item, 0)
		case "steered":
			l.readSteering(item)
		default:
			l.readBudget(item)
		}
	}
}

// readBudget reads a command about the budget of a run that was opened.
func (l *log) readBudget(item mailbox.Item) {
	c := budgetChange{entry: l.n}
	known := false
	switch item.Kind {
	case "limit_set":
		c.set = &limitBody{}
		known = l.decode(item, c.set)
	case "others_use":
		c.others = &othersBody{}
		known = l.decode(item, c.others)
	case "subtree_limit_set":
		c.below = &subtreeBody{}
		known = l.decode(item, c.below)
	case "given_up":
		var b givenUpBody
		known = l.decode(item, &b)
		c.gone = b.Agent
	}
	if known && len(l.opened) > 0 && l.closed == 0 { // after the end nothing counts
		l.budget = append(l.budget, c)
	}
}

func (l *log) readCancel(item mailbox.Item) {
	var b canceledBody
	if !l.decode(item, &b) {
		return
	}
	l.damaged = l.damaged || b.As == logDamaged
	if l.canceled == 0 && (!l.isSuper() || b.Of == "" || b.Of == "root") {
		l.canceled, l.cancel = l.n, b
	}
}
