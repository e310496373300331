package term

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// drawInline draws a text so that a test can read the styles: <strong>, {code}.
func drawInline(text string) string {
	var b strings.Builder
	for _, span := range parseInline(text) {
		b.WriteString([]string{span.text, "<" + span.text + ">", "{" + span.text + "}"}[span.style])
	}
	return b.String()
}

func TestParseInline(t *testing.T) {
	for text, want := range map[string]string{
		"**a** and `b`":                        "<a> and {b}",
		"`i` and `m`":                          "{i} and {m}",
		"**3** of 30":                          "<3> of 30",
		"**two words**, __three of them__.":    "<two words>, <three of them>.",
		"**a `code` b**":                       "<a >{code}< b>",
		"**`code`**":                           "{code}",
		"**a __b c__ d**":                      "<a ><b c>< d>",
		"**a __b** c__":                        "<a __b> c__",
		"这是**粗体**文字":                           "这是<粗体>文字",
		"`__init__` and `src/**` or `test/**`": "{__init__} and {src/**} or {test/**}",
		"`` `x` `` and ``a`b``":                "{`x`} and {a`b}",
		"`a[i](x)`":                            "{a[i](x)}",
		"[docs](https://x.example) [u](u)":     "docs (https://x.example) u",
		"**[a](b)** [`c`](d)":                  "<a>< (b)> {c} (d)",
		"[**a**](https://x/__b c__)":           "[<a>](https://x/<b c>)", // a space ends an address
	} {
		if got := drawInline(text); got != want {
			t.Errorf("%q is drawn as %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"x = 2**3 + y**2", "2 ** 3 ** 4", "(a)**2 + (b)**2", "a[i]**(n) + b[j]**(m)", "f(*args, **kwargs)", "f(**a, **b)",
		"src/** or test/**", "src/**/*.go and test/**/*.go", "src/**.go and test/**.go", "**/*.go, src/**", "/** a */ and **/",
		"__init__", "__init__.py and __main__.py", "__attribute__((x))", "a__b__c", "snake__case and other__case", "** a **", "**", "****", "***a***", "**open", `\**a\**`,
		"`open", "``a`", "\\`a`", "a[i](x)", "![a](b)", "[a](b c)", "[](b)", "[a]()", "[a] (b)", "[a](" + strings.Repeat("x", linkBytesMax+1) + ")"} {
		if got := drawInline(text); got != text {
			t.Errorf("%q is doubtful, and drawn as %q", text, got)
		}
	}
}

// Blocks do not lose characters either.
func TestMarkdownKeepsWhatIsNoMark(t *testing.T) {
	for text, want := range map[string]string{
		"# Learn C#":                            "Learn C#",
		"# Done ##":                             "Done",
		"````\n```go\n````\nx":                  "    ```go\nx",
		"```\n```go\n```\nx":                    "    ```go\nx",
		"```one line```":                        "one line",
		"1234567890. x":                         "1234567890. x",
		strings.Repeat(" ", 500) + "- deep a b": strings.Repeat(" ", 20) + "• deep a b",
	} {
		if got := strings.Join((Style{}).Markdown(text, 40), "\n"); got != want {
			t.Errorf("%q is drawn as %q, want %q", text, got, want)
		}
	}
}

// markdownGrowthMax bounds the bytes drawn for one byte of an answer: a list item of one letter takes a line.
const markdownGrowthMax = 40

var styleEscape = regexp.MustCompile("\x1b\\[[0-9]+m")

// checkMarkdown checks that colours change nothing else, and that the output is not much larger than the input.
func checkMarkdown(t *testing.T, text string, width int) {
	t.Helper()
	text = CleanText(text)
	plain := strings.Join((Style{}).Markdown(text, width), "\n")
	styled := strings.Join((Style{On: true}).Markdown(text, width), "\n")
	if got := styleEscape.ReplaceAllString(styled, ""); got != plain {
		t.Fatalf("%.200q at %d without its escapes is %.200q, want %.200q", text, width, got, plain)
	}
	if len(styled) > markdownGrowthMax*(len(text)+1) {
		t.Fatalf("%.200q: %d bytes become %d", text, len(text), len(styled))
	}
	isContent := func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("`*_[]()", r) {
			return -1
		}
		return r
	}
	var b strings.Builder
	for _, span := range parseInline(text) {
		b.WriteString(span.text)
	}
	if !strings.Contains(text, "](") && strings.Map(isContent, b.String()) != strings.Map(isContent, text) {
		t.Fatalf("%q lost content: %q", text, b.String())
	}
}

// An answer with very many spans, or marks that nothing closes, takes time and space in proportion to its length.
func TestMarkdownIsLinear(t *testing.T) {
	const spans = 10_000
	for name, text := range map[string]string{
		"code":     "Set the flag to " + strings.Repeat("`m` and ", spans),
		"strong":   strings.Repeat("**a** ", spans),
		"links":    strings.Repeat("[a](b) ", spans),
		"openers":  strings.Repeat("**a ", spans) + strings.Repeat("[a](", spans) + strings.Repeat("__a ", spans),
		"ticks":    strings.Repeat("`a``b```c````", spans/4),
		"brackets": strings.Repeat("[", spans) + strings.Repeat("](", spans),
		"a word":   strings.Repeat("x", 100*spans),
		"indents":  strings.Repeat(" ", spans) + "- " + strings.Repeat("`m` and ", spans),
		"a number": strings.Repeat("1", spans) + ". " + strings.Repeat("`m` and ", spans),
	} {
		t.Run(name, func(t *testing.T) { checkMarkdown(t, text, 80) })
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range []string{"`i` and `m`", "**3** of 30", "x = 2**3 + y**2", "# C#\n\n- **a `b`**\n> [c](d)\n```\ne\n```\n| f |\n---", "这是**粗体**文字", "a\tb\x1b[31m"} {
		f.Add(text, 30)
	}
	f.Fuzz(func(t *testing.T, text string, width int) { checkMarkdown(t, text, width) })
}
