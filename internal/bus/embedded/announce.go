package embedded

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/safefile"
)

// AnnounceHTTP adds the address of an HTTP server of this process to node.json.
func (e *Server) AnnounceHTTP(url string) error {
	e.http = url
	if e.cfg.DontListen {
		return nil
	}
	return e.writeNodeFile()
}

// writeNodeFile writes node.json atomically.
func (e *Server) writeNodeFile() error {
	user, password := e.Credential(bus.RoleClient)
	data, err := json.Marshal(statedir.NodeFile{
		Address: e.URL(), Socket: e.socket.listener.(*statedir.Socket).Path, User: user, Password: password, PID: os.Getpid(),
		HTTP: e.http, Prefix: e.cfg.Names.Prefix(), Watch: e.WatchCommand(), Durability: statedir.DurabilityName(e.cfg.Lazy), Version: server.VERSION,
	})
	if err == nil {
		err = safefile.Replace(statedir.NodeFilePath(e.cfg.StateDir), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("embedded: write %s: %w", statedir.NodeFileName, err)
	}
	return nil
}
