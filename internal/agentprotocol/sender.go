package agentprotocol

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Signed senders, section 13 of the protocol: the header of a prompt names its sender, and a signature shows that the
// sender holds the seed of that user.

// SenderTrust is what an exported agent wants of the senders of prompts.
type SenderTrust string

// The values of SenderTrust. Without one the header of senders has no effect.
const (
	AnySender    SenderTrust = "any"
	SignedSender SenderTrust = "signed"
)

const senderHeader = "Agent-Sender"

const (
	// callerName begins who started a run, as its log has it.
	callerName = names.AgentCaller
	// sessionCaller begins the caller of each run that a spawned session has started, so that any node recognizes it.
	sessionCaller = callerName + " session"
	// statedCaller precedes what a prompt states: nothing that is not verified has the form of a signed sender.
	statedCaller = ", not verified: "
)

// trustClass is how far the identity of a sender is proven.
type trustClass string

const (
	senderAbsent   trustClass = "absent"
	senderClaimed  trustClass = "claimed"
	senderVerified trustClass = "verified"
)

// Errors of a sender, as problems of a prompt.
var (
	senderMalformed   = problem{code: client.CodeBad, Error: "bad_sender", Message: "the header Agent-Sender is malformed"}
	senderUnsigned    = problem{code: codeUnauthorized, Error: "sender_not_signed", Message: "this agent takes prompts of signed senders only"}
	tooManySignatures = problem{code: client.CodeLimit, Error: "rate_limited", Message: "the node remembers as many signatures as it does at once, of this sender or of all"}
)

// codeUnauthorized is the code of the protocol for a sender whose signature is missing or fails.
const codeUnauthorized = "401"

func failedSignature(why string) *problem {
	return &problem{code: codeUnauthorized, Error: "bad_signature", Message: "the signature of the sender fails: " + why}
}

// agentSender is the value of the header. Fields that are not there are nil.
type agentSender struct {
	V                                  *json.RawMessage
	Account, User, Sub, TS, Nonce, Sig *string
	Name                               *string
}

var (
	accountNameForm = lazyregexp.New(`^([A-Za-z0-9_-]+|\$G)$`)
	nonceForm       = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	signingTimeForm = lazyregexp.New(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$`)
)

// isAgentID reports whether an account and a user name an agent: the user by its public key, the account by its
// public key or, on a server without operators, by its name.
func isAgentID(account, user string) bool {
	if !nkeys.IsValidPublicUserKey(user) || !accountNameForm.MatchString(account) {
		return false
	}
	return !strings.HasPrefix(account, "A") || len(account) != 56 || nkeys.IsValidPublicAccountKey(account)
}

// signedInput is what a sender signs.
func signedInput(account, user, subject, ts, nonce string, payload []byte) []byte {
	sum := sha256.Sum256(payload)
	return []byte(strings.Join([]string{"AGENT-SENDER-V1", account, user, subject, ts, nonce, hex.EncodeToString(sum[:]), ""}, "\n"))
}

// classify reads the header of a prompt that came at a subject. id names the sender, and failed is set if
// the prompt must be refused.
func (t *nonceTable) classify(header, subject string, payload []byte, now time.Time) (id string, class trustClass, failed *problem) {
	if header == "" {
		return "", senderAbsent, nil
	}
	var s agentSender
	if json.Unmarshal([]byte(header), &s) != nil || s.V == nil {
		return "", senderAbsent, &senderMalformed
	}
	if version := string(*s.V); version != "1" {
		if strings.Trim(version, "0123456789.") != "" { // no number at all
			return "", senderAbsent, &senderMalformed
		}
		return "", senderAbsent, nil
	}
	if s.Account == nil || s.User == nil || !isAgentID(*s.Account, *s.User) {
		return "", senderAbsent, &senderMalformed
	}
	id = *s.Account + "." + *s.User
	if s.Sig == nil {
		return id, senderClaimed, nil
	}
	if s.Sub == nil || s.TS == nil || s.Nonce == nil || !nonceForm.MatchString(*s.Nonce) || !signingTimeForm.MatchString(*s.TS) {
		return "", senderAbsent, &senderMalformed
	}
	if failed := t.verify(s, subject, payload, now); failed != nil {
		return "", senderAbsent, failed
	}
	return id, senderVerified, nil
}

// verify returns why a signature does not count; nil if it does. One that counts is noted as used.
func (t *nonceTable) verify(s agentSender, subject string, payload []byte, now time.Time) *problem {
	sig, err := base64.RawURLEncoding.DecodeString(*s.Sig)
	if err != nil {
		return failedSignature("it is not base64url without padding")
	}
	key, err := nkeys.FromPublicKey(*s.User)
	if err != nil || key.Verify(signedInput(*s.Account, *s.User, *s.Sub, *s.TS, *s.Nonce, payload), sig) != nil {
		return failedSignature("it is not of this sender, subject, time and payload")
	}
	at, err := time.Parse(time.RFC3339Nano, *s.TS)
	switch {
	case *s.Sub != subject:
		return failedSignature("it is for another subject")
	case err != nil || at.Before(now.Add(-senderSkew)) || at.After(now.Add(senderSkew)):
		return failedSignature("its time is too far from that of this node")
	}
	return t.add(*s.User, *s.Nonce, now)
}

// checkSender applies what the agent wants of senders to a prompt. caller names a verified sender.
func (h *Host) checkSender(header, subject string, payload []byte) (caller string, failed *problem) {
	if h.cfg.Senders == "" {
		return "", nil
	}
	id, class, failed := h.nonces.classify(header, subject, payload, time.Now())
	switch {
	case failed != nil:
		return "", failed
	case class == senderVerified:
		return callerName + " " + id, nil
	case h.cfg.Senders == SignedSender:
		return "", &senderUnsigned
	}
	return "", nil
}

// runCaller is the caller of a run, as its log has it: a verified sender, or what the prompt states.
func (e *exportedAgent) runCaller(verified, stated string) string {
	by := callerName
	if e.spawned {
		by = sessionCaller
	}
	switch {
	case verified != "":
		return by + strings.TrimPrefix(verified, callerName)
	case stated != "":
		return by + statedCaller + stated
	}
	return by
}

// isSessionCaller reports whether a spawned session started a run with the caller.
func isSessionCaller(caller string) bool {
	rest, ok := strings.CutPrefix(caller, sessionCaller)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " ,"))
}
