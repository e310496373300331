package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wrongInput is a command that cannot work: what it says, and its exit code.
type wrongInput struct {
	env  string // NAME=VALUE, or ""
	line string // arguments, separated by spaces; $OK is a model that answers
	code int
	says []string // parts of the error and of the hint
}

// usage is a mistake that the user mends, and withEnv is one in the environment.
func usage(line string, says ...string) wrongInput { return wrongInput{"", line, exitUsage, says} }

func withEnv(env, line string, says ...string) wrongInput {
	return wrongInput{env, line, exitUsage, says}
}

// wrongInputs are mistakes that people make. Every message names the value and the remedy.
var wrongInputs = slices.Concat(wrongCommands, wrongFlags, wrongFiles, wrongModels, wrongAgents, wrongServers)

// wrongCommands: commands and arguments.
var wrongCommands = []wrongInput{
	usage("runn hi", `unknown command "runn"`, "did you mean run?"),
	usage("lst", `unknown command "lst"`, "did you mean list?"),
	usage("help ru", `unknown command "ru"`, "did you mean run?"),
	usage("run -m script/nope.yaml hi", "model script/nope.yaml: there is no file ", "scripted-models"),
	usage("cancel", "cancel takes RUN, not 0 arguments", "--help shows an example"),
	usage("tree", "tree takes RUN", "troupe tree --help"),
	usage("list extra", "takes no arguments", `"extra"`),
	usage("run", "the prompt is empty", `troupe run "what to do"`),
	usage("run $OK hi there", "one prompt is expected, not 2 arguments", "put the prompt in quotes"),
	usage("agents describe", "describe takes NAME", "--help shows an example"),
	usage("mcp tst x", `unknown command "tst"`, "did you mean test?"),
	usage("completion foo", `no completion for "foo"`, "bash, zsh, fish, powershell"),
	usage("up --nodes 0", "--nodes 0", "1 to 16"),
	usage("up --root /nope", "--root: there is no directory /nope", "name an existing directory"),
	usage("answer last", "answer takes RUN QUERY ANSWER, not 1 argument", "--help shows an example"),
	withEnv("TROUPE_OUTPUT=csv", "list", `TROUPE_OUTPUT: output: no command can write "csv"`, "table, json, jsonl"),
	withEnv("TROUPE_COLOR=purple", "list", `TROUPE_COLOR: color: it is auto, always or never, not "purple"`),
	usage("run $OK --dir . --allowed-tools Bash(ls:* hi", `the ")" of "Bash(ls:*" is missing`, `write "Bash(ls:*)"`),
}

// wrongFlags: flags and their values.
var wrongFlags = []wrongInput{
	usage("run --maxturn 3 hi", "unknown flag: --maxturn", "did you mean --max-turns?"),
	usage("run --modle x hi", "unknown flag: --modle", "did you mean --model?"),
	usage("run --when 12:00 hi", "unknown flag: --when", "hint:"),
	usage("run $OK --max-turns -1 hi", "--max-turns must not be negative", "leave it out for the default"),
	usage("run $OK --max-turns 1.5 hi", `--max-turns "1.5": expected a whole number`, "such as 20"),
	usage("run $OK --max-turns many hi", `--max-turns "many": expected a whole number`),
	usage("run $OK --max-tokens 1e5 hi", `--max-tokens "1e5": expected a whole number`, "such as 20000"),
	usage("run $OK --max-tokens 60q hi", `--max-tokens "60q": expected a whole number`),
	usage("run $OK --max-budget-usd free hi", `--max-budget-usd "free": expected an amount`, "such as 0.5"),
	usage("run $OK --max-budget-usd -1 hi", "--max-budget-usd must not be negative"),
	usage("run $OK --max-tool-calls x hi", `--max-tool-calls "x": expected a whole number`),
	usage("run $OK --max-depth -2 hi", "--max-depth must not be negative"),
	usage("run $OK --max-children x hi", `--max-children "x": expected a whole number`),
	usage("run $OK --max-agents x hi", `--max-agents "x": expected a whole number`),
	usage("run $OK --timeout 10 hi", `--timeout "10": expected a duration with a unit`, "15m"),
	usage("run $OK --timeout soon hi", `--timeout "soon": expected a duration`),
	usage("run $OK --timeout -5m hi", "--timeout must not be negative"),
	usage("run $OK --temperature abc hi", `--temperature "abc": expected a number`),
	usage("run $OK --temperature 9 hi", "--temperature is 9: it must be between 0 and 2"),
	usage("run $OK --temperature -1 hi", "--temperature is -1"),
	usage("run $OK --effort huge hi", `--effort "huge"`, "low, medium or high"),
	usage("run $OK --use-tokens x hi", `--use-tokens "x": expected a whole number`),
	usage("run $OK -o table hi", `cannot write "table"`, "text, json, stream-json, yaml"),
	usage("list -o xml", `cannot write "xml"`, "table, json, jsonl, yaml"),
	usage("list --json -o yaml", "--json and -o yaml contradict each other"),
	usage("list --color blue", "--color is auto, always or never", `"blue"`),
	usage("list --state foo", `state is "foo"`, "live, queued, parked, finished, interrupted"),
	usage("list --since 5", `--since "5"`, "36h, 30d or 8w"),
	usage("list --since yesterday", `--since "yesterday"`, "36h"),
	usage("list --limit x", `--limit "x": expected a whole number`),
	usage("prune --older-than 5", "5", "30d"),
	usage("run $OK --run-id UPPER hi", `--run-id "UPPER"`, "lower-case ULID"),
	usage("run $OK --log-store disk hi", `no log store is called "disk"`, "leave --log-store out"),
	usage("run $OK --yes=maybe hi", `--yes "maybe": expected true or false`),
}

