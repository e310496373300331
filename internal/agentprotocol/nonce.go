package agentprotocol

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// senderSkew is how far the time of a signature may be from that of this node.
	senderSkew = 30 * time.Second
	// noncePeriod is how long nonces are collected. They are remembered for the period after it too, which is longer than
	// a signature may be used.
	noncePeriod = 3 * senderSkew
	// senderNoncesMax bounds the nonces of one sender in a period, noncesMax those of all.
	senderNoncesMax, noncesMax = 2048, 1 << 17
)

// nonceTable remembers the nonces of signatures that could be sent again.
type nonceTable struct {
	mu          sync.Mutex
	begun       time.Time // of the period now
	now, before nonceSet
}

// nonceSet holds the nonces of a period, and how many each sender has.
type nonceSet struct {
	used map[[16]byte]struct{} // by a digest, so that a long nonce takes no more room
	of   map[string]int
}

// add notes the nonce of a sender. failed says that it was used before, or that there is no room: other senders still
// have theirs.
func (t *nonceTable) add(sender, nonce string, now time.Time) (failed *problem) {
	sum := sha256.Sum256([]byte(sender + " " + nonce))
	digest := [16]byte(sum[:])
	t.mu.Lock()
	defer t.mu.Unlock()
	if age := now.Sub(t.begun); age >= noncePeriod {
		t.before, t.now, t.begun = t.now, nonceSet{map[[16]byte]struct{}{}, map[string]int{}}, now
		if age >= 2*noncePeriod {
			t.before = nonceSet{}
		}
	}
	_, used := t.now.used[digest]
	_, usedBefore := t.before.used[digest]
	switch {
	case used || usedBefore:
		return failedSignature("it was used before")
	case t.now.of[sender] >= senderNoncesMax, len(t.now.used) >= noncesMax:
		p := tooManySignatures
		p.RetryAfterS = int((noncePeriod-now.Sub(t.begun))/time.Second) + 1
		return &p
	}
	t.now.used[digest] = struct{}{}
	t.now.of[sender]++
	return nil
}
