package schedules

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/schedule"
)

// A request under the id of a schedule that exists names what the schedule was not made with.
func TestRequestForAnExistingScheduleNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	rule, err := schedule.NewRule(schedule.Times{Every: "1h"}, made)
	if err != nil {
		t.Fatal(err)
	}
	s := &schedule.State{Request: []byte(`{"prompt":"work","agent":"a"}`), Rule: rule, CreatedMS: made.Add(time.Second).UnixMilli()}
	differences := func(r, made client.RunRequest) (fields []string) {
		if r.Prompt != made.Prompt {
			fields = []string{"prompt"}
		}
		return fields
	}
	r := client.RunRequest{RunID: "nightly", Prompt: "work", Agent: "a", Every: "1h"}
	if got := describeExisting(r, s, differences); got.Differs != nil || !got.Existed {
		t.Errorf("the same request: %+v", got)
	}
	r.Prompt, r.Every = "play", "2h"
	if got := describeExisting(r, s, differences); !slices.Equal(got.Differs, []string{"prompt", "times"}) || got.Why != "the schedule exists already and differs in: prompt, times" {
		t.Errorf("another request: %+v", got)
	}
}
