package node

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/troupe-run/troupe/internal/agentprotocol"
)

// An agent that takes signed senders only says so, refuses a prompt without a signature with 401, and answers one with it, once.
// Its run says who has signed.
func TestAgentsTakeSignedSenders(t *testing.T) {
	t.Parallel()
	h, c := startAgentsOnBus(t, "default: [{text: \"Hello.\"}]", func(c *Config) { c.AgentsOnBus.Senders = agentprotocol.SignedSender })
	if info, err := c.nc.Request("$SRV.INFO.agents", nil, patience); err != nil || !strings.Contains(string(info.Data), `"min_sender_trust":"signed"`) {
		t.Fatalf("%+v %v", info, err)
	}
	if r := c.prompt("Say hello"); r.code != "401" || r.body.Error != "sender_not_signed" {
		t.Errorf("without a signature: %+v", r)
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	user, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	sum, ts := sha256.Sum256([]byte("Say hello")), time.Now().UTC().Format(time.RFC3339)
	sig, err := key.Sign([]byte(strings.Join([]string{"AGENT-SENDER-V1", "$G", user, promptSubject, ts, "n-1", hex.EncodeToString(sum[:]), ""}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	header := fmt.Sprintf(`{"v":1,"account":"$G","user":%q,"sub":%q,"ts":%q,"nonce":"n-1","sig":%q}`, user, promptSubject, ts, base64.RawURLEncoding.EncodeToString(sig))
	send := func() busReply {
		inbox := c.nc.NewInbox()
		sub, err := c.nc.SubscribeSync(inbox)
		if err == nil {
			err = c.nc.PublishMsg(&nats.Msg{Subject: promptSubject, Reply: inbox, Header: nats.Header{"Agent-Sender": {header}}, Data: []byte("Say hello")})
		}
		if err != nil {
			t.Fatal(err)
		}
		return c.collect(sub)
	}
	r := send()
	if r.code != "" || r.text != "Hello." {
		t.Errorf("with a signature: %+v", r)
	}
	d, err := connectClient(t, h).Describe(testContext(t), r.run)
	if err != nil || d.Description.Caller != "agent protocol $G."+user {
		t.Errorf("the caller is %q %v", d.Description.Caller, err)
	}
	if r := send(); r.code != "401" || r.body.Error != "bad_signature" {
		t.Errorf("sent again: %+v", r)
	}
}
