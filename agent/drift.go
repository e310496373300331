package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// Task.Hashes holds the versions of the configuration with which a run began. A
// node that takes over an agent lists its differences in its Resumed. The record
// counts either way, and this file decides whether the agent continues by it; the
// agent never does so silently (F4). Added, removed or reworded tools are only
// reported. A changed prompt, route or directory, and a tool whose class changed,
// wait for a person before anything begins.

// FoundMax bounds the differences that a Resumed lists.
const FoundMax = 64

// configDrift is the difference between the current node and the record.
type configDrift struct {
	Found  map[string]string // the node's versions; "": the node lacks the item
	Agreed map[string]string // differences that a person has accepted
}

// blocking returns the blocking differences, sorted: those that no person has
// accepted and that the agent does not accept by itself.
func (d configDrift) blocking(t *spec.Task) []string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(d.Found)) {
		found := d.Found[k]
		if agreed, ok := d.Agreed[k]; ok && agreed == found { //mutant:agreed-for-any-other
			continue
		}
		if isBlocking(t, k, found) {
			keys = append(keys, k)
		}
	}
	return keys
}

// isBlocking reports whether a difference keeps the agent from continuing by itself.
func isBlocking(t *spec.Task, key, found string) bool {
	switch key {
	case spec.PromptVersion, spec.WorkspaceVersion: //mutant:other-prompt-goes-on
		return true
	case spec.RouteVersion: // a changed price is only reported
		return found == ""
	}
	name, ok := strings.CutPrefix(key, spec.ToolVersion)
	i := slices.IndexFunc(t.Tools, func(known model.ToolSpec) bool { return known.Name == name })
	if !ok || i < 0 || found == "" {
		return false
	}
	class, _, _ := strings.Cut(found, ":")
	return class != string(t.Tools[i].Class) //mutant:other-class-goes-on
}

// compareNode handles a node's report of its differences; ok is false if the report
// does not change whether the agent continues.
func compareNode(s *State, f Resumed, whole bool) (next *State, fx []Effect, ok bool) {
	if f.Looked {
		s = publishDrift(s, f.Found)
		s.Drift.Found = f.Found
	}
	w, blocked := s.Suspended, s.Cancel == nil && len(s.Drift.blocking(&s.Task)) > 0
	switch {
	case w.Why != AwaitsDriftAnswer && !blocked:
		return s, nil, false
	case w.Why != AwaitsDriftAnswer:
		return askBeforeResuming(s, whole)
	case !blocked: // this node matches the record
		s, fx = continueAsRecorded(s)
	case f.Looked:
		s, fx = askAboutDrift(s, w.Then, w.Held)
	}
	return s, fx, true
}

// askBeforeResuming asks a person before the agent continues on a node with blocking
// differences; ok is false if it asks later, before it uses a reservation.
func askBeforeResuming(s *State, whole bool) (next *State, fx []Effect, ok bool) {
	var then continuation
	var held *suspension
	switch s.Phase {
	case Thinking:
		s, fx = settleAhead(s, Settle{Reservation: s.Reservation, Lost: !whole && !s.Fork.Originals, Turn: s.Turn + 1})
		s.Open = false
		then = ThenAttempt
	case Acting:
		if whole {
			s = resetUnbegun(s)
		}
		then = ThenCalls
	case Reserving:
		then = ThenGrant
	case Hooking:
		then = ThenHooks
	case Waiting:
		w := s.Suspended
		if w.Why == AwaitsOthers || w.Why == AwaitsThrottle { // these lead to a reservation
			return s, nil, false
		}
		then, held = ThenHeld, &w
	default: // the loop is about to end
		return s, nil, false
	}
	s, more := askAboutDrift(s, then, held)
	return s, append(fx, more...), true
}

// askAboutDrift asks a person whether the agent may continue as recorded.
func askAboutDrift(s *State, then continuation, held *suspension) (*State, []Effect) {
	s.QuestionsAsked++
	q := Park{Query: fmt.Sprintf("turn-%d.%d", s.Turn, s.QuestionsAsked), Reason: spec.ResumeUnsafe, Question: clip.Text(s.Drift.question(&s.Task, s.Node), detailBytesMax)}
	s, e := suspendForPerson(s, suspension{Why: AwaitsDriftAnswer, Then: then, Question: q, Held: held})
	return s, []Effect{e}
}

