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

// attempt is one attempt of a tool call.
type attempt struct {
	name     string // of the tool; "": unknown
	started  uint64 // entry; 0: none
	returned uint64
	body     []byte // of the first result
	life     string // activation that began it
	unbegun  bool   // the activation that was to begin it was drained before
}

// message is an item of another actor.
type message struct {
	entry uint64
	from  mailbox.Address
	n     uint64
	i     int
	kind  string
	body  []byte
}

// log is one log that is verified.
type log struct {
	at       mailbox.Address
	n        uint64
	chain    [sha256.Size]byte
	hashes   [][]byte // of the first 1, 2, … entries
	chained  int
	whole    uint64 // entries that a hash has confirmed
	findings []Finding

	epoch   mailbox.Epoch
	life    string          // the current activation
	lives   map[string]bool // that have claimed
	claims  int
	closed  uint64
	damaged bool
	deleted bool

	calls    []string // names of the calls of the last reply
	attempts map[string]*attempt
	order    []string // keys of attempts
	inbox    []message
	seen     map[string][]byte // messages by sender and identity
	last     map[mailbox.Address]message

	task     *submittedBody
	tasks    int
	classes  map[string]string // of the tools
	canceled uint64
	cancel   canceledBody
	granted  map[int]grantedBody
	finish   *finishBody // that Closed names

	opened        []openedBody
	limitsChanged bool
}

func newLog(at mailbox.Address) *log {
	return &log{at: at, lives: map[string]bool{}, attempts: map[string]*attempt{}, seen: map[string][]byte{}, last: map[mailbox.Address]message{},
		classes: map[string]string{}, granted: map[int]grantedBody{}}
}

func (l *log) find(rule Rule, entry uint64, format string, args ...any) {
	l.findings = append(l.findings, Finding{rule, l.at, entry, fmt.Sprintf(format, args...)})
}

func (l *log) isSuper() bool { return l.at.Agent() == mailbox.Super }

// decode decodes the body of an item; a body that does not decode is a finding.
func (l *log) decode(item mailbox.Item, into any) bool {
	if err := mailbox.Unmarshal(item.Body, into); err != nil {
		l.find(Readable, l.n, "the body of %q does not decode: %v", item.Kind, err)
		return false
	}
	return true
}

