//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// spendFigures replaces what the agents of a budget have spent: the rows have the index of their case as id.
const spendFigures = `{ const real = fetch; window.fetch = async (path, more) => {
	const r = await real(path, more);
	if (!String(path).endsWith("/budget")) return r;
	const doc = await r.json();
	doc.agents = CASES.map((c, i) => ({ ...doc.agents[0], id: "case-" + i, name: "case", used: { tokens: c.tokens ?? 0, nano_usd: Math.round((c.usd ?? 0) * 1e9), calls: 0 } }));
	return new Response(JSON.stringify(doc), { headers: { "Content-Type": "application/json" } });
}; }`

// The page writes tokens and dollars as the commands do.
func TestFiguresAreThoseOfTheCommands(t *testing.T) {
	raw, err := os.ReadFile("../../internal/term/testdata/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string][]struct {
		Value float64
		Text  string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	var spent []map[string]float64
	var want []string
	for _, c := range cases["tokens"] {
		spent, want = append(spent, map[string]float64{"tokens": c.Value}), append(want, c.Text)
	}
	for _, c := range cases["usd"] {
		spent, want = append(spent, map[string]float64{"usd": c.Value}), append(want, c.Text)
	}
	list, err := json.Marshal(spent)
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	s.signIn()
	run := s.start(s.script("default: [{text: done}]\n"), "count")
	row := `[...document.querySelectorAll("[aria-label='Spent by agent'] tbody tr")]`
	var got map[string][]string
	s.do("the figures", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/tree"), s.sees("completed"), chromedp.Evaluate(strings.Replace(spendFigures, "CASES", string(list), 1), nil),
		press("5"), chromedp.Poll(row+`.length === `+fmt.Sprint(len(want)), nil),
		chromedp.Evaluate(`Object.fromEntries(`+row+`.map((r) => [r.querySelector("small").textContent.trim(), [r.cells[2].textContent, r.cells[3].textContent]]))`, &got))
	for i, text := range want {
		column := 0
		if i >= len(cases["tokens"]) {
			column = 1
		}
		if cells := got[fmt.Sprintf("case-%d", i)]; len(cells) != 2 || cells[column] != text {
			t.Errorf("case %d: %q, want %q", i, cells, text)
		}
	}
}
