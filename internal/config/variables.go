package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/suggest"
)

// Variable is an environment variable that troupe reads or sets.
type Variable struct{ Name, Meaning string }

// ownVariables are the variables TROUPE_* that are no settings.
var ownVariables = []Variable{
	{"TROUPE_OWNER", "state directory whose owner a command must join; processes of troupe set it for their children"},
	{"TROUPE_AS", "name of the owner that you are on a server that owners share (`--as`)"},
	{"TROUPE_SERVICE_USER", "troupe-node: user of the connection that answers requests (also _PASSWORD, _TOKEN, _CREDS, _NKEY)"},
	{"TROUPE_SYSTEM_USER", "troupe-node: user of the system account, which can report whether servers sync (also _PASSWORD, _TOKEN, _CREDS, _NKEY)"},
	{"TROUPE_RUN", "set for commands of agents: the run"},
	{"TROUPE_AGENT", "set for commands of agents: the agent"},
	{"TROUPE_TURN", "set for commands of agents: the turn"},
	{"TROUPE_CALL", "set for commands of agents: the call"},
	{"TROUPE_KEY", "set for commands of agents: an idempotency key, the same for every attempt of the call"},
	{"TROUPE_ATTEMPT", "set for commands of agents: the number of the attempt"},
	{"TROUPE_DEADLINE", "set for commands of agents: when the call ends at the latest, in UTC (RFC 3339)"},
	{"TROUPE_METRICS", "set for commands of agents: a file for figures of the call, a line NAME VALUE for each"},
	{"TROUPE_HOOK", "set for commands of hooks: the hook"},
	{"TROUPE_POINT", "set for commands of hooks: the point at which the hook runs"},
	{"TROUPE_HTTP_TOKEN", "troupe-node: token of --http"},
	{"TROUPE_FAILPOINTS", "test builds only: directory of failpoints"},
}

// prefixes of variables whose endings are those of a connection.
var variableFamilies = []string{"TROUPE_SERVICE_", "TROUPE_SYSTEM_", "TROUPE_HOOK_", "TROUPE_CHAOS_", "TROUPE_TEST_"}

// Variables lists all variables TROUPE_*: those of settings, and the others.
func Variables() []Variable {
	var list []Variable
	for _, key := range SettingKeys() {
		list = append(list, Variable{envPrefix + strings.ToUpper(key), settingMeanings[key]})
	}
	return append(list, ownVariables...)
}

// checkVariables refuses a variable TROUPE_* that nothing reads: its setting would be lost without a word.
func checkVariables(environ []string) error {
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		isFamily := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !strings.HasPrefix(name, envPrefix) || value == "" || known[name] || slices.ContainsFunc(variableFamilies, isFamily) {
			continue
		}
		end := "; docs/cli.md lists the variables"
		if near := suggest.Nearest(name, slices.Sorted(maps.Keys(known))); near != "" {
			end = "; did you mean " + near + "?"
		}
		return fmt.Errorf("%w: unknown environment variable %s%s", ErrSetting, name, end)
	}
	return nil
}

// settingsOf returns the settings of the environment by key.
func settingsOf(getenv func(string) string) map[string]Setting {
	all := map[string]Setting{}
	for key, form := range settingKinds {
		if form == treeKind {
			continue
		}
		name := envPrefix + strings.ToUpper(key)
		if v := getenv(name); v != "" {
			all[key] = Setting{Key: key, Value: v, From: name}.inNumbers()
		}
	}
	return all
}

// ValidateVariables returns all that is wrong with the variables TROUPE_* of an environment.
func ValidateVariables(getenv func(string) string, environ []string, checkModel func(name string) error) (problems []error) {
	if err := checkVariables(environ); err != nil {
		problems = append(problems, err)
	}
	all := settingsOf(getenv)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := errors.Join(all[key].checkValue(), all[key].checkModels(checkModel)); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
