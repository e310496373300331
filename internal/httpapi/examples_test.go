package httpapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var (
	postPath  = regexp.MustCompile("`(?:GET. and )?POST (/?[^`]+)`")
	quoted    = regexp.MustCompile("`([^`]+)`")
	bareField = regexp.MustCompile(`([{,]\s*)("\w+")(\s*[,}])`)
)

// fillExample makes JSON of the short form of docs/http.md: {"agent","now"} names fields, and … stands for anything.
func fillExample(text string) string {
	text = strings.ReplaceAll(text, "{…}", "{}")
	for filled := ""; filled != text; {
		filled = text
		text = bareField.ReplaceAllString(text, `${1}${2}:null${3}`)
	}
	return text
}

// Each body that docs/http.md shows for a path is one that the path takes, or one of its answers.
func TestExamplesOfTheDocumentAreTaken(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for line := range strings.Lines(string(docs)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 {
			continue
		}
		for _, path := range postPath.FindAllStringSubmatch(cells[0], -1) {
			op, known := operations["POST "+strings.Replace(path[1], "…/", "/api/v1/runs/", 1)]
			if !known {
				t.Errorf("docs/http.md has POST %s, and no route", path[1])
				continue
			}
			for _, text := range quoted.FindAllStringSubmatch(cells[1], -1) {
				if !strings.HasPrefix(text[1], "{") {
					continue
				}
				examples++
				fits := func(doc any) error {
					return decodeBody(strings.NewReader(fillExample(text[1])), reflect.New(reflect.TypeOf(doc)).Interface(), true)
				}
				err := fits(op.body)
				for _, reply := range op.answers {
					if err != nil && reply != nil && fits(reply) == nil {
						err = nil
					}
				}
				if err != nil {
					t.Errorf("docs/http.md shows %s for POST %s: %v", text[1], path[1], err)
				}
			}
		}
	}
	if examples < 10 {
		t.Errorf("only %d examples are found", examples)
	}
	_, rest, _ := strings.Cut(string(docs), "-d '")
	chat, _, _ := strings.Cut(rest, "'")
	if err := json.Unmarshal([]byte(chat), &ChatRequest{}); err != nil || chat == "" {
		t.Errorf("%s: %v", chat, err)
	}
}