// wrongFiles: files and directories.
var wrongFiles = []wrongInput{
	usage("run $OK --dir $FILE hi", "is a file", "--dir takes a directory", "--attach"),
	usage("run $OK --dir nowhere hi", "there is no directory", "nowhere", "name an existing directory"),
	usage("run $OK --agents $FILE hi", "is a file", "name a directory"),
	usage("run $OK --agents nowhere hi", "there is no directory", "nowhere"),
	usage("run $OK --attach nowhere.png hi", "--attach nowhere.png: no such file", "name a file that can be read"),
	usage("run $OK --attach . hi", "--attach .: not a regular file"),
	usage("run $OK --json-schema nowhere.json hi", "--json-schema nowhere.json: no such file", "a file with a JSON Schema"),
	usage("run $OK --json-schema . hi", "--json-schema .: not a regular file"),
	usage("run $OK --json-schema $BROKEN hi", "--json-schema", "not a JSON object"),
	usage("run $OK --json-schema $TYPO hi", `"objct" is not a type of JSON Schema`, "did you mean object?"),
	usage("run $OK --json-schema $NESTED hi", `"strng" is not a type of JSON Schema`, "did you mean string?"),
	usage("run $OK --pricing-file $BROKEN hi", "models.dev", "--pricing-file names the file"),
	usage("run $OK --pricing-file nowhere.json hi", "nowhere.json", "no such file"),
	usage("run $OK --mcp-config $BROKEN hi", "--mcp-config", "line 1", "fix the file"),
	usage("run $OK --mcp-config nowhere.json hi", "nowhere.json", "no such file"),
	usage("run $OK --history $BROKEN hi", "--history", "line 1", "troupe export has written"),
	usage("run $OK --history nowhere.json hi", "nowhere.json", "no such file"),
	usage("run -m script/nowhere.yaml hi", "nowhere.yaml"),
	usage("run -m script/$BROKEN hi", "broken.json"),
	usage("eval nowhere", "nowhere: no such file", "a file of cases"),
	usage("agents validate nowhere", "nowhere"),
	usage("run $OK --policy nowhere.yaml hi", "--policy nowhere.yaml: no such file", "troupe policy test FILE"),
	usage("run $OK --policy . hi", "not a regular file"),
	usage("run $OK --policy $BROKEN hi", "broken.json", "docs/policy.md"),
	withEnv("TROUPE_POLICY=nowhere.yaml", "run $OK hi", "nowhere.yaml: no such file"),
	usage("policy test nowhere.yaml", "nowhere.yaml: no such file", "docs/policy.md"),
	usage("policy test $BROKEN", "broken.json", "docs/policy.md"),
	usage("policy test $POLICY --facts nowhere.json", "--facts nowhere.json: no such file", "a JSON file with facts"),
	usage("policy test $POLICY --facts $BROKEN", "--facts", `{"on": "stop"`),
	usage("policy test $POLICY --facts $OBJECT", `unknown field "type"`, `{"on": "stop"`),
	usage("policy test $POLICY --facts $OBJECT --run last", "--facts and --run exclude each other"),
	usage("policy test $POLICY --run nope", `there is no run "nope"`, "troupe list"),
	usage("policy set nope $POLICY", `there is no run "nope"`, "troupe list"),
	usage("policy set nope $BADRULE", ":3: rule", `unknown fact "tokns"; did you mean tokens?`),
	usage("policy show nope", `there is no run "nope"`, "troupe list"),
	usage("run $OK --store-dir $FILE hi", "not a directory", "--store-dir", "can be created and written"),
}

