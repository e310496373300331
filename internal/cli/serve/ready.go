package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/node"
)

// printReady reports on stdout that the node answers requests, and at which address.
func (n *program) printReady(h *node.Node) error {
	url, where := h.URL(), ""
	if url == "" {
		url = cmp.Or(n.cfg.Bus.Servers, n.cfg.Bus.Owner, "context "+n.cfg.Bus.Context)
	} else {
		where = statedir.StateDir(n.cfg.StateDir)
	}
	if watch := h.WatchCommand(); watch != "" {
		writeLine("watch with: " + watch + " sub '" + names.Names{}.AllEvents() + "' --translate 'troupe fmt'")
	}
	if line := localserver.OpenWarning(n.cfg.OpenWatch, n.cfg.OpenControl); line != "" {
		writeLine("warning: " + line)
	}
	web := h.HTTPURL()
	if web != "" {
		writeLine(httpapi.ReadyLine + web + "; try: " + n.http.hint(web, n.cfg.StateDir))
		for _, warning := range []string{httpapi.PlainWarning(web), httpapi.TakenWarning(n.http.address, web)} {
			if warning != "" {
				writeLine("warning: " + warning)
			}
		}
	}
	nodeFile := ""
	if where != "" {
		nodeFile = statedir.NodeFilePath(where)
	}
	if line := agentsLine(h.AgentSubjects(), url, nodeFile); line != "" {
		writeLine(line)
	}
	line := "ready " + url
	if where != "" {
		line += " store " + where
	}
	line += " profile " + h.Proof().String()
	if n.output == "json" {
		raw, err := json.Marshal(map[string]any{"type": "ready", "url": url, "store_dir": where, "watch": h.WatchCommand(), "http": web, "pid": os.Getpid(),
			"roots": n.cfg.Roots, "durability": n.durability, "proof": h.Proof()})
		if err != nil {
			return fmt.Errorf("ready: %w", err)
		}
		line = string(raw)
	}
	if _, err := fmt.Println(line); err != nil {
		return fmt.Errorf("ready: %w", err)
	}
	return nil
}
