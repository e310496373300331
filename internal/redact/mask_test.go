package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Tokens are put together here, so that no scanner of this repository finds one.
var (
	tail36 = "q8Zt3Lw0Xv7Rk2Nb5Hs9Jd4Fg6Pc1My8Tz3A"
	jwt    = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N"
	body   = strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B", 2)
	pem    = "-----BEGIN " + "PRIVATE KEY-----"
	pemEnd = "-----END " + "PRIVATE KEY-----"
)

func TestTokensOfKnownIssuersAreMaskedInPlace(t *testing.T) {
	m := New(Config{})
	for _, token := range []string{
		"AKIA" + "IOSFODNN7REALKEY", "ghp_" + tail36, "github_pat_" + tail36, "glpat-" + tail36, "xoxb-" + "123456789012-abcdefABCDEF",
		"sk_live_" + tail36, "sk-proj-" + tail36, "sk-ant-api03-" + tail36, "AIza" + tail36[:35], "ya29." + tail36, jwt,
		"npm_" + tail36, "SG." + tail36 + "." + tail36,
	} {
		line := `  call(x, "` + token + `") // why`
		if got, want := m.MaskText(line), `  call(x, "[masked]") // why`; got != want {
			t.Errorf("%s became %q", token, got)
		}
	}
}

func TestValuesOfSecretNamesAreMasked(t *testing.T) {
	m := New(Config{})
	for line, want := range map[string]string{
		`password = "hunter2!hunter"`:             `password = "[masked]"`,
		`"api_key": "9f8e7d6c5b4a3f2e1d",`:        `"api_key": "[masked]",`,
		`DB_PASSWORD: 's3cr3t-v4lue'  # comment`:  `DB_PASSWORD: '[masked]'  # comment`,
		`client.secret := "Zx9Qw7Rt5Yu3Io1P"`:     `client.secret := "[masked]"`,
		`access_token=a1b2c3d4e5f6g7h8&x=1`:       `access_token=[masked]&x=1`,
		`password: Sup3rS3cret`:                   `password: [masked]`,
		`<password>Sup3r!S3cret</password>`:       `<password>[masked]</password>`,
		`{\"token\": \"a1b2c3d4e5f6\"}`:           `{\"token\": \"[masked]\"}`,
		`Authorization: Bearer a1b2c3d4e5f6g7h8i`: `Authorization: Bearer [masked]`,
		`url: postgres://app:pa55w0rd@db:5432/x`:  `url: postgres://app:[masked]@db:5432/x`,
	} {
		if got := m.MaskText(line); got != want {
			t.Errorf("%s\nbecame %s", line, got)
		}
	}
}

func TestOrdinaryTextStaysVerbatim(t *testing.T) {
	m := New(Config{})
	for _, line := range []string{
		`password := os.Getenv("DB_PASSWORD")`, `token: ${TOKEN_FROM_VAULT_1}`, `secret = "changeme-please-1"`, `Password string`,
		`tokens := lexer.Tokenize(input2)`, `api_key = "your-api-key-here-1"`, `secretName: my-secret-name`, `password: "password"`,
		`https://example.com/a:b@c`, `git@github.com:troupe-run/troupe.git`, `// the token is a secret: see the docs`,
		`sk-fading-circle-animation-delay`, `max_tokens: 12345678`, `disk-usage-of-the-whole-machine`, `token_path: /etc/app/token1`,
		`-----BEGIN CERTIFICATE-----`, `if strings.Contains(s, "` + pem + `") {`, "\treturn", "}",
	} {
		if got := m.MaskText(line); got != line {
			t.Errorf("%s\nbecame %s", line, got)
		}
	}
}

func TestTheBodyOfAPrivateKeyIsMaskedLineByLine(t *testing.T) {
	m := New(Config{})
	text := "before\n" + pem + "\n" + body + "\n" + body + "\nAb3=\n" + pemEnd + "\nafter\n"
	want := "before\n" + pem + "\n[masked]\n[masked]\n[masked]\n" + pemEnd + "\nafter\n"
	if got := m.MaskText(text); got != want {
		t.Errorf("got %s", got)
	}
	one := `{"private_key": "` + pem + `\n` + body + `\n` + pemEnd + `\n"}`
	if got := m.MaskText(one); strings.Contains(got, body) || !strings.HasPrefix(got, `{"private_key": "`+pem) || !strings.HasSuffix(got, `"}`) {
		t.Errorf("one line: %s", got)
	}
}

func TestMentionedKeyNameMasksNothing(t *testing.T) {
	text := `x := "` + pem + `"` + "\n\treturn\n}\n\nfunc f() {}\n"
	if got := New(Config{}).MaskText(text); got != text {
		t.Errorf("got %s", got)
	}
}

func TestExactValuesAreMaskedInEveryEncoding(t *testing.T) {
	m := New(Config{Values: []string{"p@ss/w0rd\"x", "tiny", "line one\nline two"}})
	for text, want := range map[string]string{
		`a p@ss/w0rd"x b`:           `a [masked] b`,
		`a p%40ss%2Fw0rd%22x b`:     `a [masked] b`,
		`a cEBzcy93MHJkIng= b`:      `a [masked] b`,
		`{"k":"p@ss/w0rd\"x"}`:      `{"k":"[masked]"}`,
		`tiny words stay`:           `tiny words stay`,
		"line one\nand\nline two\n": "[masked]\nand\n[masked]\n",
	} {
		if got := m.MaskText(text); got != want {
			t.Errorf("%s became %s", text, got)
		}
	}
	if got := m.MaskValues(`p@ss/w0rd"x AKIA` + `IOSFODNN7REALKEY`); got != `[masked] AKIA`+`IOSFODNN7REALKEY` {
		t.Errorf("Values: %s", got)
	}
}

