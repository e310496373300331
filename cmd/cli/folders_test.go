package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Limits of an investigation without a key.
const (
	// folderMax is how long a person waits for the report on a folder.
	folderMax = 10 * time.Second
	// folderTries is how often a folder is tried: other tests may keep the machine busy.
	folderTries = 3
	// exitRefused is the exit code of a run whose task its model did not take on.
	exitRefused = 8
)

// folderCase is a folder of a kind that a new user has, and what troupe says about it without a key.
type folderCase struct {
	kind    string
	files   map[string]string
	git     bool
	prompt  string   // default: the README's
	code    int      // exit code
	says    []string // on stdout
	reports []string // in report.md; none: there is no report
}

// repeatLines joins n lines.
func repeatLines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

func largeLogs() map[string]string {
	files := map[string]string{"app.log": repeatLines(60_000, func(i int) string {
		level, text := "INFO", "served"
		if i%100 == 7 {
			level, text = "ERROR", "timeout"
		}
		return fmt.Sprintf("2026-01-02T03:%02d:%02dZ %s req=%06d %s", i/1000, i/20%60, level, i, text)
	})}
	for n := range 9 {
		files[fmt.Sprintf("build%d.log", n)] = repeatLines(3000, func(i int) string { return fmt.Sprint("compiling unit", i) }) + "make: *** [all] Error 2\n"
	}
	return files
}

// folderCases are built by the test that needs them: the program that the tests start is this binary.
func folderCases() []folderCase {
	return []folderCase{
		{kind: "Go", git: true, files: map[string]string{"go.mod": "module example.org/orders\n\ngo 1.26\n\nrequire github.com/google/uuid v1.6.0\n",
			"main.go": "package main\n\nimport \"fmt\"\n\n// TODO: read the price\nfunc main() { fmt.Println(\"orders\") }\n"},
			says: []string{"A git repository: 2 files", "mostly Go."}, reports: []string{"main.go:5", "No go.sum beside go.mod"}},
		{kind: "Python", git: true, files: map[string]string{"requirements.txt": "requests==2.31.0\nflask\n",
			"app.py": "import subprocess\n\ndef run(line, seen=[]):\n    try:\n        return subprocess.run(line, shell=True)\n    except:\n        pass\n"},
			says: []string{"mostly Python.", "3 medium"}, reports: []string{"app.py:6", "app.py:5", "app.py:3"}},
		{kind: "TypeScript", git: true, files: map[string]string{"package.json": `{"name":"orders","dependencies":{"left-pad":"*"}}` + "\n",
			"index.ts": "// TODO: validate\nexport function load(text: string): any {\n  return eval(\"(\" + text + \")\");\n}\n"},
			says: []string{"mostly TypeScript."}, reports: []string{"index.ts:3", "eval"}},
		{kind: "Rust", git: true, files: map[string]string{"Cargo.toml": "[package]\nname = \"orders\"\nversion = \"0.1.0\"\n\n[dependencies]\nserde = \"1\"\n",
			"src/main.rs": "fn main() {\n    let first = unsafe { \"ab\".get_unchecked(0..1) };\n    println!(\"{}\", first);\n    todo!();\n}\n"},
			says: []string{"mostly Rust."}, reports: []string{"src/main.rs:4", "src/main.rs:2"}},
		{kind: "Java", git: true, files: map[string]string{"pom.xml": "<project><artifactId>orders</artifactId></project>\n",
			"src/Orders.java": "public class Orders {\n    // FIXME: close the reader\n    public static void main(String[] args) {\n        System.out.println(\"orders\");\n    }\n}\n"},
			says: []string{"mostly Java."}, reports: []string{"src/Orders.java:2"}},
		{kind: "no git", files: map[string]string{"README.txt": "Household papers\n", "tax.md": "# Tax\nTODO: send form 12\n"},
			says: []string{"A folder: 2 files"}, reports: []string{"tax.md:2", "Household papers"}},
		{kind: "small log", files: map[string]string{"app.log": repeatLines(40, func(i int) string {
			return fmt.Sprintf("2026-03-01T08:00:%02dZ INFO served req=%d", i, i)
		}) + "2026-03-01T08:01:00Z ERROR timeout req=41\n"},
			says: []string{"A folder of logs: 1 file"}, reports: []string{"app.log:41", "ERROR timeout"}},
		{kind: "large logs", files: largeLogs(),
			says: []string{"A folder of logs: 10 files", "600×: ERROR", "9×: make: *** [all] Error"}, reports: []string{"app.log:8"}},
		{kind: "logs in JSON", files: map[string]string{"app.log": repeatLines(300, func(i int) string {
			level, text := "info", "served"
			if i%50 == 3 {
				level, text = "error", "upstream timeout"
			}
			return fmt.Sprintf(`{"ts":"2026-03-01T08:%02d:%02dZ","level":%q,"msg":%q,"request":%d}`, i/60, i%60, level, text, i)
		})}, says: []string{"A folder of logs: 1 file", "6×"}, reports: []string{"upstream timeout", "app.log:4"}},
		{kind: "data in JSON", files: map[string]string{"orders.json": `{"orders":[{"id":1,"price":12.5}]}` + "\n", "broken.json": "{\"broken\": [1, 2\n"},
			says: []string{"A folder: 2 files"}, reports: []string{"orders.json:1", "broken.json:1"}},
		{kind: "nothing at all", says: []string{"An empty folder.", "No findings."}, reports: []string{"An empty folder"}},
		{kind: "another task", files: map[string]string{"main.go": "package main\n"}, prompt: "Translate main.go to French", code: exitRefused,
			says: []string{"What you asked for was not done: that needs a model"}},
	}
}

// Each kind of folder ends with a useful report or a plain sentence, the exit code that docs/cli.md states, and in less
// than ten seconds.
func TestEachKindOfFolderIsInvestigatedWithoutAKey(t *testing.T) {
	for _, c := range folderCases() {
		t.Run(c.kind, func(t *testing.T) {
			var took time.Duration
			for range folderTries {
				if took = investigateFolder(t, c); took < folderMax {
					return
				}
			}
			t.Errorf("it took %s in the last of %d tries, want less than %s", took, folderTries, folderMax)
		})
	}
}

// investigateFolder makes the folder, runs troupe on it as a new user does, and returns how long that took.
func investigateFolder(t *testing.T, c folderCase) time.Duration {
	t.Helper()
	files := map[string]string{}
	for name, text := range c.files {
		files["folder/"+name] = text
	}
	home := newTestHome(t, files)
	folder := filepath.Join(home.home, "folder")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if c.git {
		commitFolder(t, home, folder)
	}
	prompt := c.prompt
	if prompt == "" {
		prompt = "Investigate this repository and write report.md"
	}
	cmd := home.command("run", "-q", "--dir", folder, prompt)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != c.code {
		t.Errorf("exit %d, want %d; stderr\n%s", code, c.code, stderr.String())
	}
	assertParts(t, "the output", out.String(), c.says)
	report, err := os.ReadFile(filepath.Join(folder, "report.md"))
	if (err == nil) != (len(c.reports) > 0) {
		t.Errorf("report.md: %v", err)
	}
	assertParts(t, "report.md", string(report), c.reports)
	return took
}

func assertParts(t *testing.T, where, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not say %q:\n%s", where, part, text)
		}
	}
}

// commitFolder makes a git repository with one commit of the folder.
func commitFolder(t *testing.T, home testHome, folder string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "First orders"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "HOME="+home.home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}
