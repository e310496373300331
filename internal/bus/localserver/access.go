package localserver

import (
	"os"
	"path/filepath"
)

// ConfigVariable names the directory of the configuration of the user.
const ConfigVariable = "XDG_CONFIG_HOME"

// ConfigHome is the directory in which the nats CLI looks for a user's contexts; "" if the
// user has no home.
func ConfigHome(getenv func(string) string) string {
	if dir := getenv(ConfigVariable); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".config")
}

// Usage texts of the flags that open access, and the warnings while they are in use.
const (
	OpenWatchUsage   = "let any client of the port read the events of all runs without a credential"
	OpenControlUsage = "let any client of the port act as this user without a credential, except delete, prune and new schedules: " +
		"start, restore, answer, steer and cancel runs, read transcripts and exports, change budgets and policies"
)

// OpenWarning describes what is open to connections without a credential; "" if nothing is.
func OpenWarning(watch, control bool) string {
	switch {
	case control:
		return "--open-control: " + OpenControlUsage
	case watch:
		return "--open-watch: " + OpenWatchUsage
	}
	return ""
}