func TestFilesOfSecretsShowNoValueAtAll(t *testing.T) {
	m := New(Config{})
	show := func(path, text string) string {
		lines, out := m.NewLineMasker(path), []string{}
		for line := range strings.Lines(text) {
			out = append(out, string(lines.MaskLine([]byte(strings.TrimSuffix(line, "\n")))))
		}
		return strings.Join(out, "\n")
	}
	for path, c := range map[string][2]string{
		".env":             {"# db\nNAME=x\nexport  DB = 'y z' # c\n\nEMPTY=\nmore\n", "# db\nNAME=[masked]\nexport  DB = [masked]\n\nEMPTY=\n[masked]"},
		"a/.env.local":     {"A=1\n", "A=[masked]"},
		"prod.env":         {"A: 1\n#B=2\n", "A: [masked]\n#B=[masked]"},
		"k/server.pem":     {pem + "\nab\n" + pemEnd + "\n", pem + "\n[masked]\n" + pemEnd},
		".ssh/id_rsa":      {"anything\n", "[masked]"},
		"id_ed25519":       {"anything\n", "[masked]"},
		"server.key":       {"anything\n", "[masked]"},
		"id_rsa.pub":       {"ssh-rsa x\n", "ssh-rsa x"},
		"environment.go":   {"A=1\n", "A=1"},
		"keyboard.keys.md": {"a\n", "a"},
	} {
		if got := show(path, c[0]); got != c[1] {
			t.Errorf("%s shows %q, want %q", path, got, c[1])
		}
	}
}

func TestInSourceCodeAnExpressionIsNoValue(t *testing.T) {
	line := `	PrivateKey: testP256Private1Key,`
	m := New(Config{})
	if got := string(m.NewLineMasker("a.go").MaskLine([]byte(line))); got != line {
		t.Errorf("in Go: %s", got)
	}
	if got := string(m.NewLineMasker("a.yaml").MaskLine([]byte(`token: a1B2c3D4e5F6`))); got != "token: [masked]" {
		t.Errorf("in YAML: %s", got)
	}
}

func TestOnlySecretValuesOfADotEnvAreMasked(t *testing.T) {
	got := EnvValues("PORT=8080\nNODE_ENV=production\nDB_PASSWORD='longenough'\nexport X=Zx9Qw7Rt5Yu3Io1PaSdFg\nTOKEN=short\nKEY=${OTHER_VALUE}\n")
	if strings.Join(got, " ") != "longenough Zx9Qw7Rt5Yu3Io1PaSdFg" {
		t.Errorf("got %q", got)
	}
}

func TestMaskingKeepsLinesAndIsIdempotent(t *testing.T) {
	pieces := []string{"\n", " ", "password=", `"`, "token: ", "Zx9Qw7Rt5Yu3Io1P", "ghp_" + tail36, pem, body, pemEnd, "AKIA", jwt, "exact-value", "é", "\xff", "https://u:", "@h", "=", "basic "}
	m := New(Config{Values: []string{"exact-value"}})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(t, "pieces"), "")
		once := m.MaskText(text)
		if strings.Count(once, "\n") != strings.Count(text, "\n") {
			t.Fatalf("%q lost lines: %q", text, once)
		}
		if twice := m.MaskText(once); twice != once {
			t.Fatalf("%q: once %q, twice %q", text, once, twice)
		}
		if strings.Contains(once, "exact-value") || strings.Contains(once, "ghp_"+tail36) {
			t.Fatalf("%q shows a secret: %q", text, once)
		}
	})
}

func TestExactValuesAreFoundInEveryEncoding(t *testing.T) {
	const secret = `p4ss/w<rd"+=&é zq9`
	m := New(Config{Values: []string{secret}})
	quoted := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	forms := map[string]string{"raw": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "JSON": quoted(secret),
		"JSON in JSON": quoted(quoted(map[string]string{"k": secret})), "Go": strconv.Quote(secret), "hex": hex.EncodeToString([]byte(secret))}
	for before := range 4 {
		whole := []byte(strings.Repeat("u", before) + secret + ":x")
		forms[fmt.Sprint("base64 behind ", before)] = base64.StdEncoding.EncodeToString(whole)
		forms[fmt.Sprint("base64 URL behind ", before)] = base64.RawURLEncoding.EncodeToString(whole)
	}
	for name, form := range forms {
		text := "before " + form + " after"
		got := m.MaskValues(text)
		if !strings.Contains(got, Replacement) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: %s became %s", name, text, got)
		}
		if !m.MayContainValue([]byte(text)) || m.MayContainValue([]byte(got)) {
			t.Errorf("%s: %s: the quick look is wrong", name, got)
		}
	}
	if m.MayContainValue([]byte("nothing")) || New(Config{}).MayContainValue([]byte(secret)) {
		t.Error("it is found where it is not")
	}
}
