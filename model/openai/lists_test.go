package openai_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
)

// TestListsOfAnEventAreBounded: one event of 8 MiB must not become a gigabyte of empty items.
func TestListsOfAnEventAreBounded(t *testing.T) {
	wiretest.CheckLists(t, chat.Dialect(), "data: {\"choices\":[%s]}\n\n", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[%s]}}]}\n\n")
	wiretest.CheckLists(t, responses.Dialect(), responses.Event("response.created", `"response":{"output":[%s]}`),
		responses.Event("response.output_item.done", `"item":{"content":[%s]}`), responses.Event("error", `"code":[%s]`))
}
