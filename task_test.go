package troupe

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

const scheduledByClient = "Run waits for one run: a schedule is a request of Client().Run"

// notInTask are the fields of a request that no Task sets, with the reason.
var notInTask = map[string]string{
	"Holder":      "the node fills it in",
	"Owner":       "the node takes it from the subject of a request",
	"At":          scheduledByClient,
	"Every":       scheduledByClient,
	"Zone":        scheduledByClient,
	"On":          scheduledByClient,
	"Missed":      scheduledByClient,
	"Overlap":     scheduledByClient,
	"Interactive": "a program answers questions by Client().Answer, not at a terminal",
	"PaidLimit":   "the command line sets it: its settings may bring a token limit that the user did not choose",
	"DryRun":      "Run waits for a run, and a dry run begins none: it is a request of Client().Run",
	"Resume":      "Run with the RunID waits for the run; a new time limit is a request of Client().Run",
}

// Each field of a Task reaches a field of its own in the request, and each field of a request is in Task or has a
// reason not to be.
func TestEveryFieldOfATaskReachesTheRequest(t *testing.T) {
	reached := map[string]string{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Task]()) {
		if field.Anonymous {
			continue // its fields are visited
		}
		var task Task
		fillValue(t, field.Name, reflect.ValueOf(&task).Elem().FieldByIndex(field.Index))
		changed := changedFields(reflect.ValueOf(task.request()).Elem())
		if len(changed) != 1 {
			t.Errorf("%s sets %v in the request, want one field", field.Name, changed)
			continue
		}
		if other := reached[changed[0]]; other != "" {
			t.Errorf("%s and %s set %s", other, field.Name, changed[0])
		}
		reached[changed[0]] = field.Name
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[client.RunRequest]()) {
		if reason := notInTask[field.Name]; !field.Anonymous && (reached[field.Name] == "") == (reason == "") {
			t.Errorf("%s of a request: set by %q, and the reason not to be is %q", field.Name, reached[field.Name], reason)
		}
	}
}

// fillValue gives a field a value that is not zero.
func fillValue(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		t.Fatalf("%s is a %s, which this test cannot fill", name, v.Type())
	}
}

// changedFields are the names of the fields that are not zero.
func changedFields(v reflect.Value) (names []string) {
	for _, field := range reflect.VisibleFields(v.Type()) {
		if !field.Anonymous && !v.FieldByIndex(field.Index).IsZero() {
			names = append(names, field.Name)
		}
	}
	return names
}

// A duration that is not 0 stays so, whatever is below a millisecond. Any negative patience is off.
func TestDurationsOfATaskAreRoundedAwayFromZero(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, -1: -1, -time.Second: -1000, 90 * time.Second: 90_000} {
		task := Task{Timeout: d, QuestionTimeout: d, ParkTimeout: d, Patience: d}
		if r := task.request(); r.TimeoutMS != want || r.QuestionTimeout != want || r.ParkTimeout != want || r.PatienceMS != max(want, spec.Off) {
			t.Errorf("%s becomes %d, %d, %d and %d ms, want %d", d, r.TimeoutMS, r.QuestionTimeout, r.ParkTimeout, r.PatienceMS, want)
		}
	}
}

// A number without a meaning is refused as every other request, with a remedy; a limit that is too small to be counted is
// not taken for none at all.
func TestATaskWithANumberWithoutAMeaningIsRefused(t *testing.T) {
	n, err := Start(t.Context(), Config{Model: "builtin/scout", Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	nan := math.NaN()
	for name, task := range map[string]Task{
		"budget NaN": {MaxBudgetUSD: nan}, "budget infinite": {MaxBudgetUSD: math.Inf(1)}, "budget too small": {MaxBudgetUSD: 1e-12},
		"budget negative": {MaxBudgetUSD: -1}, "temperature NaN": {Temperature: &nan}, "schema": {JSONSchema: []byte("{")},
		"timeout": {Timeout: math.MaxInt64}, "patience": {Patience: math.MaxInt64},
	} {
		task.Prompt = "Look around"
		var refused *client.Error
		if _, err := n.Run(t.Context(), task); !errors.As(err, &refused) || refused.Code != client.CodeBad || refused.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