// publishDrift warns about the differences that the node has not reported before.
func publishDrift(s *State, found map[string]string) *State {
	for _, k := range slices.Sorted(maps.Keys(found)) {
		if old, known := s.Drift.Found[k]; !known || old != found[k] {
			s.events.publish(driftEvents, event.KindWarningRaised, event.Warning{What: fmt.Sprintf("this node has another %s than the run was begun with", k),
				Why: fmt.Sprintf("recorded %s, here %s", recordedVersion(&s.Task, k), orNone(found[k]))})
		}
	}
	return s
}

// question is the question about the blocking differences of a node.
func (d configDrift) question(t *spec.Task, node string) string {
	var what []string
	for _, k := range d.blocking(t) {
		what = append(what, fmt.Sprintf("%s (recorded %s, here %s)", k, recordedVersion(t, k), orNone(d.Found[k])))
	}
	return fmt.Sprintf("Node %s differs from the configuration this run started with: %s. Approve to continue as recorded, deny to stop the run.", node, strings.Join(what, ", "))
}

// recordedVersion returns the task's version of an item that is compared.
func recordedVersion(t *spec.Task, key string) string {
	if key == spec.WorkspaceVersion {
		return orNone(t.Workspace)
	}
	return orNone(t.Hashes[key])
}

func orNone(hash string) string {
	if hash == "" {
		return "none"
	}
	return hash
}

// continueAsRecorded continues the loop where the question has interrupted it.
func continueAsRecorded(s *State) (*State, []Effect) {
	w := s.Suspended
	s, fx := endQuestion(s)
	switch w.Then {
	case ThenHeld:
		return prependEffects(fx)(continueHeld(s, *w.Held))
	case ThenAttempt:
		return prependEffects(fx)(anotherAttempt(s))
	case ThenCalls:
		return prependEffects(fx)(lostCalls(s))
	case ThenHooks:
		s.Phase = Hooking
		return s, append(fx, runGateHooks(s))
	default: // the reservation is still to come
		s.Phase = Reserving
		return s, fx
	}
}

// continueHeld continues a suspension that a question about a difference had interrupted.
// The call's own result may have answered its question meanwhile.
func continueHeld(s *State, w suspension) (*State, []Effect) {
	if w.Why == AwaitsRetry {
		return suspend(s, w), []Effect{Arm{Timer: retryTimer, Due: w.Due}}
	}
	if i := s.Calls.find(w.Question.Call); i >= 0 && s.Calls[i].Stage == Ended {
		return advanceCalls(s)
	}
	if s.TurnPreempted && asksAboutUnbegun(s, w) {
		return advanceCalls(s)
	}
	s, e := suspendForPerson(s, w)
	return s, []Effect{e}
}

// returnReservation returns a reservation that was granted although a person must be asked first.
func returnReservation(s *State) (*State, []Effect) {
	s, fx := settleAhead(s, Settle{Reservation: s.Reservation, Turn: s.Turn})
	if s.Suspended.Why != AwaitsDriftAnswer {
		var more []Effect
		s, more = askAboutDrift(s, ThenGrant, nil)
		fx = append(fx, more...)
	}
	s.Suspended.Then = ThenAttempt //mutant:spared-reservation-kept
	return s, fx
}

// restorePhase restores the phase that a question about a difference has interrupted, for
// a cancel, which ends a phase in another way than a wait. The question stays open until finishAgent.
func restorePhase(s *State) *State {
	switch s.Suspended.Then {
	case ThenHooks:
		s.Phase = Hooking
	case ThenGrant:
		s.Phase = Reserving
	}
	return s
}

// handleDriftAnswer handles a person's answer about a difference.
func handleDriftAnswer(s *State, f Answered) (*State, []Effect) {
	if f.Decision == spec.Deny {
		return handleCanceled(s, Canceled{Why: strings.TrimSuffix("a person said no: "+strings.TrimSpace(f.Text), ": "), As: spec.ResumeUnsafe})
	}
	s.Drift.Agreed = maps.Clone(s.Drift.Found)
	if text := strings.TrimSpace(f.Text); text != "" {
		s.PendingSteers = append(slices.Clip(s.PendingSteers), text)
	}
	return continueAsRecorded(s)
}

// recordResultDuringQuestion records a result that arrives while a person is asked; the result
// begins nothing. Its guardrails are asked when the loop continues.
func recordResultDuringQuestion(s *State, i int, f Returned) (*State, []Effect) {
	c := s.Calls[i]
	s.ToolMS += f.TookMS
	c.Tokens = f.Tokens
	c = c.end(model.ToolResult{Text: f.Text, Error: f.Error})
	if len(s.hooks.at(spec.HookToolResult, c.Name)) > 0 {
		c = c.awaitJudgment(f)
	}
	return s.withCall(i, c), nil
}