// read reads the next entry.
func (l *log) read(m mailbox.Message) {
	l.n++
	sum := sha256.New()
	sum.Write(l.chain[:])
	sum.Write(m.Data)
	sum.Sum(l.chain[:0])
	l.hashes = append(l.hashes, slices.Clone(l.chain[:16]))
	e, err := mailbox.Decode(m.Data)
	if err != nil {
		l.find(Readable, l.n, "%v", err)
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
var heads = []string{"submitted", "recalled", "opened", "canceled", "steered", "model_set"}

func (l *log) checkHead(e mailbox.Entry) {
	if len(e.Items) == 0 {
		l.find(Head, 1, "the first entry is empty")
		return
	}
	kind := e.Items[0].Kind
	l.deleted = e.From == l.at && kind == "closed"
	if !l.deleted && (e.From == l.at || !slices.Contains(heads, kind)) {
		l.find(Head, 1, "the log begins with %q, so its first entries are lost", kind)
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
	current := e.Start != "" && e.Epoch == l.epoch && e.Start == l.life
	late := item.Kind == "returned" // what a tool returned is evidence, whoever appends it
	switch {
	case current || l.lives[e.Start] && !higher(e.Epoch, l.epoch) && e.Epoch != l.epoch: // superseded: it counts for nothing
	case e.Epoch == l.epoch && e.Start != l.life && !late:
		l.find(OneActing, l.n, "activation %q writes %q under the epoch %d-%d of activation %q", e.Start, item.Kind, e.Epoch.Lease, e.Epoch.Start, l.life)
	case !late:
		l.find(Claimed, l.n, "activation %q writes %q under the epoch %d-%d, which it has not claimed", e.Start, item.Kind, e.Epoch.Lease, e.Epoch.Start)
	}
	if current {
		l.checkFloor(e)
	}
	for _, item := range e.Items {
		l.checkID(e, item)
		if current || item.Kind == "returned" {
			l.readFact(e, item)
		}
	}
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
	l.epoch, l.life = e.Epoch, e.Start
	l.lives[e.Start] = true
	l.claims++
}

// checkFloor checks the hash that an own entry carries.
func (l *log) checkFloor(e mailbox.Entry) {
	switch {
	case e.Floor == 0:
	case e.Floor >= l.n:
		l.find(Floor, l.n, "it claims %d entries, and %d precede it", e.Floor, l.n-1)
	case !bytes.Equal(e.Hash, l.hashes[e.Floor-1]):
		l.find(Chain, l.n, "its hash is not that of the %d entries before it: one of the entries %d to %d was changed", e.Floor, l.whole+1, e.Floor)
	default:
		l.chained++
		l.whole = max(l.whole, e.Floor)
	}
}

// checkID checks the id of an own item against its entry.
func (l *log) checkID(e mailbox.Entry, item mailbox.Item) {
	tail := "." + strconv.FormatUint(e.Epoch.Lease, 10) + "-" + strconv.FormatUint(e.Epoch.Start, 10) + "." + e.Start
	if !strings.HasPrefix(item.ID, string(l.at)+"!"+item.Kind+".") || !strings.HasSuffix(item.ID, tail) {
		l.find(OwnID, l.n, "its id is %.200q", item.ID)
	}
}

func (l *log) readFact(e mailbox.Entry, item mailbox.Item) {
	switch item.Kind {
	case "replied":
		var b repliedBody
		if l.decode(item, &b) {
			l.calls = nil
			for _, c := range b.Reply.Message.Calls {
				l.calls = append(l.calls, c.Name)
			}
		}
	case "started":
		l.readStarted(e, item)
	case "returned":
		l.readReturned(item)
	case "released": // everything that the activation began has a result: the other calls never began
		for _, a := range l.attempts {
			if a.returned == 0 && a.life == e.Start {
				a.unbegun = true
			}
		}
	case "closed":
		var b closedBody
		if l.decode(item, &b) {
			l.finish, l.closed = b.Finish, l.n
		}
	}
}

// attemptOf returns an attempt of a call of the last reply: the id of a call is TURN-INDEX.
func (l *log) attemptOf(b callBody) *attempt {
	key := b.Call + "." + strconv.Itoa(b.Attempt)
	a := l.attempts[key]
	if a == nil {
		a = &attempt{}
		if _, index, ok := strings.Cut(b.Call, "-"); ok {
			if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(l.calls) {
				a.name = l.calls[i]
			}
		}
		l.attempts[key] = a
		l.order = append(l.order, key)
	}
	return a
}

func (l *log) readStarted(e mailbox.Entry, item mailbox.Item) {
	var b callBody
	if !l.decode(item, &b) {
		return
	}
	a := l.attemptOf(b)
	if a.started > 0 && !a.unbegun && a.life != e.Start {
		l.find(StartedOnce, l.n, "attempt %d of call %s began in entry %d already", b.Attempt, b.Call, a.started)
	}
	a.started, a.life, a.unbegun = l.n, e.Start, false
}

func (l *log) readReturned(item mailbox.Item) {
	var b callBody
	if !l.decode(item, &b) || b.Attempt == 0 {
		return
	}
	a := l.attemptOf(b)
	class := l.classes[a.name]
	if a.started == 0 && !b.Killed && (class == "effect" || class == "irreversible") {
		l.find(StartedFirst, l.n, "call %s of %s, whose class is %s, has a result, and no entry says that it began", b.Call, a.name, class)
	}
	if l.closed > 0 && a.started > l.closed && !b.Killed { // its beginning may be on its way when the log is closed
		l.find(AfterEnd, l.n, "attempt %d of call %s began in entry %d and has a result, and entry %d is the end", b.Attempt, b.Call, a.started, l.closed)
	}
	if a.returned > 0 && !bytes.Equal(a.body, item.Body) {
		l.find(AnsweredOnce, l.n, "attempt %d of call %s has another result in entry %d", b.Attempt, b.Call, a.returned)
	}
	if a.returned == 0 {
		a.returned, a.body = l.n, item.Body
	}
}

// readCommands reads the commands of clients.
func (l *log) readCommands(e mailbox.Entry) {
	for _, item := range e.Items {
		switch item.Kind {
		case "canceled":
			if l.canceled == 0 && l.isSuper() && l.decode(item, &l.cancel) {
				l.canceled = l.n
			}
		case "opened":
			var b openedBody
			if len(l.opened) == 0 && l.decode(item, &b) {
				l.opened = append(l.opened, b)
			}
		case "limit_set", "given_up":
			l.limitsChanged = true
		}
	}
}

// checkEnd checks what is known once the whole log was read.
func (l *log) checkEnd() {
	if l.closed == 0 || l.claims != 1 || l.canceled > 0 { // a crash or a cancel leaves calls without a result
		return
	}
	for _, key := range l.order {
		if a := l.attempts[key]; a.started > 0 && !a.unbegun && a.returned == 0 && l.finish != nil && l.finish.Outcome.Reason == "completed" {
			l.find(AnsweredOnce, a.started, "call %s began and has no result, and the agent completed", key)
		}
	}
}
