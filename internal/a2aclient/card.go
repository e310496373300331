package a2aclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// agentCard is what this package reads of an agent's card: of version 1.0, and of 0.3, whose fields are below.
type agentCard struct {
	Name                string
	SupportedInterfaces []cardInterface
	Capabilities        struct {
		Streaming  bool
		Extensions []struct {
			URI      string
			Required bool
		}
	}

	URL, ProtocolVersion, PreferredTransport string
	AdditionalInterfaces                     []struct{ URL, Transport string }
}

// cardInterface is one way to call an agent.
type cardInterface struct {
	URL, ProtocolBinding, ProtocolVersion, Tenant string
}

// target is where and how an agent is called.
type target struct {
	endpoint  *url.URL
	dialect   dialect
	version   string // of the header A2A-Version
	tenant    string
	streaming bool

	headerName, headerValue string // of the credential; empty: there is none
	trace                   string // W3C traceparent of the call; may be empty
}

// bindingJSONRPC is the one binding that this package speaks, in the words of cards.
const bindingJSONRPC = "JSONRPC"

// findTarget reads the card of an agent. After an error nothing was sent to the agent.
func (c *Caller) findTarget(ctx context.Context, a Agent) (target, error) {
	var t target
	var err error
	if t.headerName, t.headerValue, err = a.header(c.cfg.Env); err != nil {
		return t, err
	}
	at, err := a.cardURL()
	if err != nil {
		return t, err
	}
	data, err := c.readCard(ctx, at, t)
	if err != nil {
		return t, fmt.Errorf("its card at %s cannot be read: %w", at.Redacted(), err)
	}
	var card agentCard
	if err := json.Unmarshal(data, &card); err != nil || card.Name == "" {
		return t, fmt.Errorf("what is at %s is not the card of an agent", at.Redacted())
	}
	return card.choose(t, a, at)
}

// readCard returns the bytes of a card.
func (c *Caller) readCard(ctx context.Context, at *url.URL, t target) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cardTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := c.do(req, t)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, statusError(res)
	}
	return readAll(res.Body, cardBytesMax)
}

// choose selects the interface by which the agent is called. Anyone with write access to that server may have written
// the card, so it leads to no other server.
func (k agentCard) choose(t target, a Agent, at *url.URL) (target, error) {
	for _, e := range k.Capabilities.Extensions {
		if e.Required {
			return t, fmt.Errorf("the agent requires the extension %.200q, which troupe does not speak", e.URI)
		}
	}
	t.streaming = k.Capabilities.Streaming
	var problem string // of the last interface that cannot be called
	for _, i := range k.interfaces() {
		t.dialect, t.version, t.tenant = dialectV1, i.ProtocolVersion, i.Tenant
		if strings.HasPrefix(i.ProtocolVersion, "0.3") {
			t.dialect = dialectV03
		}
		text := i.URL
		if a.Endpoint != "" {
			text = a.Endpoint
		}
		u, err := parseURL(text)
		switch {
		case err != nil:
			problem = fmt.Sprintf("names the address %.200q, which is not an http or https URL without a password", text)
		case a.Endpoint == "" && origin(u) != origin(at):
			problem = fmt.Sprintf("leads to %.200q, which is not the server of the card", origin(u))
		default:
			t.endpoint = u
			return t, nil
		}
	}
	if problem != "" {
		return t, fmt.Errorf("its card %s; if you know the right address, name it as endpoint of a2a_agents.%s",
			problem, a.Name)
	}
	return t, fmt.Errorf("its card names no interface of the binding %s in version 1.0 or 0.3, "+
		"which are what troupe speaks", bindingJSONRPC)
}

// interfaces lists the interfaces that this package speaks, those of version 1 first.
func (k agentCard) interfaces() (list []cardInterface) {
	var old []cardInterface
	for _, i := range k.SupportedInterfaces {
		i.ProtocolVersion = majorMinor(i.ProtocolVersion)
		switch {
		case !strings.EqualFold(i.ProtocolBinding, bindingJSONRPC):
		case strings.HasPrefix(i.ProtocolVersion, "1."):
			list = append(list, i)
		case i.ProtocolVersion == "0.3":
			old = append(old, i)
		}
	}
	if majorMinor(k.ProtocolVersion) != "0.3" {
		return append(list, old...)
	}
	if k.PreferredTransport == "" || strings.EqualFold(k.PreferredTransport, bindingJSONRPC) {
		old = append(old, cardInterface{URL: k.URL, ProtocolVersion: "0.3"})
	}
	for _, i := range k.AdditionalInterfaces {
		if strings.EqualFold(i.Transport, bindingJSONRPC) {
			old = append(old, cardInterface{URL: i.URL, ProtocolVersion: "0.3"})
		}
	}
	return append(list, old...)
}

// majorMinor returns the part of a version that the protocol compares: 1.0 of 1.0.1. Without a version it is 1.0.
func majorMinor(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return cmp.Or(major, "1") + "." + cmp.Or(minor, "0")
}
