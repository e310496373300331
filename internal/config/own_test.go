package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/adrg/xdg"
)

// loadSettings loads the settings of a directory that brings a file.
func loadSettings(t *testing.T, theirs, mine string, env map[string]string, given ...string) (map[string]Setting, error) {
	t.Helper()
	dir, user := t.TempDir(), filepath.Join(t.TempDir(), FileName)
	writeFile(t, filepath.Join(dir, FileName), theirs)
	writeFile(t, user, mine)
	return Load(SettingSources{Dir: dir, User: user, Getenv: func(k string) string { return env[k] },
		Settled: func(flag string) bool { return strings.Contains(strings.Join(given, " "), flag) }})
}

// A cloned repository must not choose the location of the state (which decides where
// requests go and which programs are approved) or what models cost.
//
//behaviour:shows C2
func TestDirectorySettingsCannotSetUserOnlyKeys(t *testing.T) {
	for key, value := range map[string]string{"store_dir": "s", "pricing_file": "free.json", "allow_unpriced": "[openai/o3]", "allow_unbounded": "openai/o3"} {
		flag, variable := Setting{Key: key}.Flag(), "TROUPE_"+strings.ToUpper(key)
		line := key + ": " + value + "\n"
		_, err := loadSettings(t, "model: a/b\n"+line, "", nil)
		if !errors.Is(err, ErrSetting) {
			t.Errorf("%s: %v", key, err)
			continue
		}
		for _, want := range []string{FileName + ":2: " + key, "write it in /", "set " + variable, "give --" + flag} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", key, err)
			}
		}
		if _, err := loadSettings(t, line, line, nil); err == nil {
			t.Errorf("%s: the directory's goes before the user's", key)
		}
		if got, err := loadSettings(t, line, "", map[string]string{variable: "mine"}); err != nil || got[key].Value != "mine" {
			t.Errorf("%s: %v %v", key, got, err)
		}
		if _, err := loadSettings(t, line, "", nil, flag); err != nil {
			t.Errorf("%s: what a flag says goes before it: %v", key, err)
		}
		if got, err := loadSettings(t, "", line, nil); err != nil || got[key].Value == "" {
			t.Errorf("%s: the user may: %v %v", key, got, err)
		}
	}
}

