package agentprotocol

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
)

// The published vector of section 13, appendix B.13. Its seed is a throwaway key of the specification.
const (
	vectorSeed    = "SUAEJ6GDK6FSSB54LD45Q7W25AW7NUT7MVLBABIR5MIPFUTBW7ZNPK2KYE"
	vectorAccount = "AABYLMBR6Q2CDXTLGRQCFA2GP76BGCDF7NZF2OVHH4RQ7L3Y3TZWJDRL"
	vectorUser    = "UCDUW5V44EBDBIK2FL4CTNDBQFNGBEZVJHSZGQVKRHASN4AV4IWPB5NT"
	vectorSubject = "agents.prompt.demo-agent.alice.example"
	vectorNonce   = "nonce-operator-account-signed"
	vectorTime    = "2026-08-28T12:00:00Z"
	vectorPayload = `{"prompt":"hello"}`
	vectorSig     = "EPGc0tNF0ZQeBqXUduwUp3zdi33k1AKIXOX-PUPSeY9QtS4V3d2EZLq-fHuPuYkw6Cc3HdVn_jVI58Y_3YBZBw"
	vectorHeader  = `{"v":1,"account":"` + vectorAccount + `","user":"` + vectorUser + `","name":"claude-code","sub":"` + vectorSubject + `","ts":"` + vectorTime +
		`","nonce":"` + vectorNonce + `","sig":"` + vectorSig + `"}`
)

// The vector verifies, byte for byte: the signed input, its signature and the header.
func TestSenderVector(t *testing.T) {
	t.Parallel()
	input := signedInput(vectorAccount, vectorUser, vectorSubject, vectorTime, vectorNonce, []byte(vectorPayload))
	want := "AGENT-SENDER-V1\n" + vectorAccount + "\n" + vectorUser + "\n" + vectorSubject + "\n" + vectorTime + "\n" + vectorNonce + "\n" +
		"8a44725210b9dcd4fefd9f0eca07b70ae45e69274a3105fb25eb426a2cf8bbf4\n"
	if string(input) != want || len(vectorHeader) != 373 {
		t.Errorf("%q, a header of %d bytes", input, len(vectorHeader))
	}
	key, err := nkeys.FromSeed([]byte(vectorSeed))
	if err != nil {
		t.Fatal(err)
	}
	if sig, err := key.Sign(input); err != nil || base64.RawURLEncoding.EncodeToString(sig) != vectorSig {
		t.Errorf("signature %x %v", sig, err)
	}
	var c nonceTable
	id, class, failed := c.classify(vectorHeader, vectorSubject, []byte(vectorPayload), vectorNow(t))
	if id != vectorAccount+"."+vectorUser || class != senderVerified || failed != nil {
		t.Errorf("%s %s %+v", id, class, failed)
	}
	if _, _, failed := c.classify(vectorHeader, vectorSubject, []byte(vectorPayload), vectorNow(t)); failed == nil || failed.code != "401" || !strings.Contains(failed.Message, "used before") {
		t.Errorf("sent again: %+v", failed)
	}
}

func vectorNow(t *testing.T) time.Time {
	t.Helper()
	now, err := time.Parse(time.RFC3339, vectorTime)
	if err != nil {
		t.Fatal(err)
	}
	return now.Add(10 * time.Second)
}

