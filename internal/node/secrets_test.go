package node

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus"
)

// TestNodeMasksSecretsNotWordsPathsOrNumbers: values that were made to be secrets, wherever they
// are configured; not words, paths or numbers, which would be masked everywhere.
func TestNodeMasksSecretsNotWordsPathsOrNumbers(t *testing.T) {
	t.Parallel()
	env := map[string]string{"ANTHROPIC_API_KEY": "sk-ant-0123456789", "OPENAI_API_KEY": "not-needed", "GEMINI_API_KEY": "short-1",
		"ANTHROPIC_BASE_URL": "https://user:pass%2Fword-1@gate.example/v1?api_key=parameter-22&x=ordinary-value-1", "OLLAMA_HOST": "http://only-a-user-99@h:1"}
	m := NewMasker(Config{Env: func(name string) string { return env[name] },
		Bus:        bus.Options{Servers: "nats://n:server-pass-1@a,nats://token-of-nats-1@b", Password: "nats-pass-7!"},
		ServiceBus: bus.Options{User: "a-token-of-the-doors-1"},
		System:     bus.Options{User: "somebody-1", Password: "system-pass-1"},
		Environ: []string{"GITHUB_TOKEN=ghx_0123456789", "DB_PASSWORD=correct horse battery staple", "AWS_SECRET_ACCESS_KEY=AbCdEfGh/1234+5678", "DATABASE_URL=postgres://app:pa55-w0rd@db/x",
			"SSH_AUTH_SOCK=/tmp/ssh-1/agent.2", "GIT_AUTHOR_NAME=Somebody With 1 Name", "MAX_TOKENS=123456789", "SECRET_BACKEND=key-chain", "PWD=/home/1", "TOKENIZERS_PARALLELISM=true-or-false-1", "HOME=/home/somebody-1"}})
	for _, secret := range []string{"sk-ant-0123456789", "pass/word-1", "parameter-22", "only-a-user-99", "server-pass-1", "token-of-nats-1", "nats-pass-7!",
		"a-token-of-the-doors-1", "system-pass-1", "ghx_0123456789", "correct horse battery staple", "AbCdEfGh/1234+5678", "pa55-w0rd"} {
		if got := m.MaskValues("<" + secret + ">"); got != "<[masked]>" {
			t.Errorf("%s is shown: %s", secret, got)
		}
	}
	for _, word := range []string{"not-needed", "short-1", "ordinary-value-1", "somebody-1", "/tmp/ssh-1/agent.2", "Somebody With 1 Name", "123456789", "key-chain", "/home/1", "true-or-false-1"} {
		if got := m.MaskValues("<" + word + ">"); strings.Contains(got, "masked") {
			t.Errorf("%s is masked", word)
		}
	}
}
