package investigator_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/model"
)

// investigated are prompts, and whether an investigation does what they ask for.
var investigated = map[string]bool{
	"Fix the bug in report.go":                                         false,
	"Fix the typo in README.md":                                        false,
	"Please refactor main.go and write tests":                          false,
	"Update README.md":                                                 false,
	"Write unit tests for main.go":                                     false,
	"Write a function that saves orders":                               false,
	"Write a poem about the sea":                                       false,
	"What is the capital of France?":                                   false,
	"Translate hello into French":                                      false,
	"Hello":                                                            false,
	"Untersuche den Ordner":                                            true,
	"What does this code do?":                                          false,
	"What does greet.py do?":                                           false,
	"Summarize greet.py":                                               false,
	"Summarize X":                                                      false,
	"Explain X":                                                        false,
	"Explain the parser":                                               false,
	"Explain the code":                                                 false,
	"Find the bug":                                                     false,
	"Why does the build fail?":                                         false,
	"Look around and fix what you find":                                false,
	"Investigate this repository. Then fix it.":                        false,
	"Investigate this, write report.md and run the tests":              false,
	"How many lines of code are here?":                                 false,
	"Count the lines of code":                                          false,
	"Check whether the tests pass":                                     false,
	"Check the tests":                                                  false,
	"Do the tests pass?":                                               false,
	"Is this code safe?":                                               false,
	"Tell me what this project does":                                   false,
	"Review greet.py and write report.md":                              false,
	"Compare A and B":                                                  false,
	"I want you to fix the errors here":                                false,
	"Summarize this repository":                                        true,
	"Investigate the build and test setup":                             true,
	"Investigate this Node.js project":                                 true,
	"Investigate and then create a report":                             true,
	"Are there secrets in this repository?":                            true,
	"Find bugs and risks in ./src, e.g. secrets":                       true,
	"Look around":                                                      true,
	"Describe this folder in notes.md":                                 true,
	"What happened here?":                                              true,
	"Which errors are most frequent?":                                  true,
	"Write down what you find":                                         true,
	"Create a report about this directory":                             true,
	"Please generate notes.md with the results":                        true,
	"Run an audit and write report.md":                                 true,
	"Write what you see to report.md":                                  true,
	"Audit this repository before it goes to npmjs.com":                true,
	"Investigate the outage and its logs; name the cause":              true,
	"Triage the errors in app.log":                                     true,
	"Investigate the incident of last night and find the reason":       true,
	"Audit the dependencies of the service at api.example.com.":        true,
	"Review the errors in logs/app.log.1 and list them":                true,
	"Look around and list the owners of each module":                   true,
	"Show the errors of the last release in server.log and worker.log": true,
	"Survey the codebase and name the regression":                      true,
	"Investigate the failures since 3 a.m. in this directory":          true,
	"Scan this repository for secrets before we publish it on github.com/acme/shop": true,
	"Audit the licenses here; our policy is at https://example.org/policy.html":     true,
	"Show a timeline of the outage from events.jsonl":                               true,
	"Triage this bug: which errors came first?":                                     true,
	"Investigate this leak":                      true,
	"Find the bug in the service at example.com": false,
	"Review app.cloud.py":                        false,
	"Audit server.log.go":                        false,
}

// Work that an investigation does not do is not done by a report about it, though the prompt names a report or a
// document.
func TestWorkOtherThanAReportIsNotReportedAsDone(t *testing.T) {
	for prompt, done := range investigated {
		dir := t.TempDir()
		writeFile(t, dir, "main.go", "package main\n")
		text := newDriver(t, directoryTools(t, dir)).runAgent("coordinator", prompt)
		if refused := strings.Contains(text, "What you asked for was not done"); refused == done {
			t.Errorf("%q: %s", prompt, text)
		}
		reports, err := filepath.Glob(filepath.Join(dir, "report.*"))
		if err != nil || !done && len(reports) > 0 {
			t.Errorf("%q: %v, %v", prompt, reports, err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "main.go")); err != nil || string(data) != "package main\n" {
			t.Errorf("%q: %q, %v", prompt, data, err)
		}
	}
}

// Without tools that look around nothing is done either.
func TestWorkIsRefusedWithoutTools(t *testing.T) {
	for _, tools := range [][]string{nil, {"delegate"}} {
		reply, err := investigator.New().Complete(context.Background(), model.Request{System: agentNamed("coordinator").System, Caller: model.Caller{Name: "coordinator"},
			MaxOutput: 4096, Messages: []model.Message{{Role: model.User, Text: "Fix the failing test"}}, Tools: toolSpecs(tools)}, nil)
		if err != nil || reply.Stop != model.StopRefusal {
			t.Errorf("with the tools %v it ends with %q: %s, %v", tools, reply.Stop, reply.Message.Text, err)
		}
	}
}