// wrongModels: models, keys and addresses.
var wrongModels = []wrongInput{
	usage("run -m gpt-6-sol hi", `"gpt-6-sol"`, "did you mean openai/gpt-6-sol?"),
	usage("run -m claude-sonnet-5.5 hi", "did you mean anthropic/claude-sonnet-5-5?"),
	usage("run -m sonnet hi", `"sonnet"`, "did you mean anthropic/claude-sonnet-5-5?"),
	usage("run -m scout hi", "did you mean builtin/scout?"),
	usage("run -m opnai/gpt-6-sol hi", `"opnai/gpt-6-sol"`, "did you mean openai/gpt-6-sol?"),
	usage("run -m antropic/claude-sonnet-5-5 hi", "did you mean anthropic/claude-sonnet-5-5?"),
	usage("run -m builtin/scot hi", "did you mean builtin/scout?"),
	usage("run -m anthropic/claude hi", "no credentials for anthropic/claude: set ANTHROPIC_API_KEY", "troupe models list"),
	usage("run -m anthropic/ hi", `"anthropic/"`, "PROVIDER/MODEL"),
	usage("run -m nothing-like-it-at-all hi", "not a model name", "PROVIDER/MODEL"),
	usage("run -m openai/gpt-6-sol hi", "no credentials for openai/gpt-6-sol", "OPENAI_API_KEY"),
	usage("run -m anthropic/claude-sonnet-5-5 hi", "no credentials", "ANTHROPIC_API_KEY"),
	usage("run -m gemini/gemini-4-argon hi", "no credentials", "GEMINI_API_KEY"),
	usage("models ping nonsense-model-name", "not a model name", "troupe models list"),
	usage("run $OK --fallback gpt-6-sol hi", `fallback "gpt-6-sol"`, "did you mean openai/gpt-6-sol?"),
	withEnv("ANTHROPIC_API_KEY=k", "run -m anthropic/claude-sonet-5-5 hi", "the price of anthropic/claude-sonet-5-5 is unknown", "did you mean anthropic/claude-sonnet-5-5?"),
	withEnv("OPENAI_API_KEY=k", "run -m openai/gpt-6-sool hi", "did you mean openai/gpt-6-sol?"),
	withEnv("OPENAI_API_KEY=k", "run -m openai/own-model hi", "the price of openai/own-model is unknown", "--max-tokens", "--allow-unpriced openai/own-model"),
	withEnv("OPENAI_BASE_URL=localhost:9/v1", "run hi", "OPENAI_BASE_URL", "it has no scheme", "did you mean http://localhost:9/v1?"),
	withEnv("OPENAI_BASE_URL=llm.example.com/v1", "run hi", "did you mean https://llm.example.com/v1?"),
	withEnv("OPENAI_BASE_URL=ftp://localhost/v1", "run hi", `its scheme is "ftp"`),
	withEnv("ANTHROPIC_BASE_URL=127.0.0.1:9", "run hi", "ANTHROPIC_BASE_URL", "did you mean http://127.0.0.1:9?"),
	withEnv("GOOGLE_GEMINI_BASE_URL=x", "run -m gemini/gemini-4-argon hi", "GOOGLE_GEMINI_BASE_URL", "https://HOST"),
	withEnv("OPENAI_API=both", "run -m openai/gpt-6-sol hi", "OPENAI_API"),
}