// Each rule of section 13.7 about a header, by its bytes.
func TestSenderClasses(t *testing.T) {
	t.Parallel()
	with := func(old, text string) string { return strings.Replace(vectorHeader, old, text, 1) }
	claim := `{"v":1,"account":"ACME","user":"` + vectorUser + `"}`
	for name, k := range map[string]struct {
		header, subject, payload string
		after                    time.Duration
		class                    trustClass
		code                     string
	}{
		"no header":              {"", vectorSubject, vectorPayload, 0, senderAbsent, ""},
		"unknown version":        {with(`"v":1`, `"v":2`), vectorSubject, vectorPayload, 0, senderAbsent, ""},
		"version as text":        {with(`"v":1`, `"v":"1"`), vectorSubject, vectorPayload, 0, senderAbsent, "400"},
		"no version":             {with(`"v":1,`, ``), vectorSubject, vectorPayload, 0, senderAbsent, "400"},
		"no JSON":                {"x", vectorSubject, vectorPayload, 0, senderAbsent, "400"},
		"no user":                {`{"v":1,"account":"ACME"}`, vectorSubject, vectorPayload, 0, senderAbsent, "400"},
		"user that is no key":    {with(vectorUser, strings.ToLower(vectorUser)), vectorSubject, vectorPayload, 0, senderAbsent, "400"},
		"signature alone":        {with(`"nonce":"`+vectorNonce+`",`, ``), vectorSubject, vectorPayload, 0, senderAbsent, "400"},
		"field of another shape": {with(`"sub":"`+vectorSubject+`"`, `"sub":7`), vectorSubject, vectorPayload, 0, senderAbsent, "400"},
		"claim":                  {claim, vectorSubject, vectorPayload, 0, senderClaimed, ""},
		"claim of $G":            {strings.Replace(claim, "ACME", "$G", 1), vectorSubject, vectorPayload, 0, senderClaimed, ""},
		"another name":           {with("claude-code", "someone"), vectorSubject, vectorPayload, 0, senderVerified, ""}, // it is outside of the signature
		"another account":        {with(vectorAccount, "ACME"), vectorSubject, vectorPayload, 0, senderAbsent, "401"},
		"another payload":        {vectorHeader, vectorSubject, vectorPayload + " ", 0, senderAbsent, "401"},
		"another subject":        {vectorHeader, "agents.prompt.demo-agent.alice.other", vectorPayload, 0, senderAbsent, "401"},
		"another signed subject": {with(vectorSubject, "agents.prompt.demo-agent.alice.other"), "agents.prompt.demo-agent.alice.other", vectorPayload, 0, senderAbsent, "401"},
		"too old":                {vectorHeader, vectorSubject, vectorPayload, time.Minute, senderAbsent, "401"},
		"too new":                {vectorHeader, vectorSubject, vectorPayload, -time.Minute, senderAbsent, "401"},
	} {
		var c nonceTable
		_, class, failed := c.classify(k.header, k.subject, []byte(k.payload), vectorNow(t).Add(k.after))
		code := ""
		if failed != nil {
			code = failed.code
		}
		if class != k.class || code != k.code {
			t.Errorf("%s: %s %q", name, class, code)
		}
	}
}

// The fixtures of section 13.3.3: exactly these texts name an agent.
func TestAgentIDs(t *testing.T) {
	t.Parallel()
	const account, user = vectorAccount, "UAWW24XPLGOX3R3JF4OZEZZ6RUXMB55DSWJCEFFSUDFBCKJD4MSCMQYI"
	for text, want := range map[string]bool{
		account + "." + user: true, "ACME." + user: true, "$G." + user: true,
		user + "." + account: false, account + ":" + user: false, strings.ToLower(account + "." + user): false, account + "." + user[:54]: false,
		account + "." + user + ".extra": false, user: false, "acme corp." + user: false, account[:55] + "M." + user: false, "." + user: false,
	} {
		account, user, ok := strings.Cut(text, ".")
		if ok = ok && isAgentID(account, user); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

// An agent that wants signed senders says so, refuses others with 401, and its runs name a verified sender.
func TestPromptsOfSenders(t *testing.T) {
	t.Parallel()
	for trust, want := range map[SenderTrust]string{"": "", AnySender: "", SignedSender: "401"} {
		h := &Host{cfg: Config{Senders: trust}}
		_, failed := h.checkSender("", vectorSubject, nil)
		if code := fmt.Sprint(failed); want == "" && failed != nil || want != "" && (failed == nil || failed.code != want) {
			t.Errorf("%q: %s", trust, code)
		}
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	user, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	ts := time.Now().UTC().Format(time.RFC3339)
	sig, err := key.Sign(signedInput("$G", user, vectorSubject, ts, "n1", []byte("hi")))
	if err != nil {
		t.Fatal(err)
	}
	header := fmt.Sprintf(`{"v":1,"account":"$G","user":%q,"sub":%q,"ts":%q,"nonce":"n1","sig":%q}`, user, vectorSubject, ts, base64.RawURLEncoding.EncodeToString(sig))
	h := &Host{cfg: Config{Senders: SignedSender}}
	if caller, failed := h.checkSender(header, vectorSubject, []byte("hi")); failed != nil || caller != "agent protocol $G."+user {
		t.Errorf("%q %+v", caller, failed)
	}
}

// The caller of each run of a spawned session says so, whatever a prompt states.
func TestCallersOfSessionsHaveAMark(t *testing.T) {
	t.Parallel()
	spawned, other := &exportedAgent{spawned: true}, &exportedAgent{}
	for _, k := range []struct {
		agent            *exportedAgent
		verified, stated string
		want             string
	}{
		{spawned, "", "", "agent protocol session"}, {spawned, "", "bob", "agent protocol session, not verified: bob"},
		{spawned, "agent protocol A.U", "bob", "agent protocol session A.U"},
		{other, "", "", "agent protocol"}, {other, "", "bob", "agent protocol, not verified: bob"}, {other, "agent protocol A.U", "bob", "agent protocol A.U"},
	} {
		if got := k.agent.runCaller(k.verified, k.stated); got != k.want || isSessionCaller(got) != k.agent.spawned {
			t.Errorf("%q for %q and %q, want %q", got, k.verified, k.stated, k.want)
		}
	}
	if isSessionCaller("agent protocol sessions") {
		t.Error("another caller counts as that of a session")
	}
}