// In the directory of the user's own file, that file remains the user's. A link to it is
// not another file, and does not change its path.
func TestTheUsersOwnFileIsNoDirectorys(t *testing.T) {
	mine, dir := t.TempDir(), t.TempDir()
	user := filepath.Join(mine, FileName)
	writeFile(t, user, "store_dir: s\nmax_budget_usd: 7\n")
	if err := os.Symlink(user, filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{mine, dir} {
		got, err := Load(SettingSources{Dir: at, User: user, Getenv: func(string) string { return "" }})
		if err != nil || got["store_dir"].Value != filepath.Join(mine, "s") || got["max_budget_usd"].Value != "7" {
			t.Errorf("%v %v", got, err)
		}
	}
}

// The directory's limit in money counts where it is lower than the user's.
//
//behaviour:shows G4
func TestADirectoryCanOnlyLowerTheLimitInMoney(t *testing.T) {
	const key = "max_budget_usd"
	for _, c := range []struct{ theirs, mine, counts string }{
		{"0.5", "", "0.5"}, {"1", "", "1"}, {"1.01", "", ""}, {"5000", "", ""}, {"0", "", "0"},
		{"4", "5", "4"}, {"6", "5", ""}, {"0.9", "0.2", ""}, {"0", "0.2", ""}, {"3", "0", ""}, {"0.3", "0", "0.3"},
	} {
		mine := ""
		if c.mine != "" {
			mine = key + ": " + c.mine + "\n"
		}
		got, err := loadSettings(t, key+": "+c.theirs+"\n", mine, nil)
		if c.counts == "" && (!errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), FileName+":1: "+key+": the directory of the run may not raise the money limit")) ||
			c.counts != "" && (err != nil || got[key].Value != c.counts) {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
	if got, err := loadSettings(t, key+": 9\n", "", map[string]string{"TROUPE_MAX_BUDGET_USD": "8"}); err != nil || got[key].Value != "8" {
		t.Errorf("%v %v", got, err)
	}
}

// A directory may limit the money of each agent, but not raise what the user has set.
//
//behaviour:shows G4
func TestADirectoryCanOnlyLowerTheMoneyOfAnAgent(t *testing.T) {
	const key = "max_agent_budget_usd"
	for _, c := range []struct{ theirs, mine, counts string }{{"50", "", "50"}, {"4", "5", "4"}, {"6", "5", ""}, {"0", "0.2", ""}, {"0.3", "0", "0.3"}} {
		mine := ""
		if c.mine != "" {
			mine = key + ": " + c.mine + "\n"
		}
		got, err := loadSettings(t, key+": "+c.theirs+"\n", mine, nil)
		if c.counts == "" && (!errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), FileName+":1: "+key+": the directory of the run may not raise the money limit of an agent")) ||
			c.counts != "" && (err != nil || got[key].Value != c.counts) {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
}

// The sentences of a directory add to the user's: they take none away.
func TestSentencesOfAllPlacesAddUp(t *testing.T) {
	got, err := loadSettings(t, "constraints: [Theirs.]\n", "constraints: Mine.\n", map[string]string{"TROUPE_CONSTRAINTS": "Variable."})
	if err != nil || got["constraints"].Value != "Variable.\nMine.\n(troupe.yaml of the directory) Theirs." {
		t.Errorf("%+v, %v", got, err)
	}
}

// The directory's priority counts where it is not above the user's: a project puts no run of its own before others.
//
//behaviour:shows G6
func TestADirectoryCanOnlyLowerThePriority(t *testing.T) {
	for _, c := range []struct{ theirs, mine, counts string }{
		{"low", "", "low"}, {"normal", "", "normal"}, {"high", "", ""},
		{"low", "low", "low"}, {"normal", "low", ""}, {"high", "low", ""},
		{"low", "normal", "low"}, {"normal", "normal", "normal"}, {"high", "normal", ""},
		{"low", "high", "low"}, {"normal", "high", "normal"}, {"high", "high", "high"},
	} {
		mine := ""
		if c.mine != "" {
			mine = "priority: " + c.mine + "\n"
		}
		got, err := loadSettings(t, "priority: "+c.theirs+"\n", mine, nil)
		if c.counts == "" && (!errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), FileName+":1: priority: the directory of the run may not raise its priority: "+c.theirs+" is above ")) ||
			c.counts != "" && (err != nil || got["priority"].Value != c.counts) {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
	for _, c := range []struct{ theirs, env, counts string }{{"high", "low", "low"}, {"low", "high", "high"}} {
		got, err := loadSettings(t, "priority: "+c.theirs+"\n", "", map[string]string{"TROUPE_PRIORITY": c.env})
		if err != nil || got["priority"].Value != c.counts {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
	if _, err := loadSettings(t, "priority: high\n", "", nil, "priority"); err != nil {
		t.Errorf("a flag goes before the directory: %v", err)
	}
	if _, err := loadSettings(t, "priority: urgent\n", "priority: low\n", nil); err == nil || !strings.Contains(err.Error(), `"urgent" is not high, normal or low`) {
		t.Errorf("%v", err)
	}
}

// A limit on tokens is the user's word as far as the user's own file says it.
func TestDirectoryCannotRaiseTheUsersTokenLimit(t *testing.T) {
	for _, c := range []struct {
		theirs, mine string
		env          map[string]string
		raised       bool
	}{
		{"9k", "", nil, true}, {"9k", "max_tokens: 8k\n", nil, true}, {"9k", "max_tokens: 0.009M\n", nil, false},
		{"9000", "", nil, true}, {"9000", "max_tokens: 8000\n", nil, true}, {"9000", "max_tokens: 9000\n", nil, false},
		{"9000", "", map[string]string{"TROUPE_MAX_TOKENS": "9000"}, false},
	} {
		got, err := loadSettings(t, "max_tokens: "+c.theirs+"\n", c.mine, c.env)
		if err != nil || got["max_tokens"].Raised != c.raised {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
}

// Validate reports the same errors about a directory's file as Load.
func TestValidateAppliesTheRulesOfTheFilesOwner(t *testing.T) {
	text := "store_dir: s\nmax_budget_usd: 50\nmodel: a/b\n"
	whose := map[string]int{filepath.Join(t.TempDir(), FileName): 2, filepath.Join(t.TempDir(), "draft.yaml"): 0}
	for file := range maps.Keys(whose) {
		writeFile(t, file, text)
		if problems := ValidateFile(file, anyModel); len(problems) != whose[file] {
			t.Errorf("%s: %v", file, problems)
		}
	}
}

// A user's file that cannot be read gives a directory no additional rights.
func TestValidateRefusesUserOnlyKeysNextToABrokenUserFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	xdg.Reload()
	t.Cleanup(xdg.Reload)
	if err := os.MkdirAll(filepath.Dir(UserFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, UserFile(), "{")
	file := filepath.Join(t.TempDir(), FileName)
	writeFile(t, file, "store_dir: s\nmax_budget_usd: 50\n")
	if problems := ValidateFile(file, anyModel); len(problems) != 2 {
		t.Errorf("%v", problems)
	}
}

func anyModel(string) error { return nil }

// The names of models of a file are checked with what the caller knows about them; a script is read by a run.
func TestNamesOfModelsAreChecked(t *testing.T) {
	bad := func(name string) error { return errors.New("not a model name: " + name) }
	for text, want := range map[string]int{"model: 5\n": 1, "fallback: [a, b]\n": 1, "model: script/x.yaml\n": 0, "max_turns: 3\n": 0} {
		file := filepath.Join(t.TempDir(), "mine.yaml")
		writeFile(t, file, text)
		if problems := ValidateFile(file, bad); len(problems) != want {
			t.Errorf("%q: %v", text, problems)
		}
	}
}
