package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/internal/workdir"
)

// DefaultUSD is the limit in money of a run with a paid key that names none.
const DefaultUSD = 1.0

// userOnlyKeys are the settings that only the user may set: the location of the state, which
// decides where run requests go and which programs are approved, what models cost, and where spans go. A
// working directory may come from anyone, and could otherwise redirect prompts, start
// programs or spend money.
var userOnlyKeys = map[string]bool{"store_dir": true, "log_store": true, "pricing_file": true, "allow_unpriced": true, "allow_unbounded": true, "max_live_runs": true, "retain_age": true, "retain_size": true,
	"otlp_endpoint": true, "telemetry_content": true, "events_content": true, "reconcile_every": true}

// loweringModes are the permission modes that allow nothing that the default does not.
var loweringModes = []string{"plan", "dontask", "dont-ask", "default"}

// scriptPrefix begins the route of a model that is a file of this machine.
const scriptPrefix = "script/"

// namesScript reports whether a setting, or an item of its list, is a script.
func (s Setting) namesScript() bool {
	return slices.ContainsFunc(strings.Split(s.Value, ","), func(item string) bool { return strings.HasPrefix(strings.TrimSpace(item), scriptPrefix) })
}

// isFalse reports whether the value is the word for no.
func (s Setting) isFalse() bool {
	isTrue, err := strconv.ParseBool(s.Value)
	return err == nil && !isTrue
}

// leadsOutside reports whether the file that a directory names is outside of it, by its path or
// by a link. A missing file is not outside.
func (s Setting) leadsOutside(dir string) bool {
	rel, ok := workdir.Below(dir, s.Value)
	if s.absolute || !ok {
		return true
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return true
	}
	defer func() { _ = root.Close() }()
	_, err = root.Stat(rel)
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

// refuseUserOnly refuses values in the file of the directory dir that only the user may set. user is
// the user's own value of the same key, if known.
func (s Setting) refuseUserOnly(dir, userFile string, user Setting, known bool) error {
	switch {
	case userOnlyKeys[s.Key]:
		return s.Error("only the user can set this, not the directory of the run: remove it here; " + s.whereToSet(userFile))
	case (s.Key == "model" || s.Key == "fallback") && s.namesScript():
		return s.Error("a directory cannot name a script as a model: remove it here; " + s.whereToSet(userFile))
	case (settingKinds[s.Key] == pathKind || settingKinds[s.Key] == policyKind) && s.leadsOutside(dir):
		return s.Error(fmt.Sprintf("a directory can only name files below it, by a relative path and without links that lead out: move the file into %s, or remove it here; %s", dir, s.whereToSet(userFile)))
	case s.Key == "permission_mode" && !slices.Contains(loweringModes, strings.ToLower(s.Value)):
		return s.Error("a directory can only take trust away: plan, dontAsk or default; " + s.whereToSet(userFile))
	case s.Key == "unattended" && s.isFalse():
		return s.Error("a directory can only take trust away: true; " + s.whereToSet(userFile))
	case s.Key == "priority" && s.raisesPriority(user):
		most := "the default, normal"
		if known {
			most = "yours, " + user.Value + " of " + user.From
		}
		return s.Error(fmt.Sprintf("the directory of the run may not raise its priority: %s is above %s; for more, %s", s.Value, most, s.whereToSet(userFile)))
	case settingKinds[s.Key] == rateKind:
		return s.refuseHigherRates(userFile, user)
	case s.Key == "max_agent_budget_usd" && s.exceedsLimit(user, known, math.Inf(1)):
		return s.Error(fmt.Sprintf("the directory of the run may not raise the money limit of an agent: %s is above yours, %s of %s; for more, %s", s.Value, user.Value, user.From, s.whereToSet(userFile)))
	case s.Key == "max_budget_usd" && s.exceedsLimit(user, known, DefaultUSD):
		most := fmt.Sprintf("the default of %g", DefaultUSD)
		if known {
			most = "yours, " + user.Value + " of " + user.From
		}
		return s.Error(fmt.Sprintf("the directory of the run may not raise the money limit: %s is above %s; for more, %s", s.Value, most, s.whereToSet(userFile)))
	}
	return nil
}

// raisesPriority reports whether a priority is above the user's own; without one, the user has the default.
func (s Setting) raisesPriority(user Setting) bool {
	p, err := throttle.ParsePriority(s.Value)
	return err == nil && p.IsAbove(throttle.Priority(user.Value)) // checkValue reports the error
}

// whereToSet tells the user where to set it instead.
func (s Setting) whereToSet(userFile string) string {
	return fmt.Sprintf("write it in %s, set %s, or give --%s", userFile, envPrefix+strings.ToUpper(s.Key), s.Flag())
}

// exceedsLimit reports whether a limit exceeds the user's own, or, if the user has none, most. 0
// is the default, which may exceed the user's limit.
func (s Setting) exceedsLimit(user Setting, known bool, most float64) bool {
	v, err := strconv.ParseFloat(s.Value, 64)
	if err != nil {
		return false // checkValue reports the error
	}
	if known {
		if own, err := strconv.ParseFloat(user.Value, 64); err == nil && own > 0 {
			return v == 0 || v > own
		}
	}
	return v > most
}

// sameFile reports whether the directory's file is the user's own file.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// checkModels checks the names of models that a setting lists. check returns what a run says about a name.
func (s Setting) checkModels(check func(name string) error) error {
	if s.Key != "model" && s.Key != "fallback" {
		return nil
	}
	for _, name := range strings.Split(s.Value, ",") {
		if name = strings.TrimSpace(name); name == "" || strings.HasPrefix(name, scriptPrefix) { // a run reads its script
			continue
		}
		if err := check(name); err != nil {
			return s.Error(err.Error())
		}
	}
	return nil
}

// HoldsForDirectory reports whether a file is the file of settings of a directory, which may come from anyone, and
// not the user's own.
func HoldsForDirectory(file string) bool {
	return filepath.Base(file) == FileName && !sameFile(file, UserFile())
}

// checkInFile checks one setting of a file by itself, and whether the file may set it: the file
// of a directory may not set everything.
func (s Setting) checkInFile(file string) error {
	if err := s.checkValue(); err != nil {
		return err
	}
	if !HoldsForDirectory(file) {
		return nil
	}
	user := UserFile()
	dir := filepath.Dir(file)
	mine, err := readSettings(user)
	if err != nil {
		mine = nil // the check of the user's file reports its errors
	}
	i := slices.IndexFunc(mine, func(m Setting) bool { return m.Key == s.Key })
	if i < 0 {
		return s.refuseUserOnly(dir, user, Setting{}, false)
	}
	return s.refuseUserOnly(dir, user, mine[i], true)
}