// wrongAgents: agents and tools, runs, settings.
var wrongAgents = []wrongInput{
	usage("run $OK --agent assistent hi", `no agent "assistent"`, "did you mean assistant?"),
	usage("run $OK --dir . --agent histrian hi", `no agent "histrian"`, "did you mean historian?"),
	usage("run $OK --dir . --allowed-tools greb hi", `no tool is called "greb"`, "did you mean grep?"),
	usage("run $OK --dir . --disallowed-tools shel hi", `no tool is called "shel"`, "did you mean shell?"),
	usage("run $OK --allowed-tools shell hi", "leaves the agent assistant no tool", "--dir"),
	usage("run $OK --dir . --require-tool greb hi", "a result of greb is required", "grep"),
	usage("run $OK --agent chain hi", "the prompt of chain must name the agents of the plan", "historian > auditor"),
	usage("agents describe nobody", `"nobody"`),
	usage("mcp test nobody", `no MCP server "nobody"`, "troupe mcp list"),
	usage("describe nope", `there is no run "nope"`, "troupe list"),
	usage("run --resume nope", `there is no run "nope"`, "troupe list"),
	usage("run --resume nope hi", "has its prompt already", "troupe steer nope TEXT"),
	usage("run $OK --fork nope hi", `there is no run "nope"`),
	usage("events nope --from bad", `not a cursor of this run: "bad"`, "use the cursor that troupe events"),
	usage("result last", "run", "hint:"),
	withEnv("TROUPE_MAX_TURNS=x", "run $OK hi", "TROUPE_MAX_TURNS", `"x" is not a whole number`),
	withEnv("TROUPE_MAXTURNS=5", "run $OK hi", "unknown environment variable TROUPE_MAXTURNS", "did you mean TROUPE_MAX_TURNS?"),
	withEnv("TROUPE_MODLE=x", "run hi", "did you mean TROUPE_MODEL?"),
	withEnv("TROUPE_TIMEOUT=10", "run $OK hi", "TROUPE_TIMEOUT", "not a duration"),
	usage("run $OK --dir $BADSETTINGS hi", `unknown key "max_turn"`, "did you mean max_turns?"),
}

// wrongServers: servers.
var wrongServers = []wrongInput{
	usage("list --context nosuch", "no such context", "nats context ls"),
	{"", "list -s nats://127.0.0.1:1", exitNoNode, []string{"no NATS server at nats://127.0.0.1:1", "start it"}},
	{"", "list -s 127.0.0.1:1", exitNoNode, []string{"no NATS server at 127.0.0.1:1"}},
	{"", "start $OK hi", exitNoNode, []string{"no troupe node is running", "troupe-node"}},
	{"", "nodes drain x", exitNoNode, []string{"no troupe node is running"}},
	{"NATS_URL=nats://127.0.0.1:1", "run $OK hi", exitNoNode, []string{"no NATS server at nats://127.0.0.1:1"}},
}

// Each of about a hundred mistakes has its documented exit code, a message that names the cause, and a remedy.
func TestWrongInputsNameCauseAndRemedy(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	files := map[string]string{"$OK": "-m script/" + filepath.Join(home, "ok.yaml"), "$FILE": filepath.Join(home, "file"), "$BROKEN": filepath.Join(home, "broken.json"),
		"$TYPO": filepath.Join(home, "typo.json"), "$NESTED": filepath.Join(home, "nested.json"), "$BADSETTINGS": filepath.Join(home, "settings"),
		"$POLICY": filepath.Join(home, "policy.yaml"), "$BADRULE": filepath.Join(home, "badrule.yaml"), "$OBJECT": filepath.Join(home, "typo.json")}
	for name, text := range map[string]string{"ok.yaml": "default: [{text: fine}]\n", "file": "x", "broken.json": "{nope", "typo.json": `{"type":"objct"}`,
		"nested.json": `{"type":"object","properties":{"type":{"type":"strng"},"mode":{"enum":["x"],"default":{"type":"any"}}}}`, "settings/troupe.yaml": "max_turn: 3\n",
		"policy.yaml": "rules: [{use: budget}]\n", "badrule.yaml": "rules:\n  # misspelled\n  - {name: x, on: turn, when: tokns > 3, why: y}\n"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	all := wrongInputs
	if len(all) < 100 {
		t.Errorf("only %d mistakes", len(all))
	}
	for i, c := range all {
		t.Run(strings.TrimSpace(c.env+" "+c.line), func(t *testing.T) {
			t.Parallel()
			line := c.line
			for name, value := range files {
				line = strings.ReplaceAll(line, name, value)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, "troupe", strings.Fields(line)...)
			cmd.Dir = work
			cmd.Env = append(append(os.Environ(), testEnv(filepath.Join(home, "home", string(rune('a'+i%26))+string(rune('a'+i/26))))...), c.env)
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			err, code := cmd.Run(), 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			text := stderr.String()
			if code != c.code || !strings.Contains(text, "error") || out.Len() > 0 {
				t.Errorf("exit %d, want %d; stdout %q, stderr\n%s", code, c.code, out.String(), text)
			}
			for _, part := range c.says {
				if !strings.Contains(text, part) {
					t.Errorf("it does not say %q:\n%s", part, text)
				}
			}
			for _, jargon := range []string{"strconv", "goroutine", "panic", "%!"} {
				if strings.Contains(text, jargon) {
					t.Errorf("it says %q:\n%s", jargon, text)
				}
			}
		})
	}
}
