//go:build browser

package browser

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// submitAmount fills a field of the open form and sends it; the value is what the request has, or what the form says.
const submitAmount = `(async () => {
	const real = fetch, out = [];
	let sent = null;
	window.fetch = (path, more) => String(path).endsWith("/runs") && more?.method === "POST" ? (sent = JSON.parse(more.body), Promise.resolve(new Response('{"error":"kept back"}', {status: 400}))) : real(path, more);
	const form = document.querySelector("dialog form");
	document.querySelector("dialog textarea[name=prompt]").value = "count";
	for (const text of TEXTS) {
		sent = null;
		document.querySelector("dialog input[name=FIELD]").value = text;
		form.requestSubmit();
		for (let i = 0; i < 100 && form.querySelector("button[type=submit]").disabled || i < 2; i++) await new Promise((done) => setTimeout(done, 10));
		out.push(sent ? "sent " + sent.FIELD : document.querySelector("dialog .problem").textContent);
	}
	document.querySelector("dialog input[name=FIELD]").value = "";
	window.fetch = real;
	return out;
})()`

// The forms take the amounts that the commands take, and refuse the same.
func TestFormsTakeTheAmountsOfTheCommands(t *testing.T) {
	raw, err := os.ReadFile("../../internal/amount/testdata/amounts.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string][]struct {
		Text    string
		Value   json.Number
		Refused bool
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	s.signIn()
	s.do("the form", press("n"), chromedp.WaitVisible("dialog input[name=max_tokens]"))
	for kind, field := range map[string]string{"tokens": "max_tokens", "usd": "max_budget_usd"} {
		var texts, got []string
		for _, c := range cases[kind] {
			texts = append(texts, c.Text)
		}
		list, err := json.Marshal(texts)
		if err != nil {
			t.Fatal(err)
		}
		s.do(kind, chromedp.Evaluate(strings.NewReplacer("TEXTS", string(list), "FIELD", field).Replace(submitAmount), &got, awaitPromise))
		for i, c := range cases[kind] {
			want := "sent " + c.Value.String()
			if c.Text == "" {
				want = "sent undefined" // the default holds
			}
			if c.Refused && c.Text != "" {
				if !strings.Contains(got[i], "such as") {
					t.Errorf("%s %q: %s", kind, c.Text, got[i])
				}
			} else if got[i] != want {
				t.Errorf("%s %q: %s, not %s", kind, c.Text, got[i], want)
			}
		}
	}
}
