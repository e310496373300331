package host

import (
	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/gateway"
)

// publish sends one event to observers. Core NATS does not wait for them.
func (h *Host) publish(e life.Event) {
	subject, err := h.names.Event(e.Run, e.Agent, e.Kind)
	if err == nil {
		var raw []byte
		if raw, err = gateway.Encode(e, h.cfg.Bare); err == nil {
			err = h.teller.Publish(subject, h.exits.bytes(raw))
		}
	}
	if err != nil {
		h.cfg.Logger.Warn("an event was not published", "event", e.ID, "error", err)
	}
}
