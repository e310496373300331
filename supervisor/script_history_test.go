package supervisor_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/model"
)

// pastMessages is a history of so many messages of a thousand bytes.
func pastMessages(t *testing.T, d *datadriven.TestData) []model.Message {
	t.Helper()
	var list []model.Message
	for range argNumber(t, d, "past", 0) {
		list = append(list, model.Message{Role: model.User, Text: strings.Repeat("x", 1000)})
	}
	return list
}
