package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// loopDetection records the repetition that the loop detects in itself. It is bounded:
// calls and results are kept as hashes.
type loopDetection struct {
	Last  []rememberedCall // the newest calls, at most Watch.Of
	Seen  []uint64         // the newest results that reads brought, at most seenMax
	Loops int              // detections so far
	Loop  detectedLoop     // the newest detection
	Level int              // of the ladder; 0: no repetition
	Calm  int              // calls since the newest detection, or the last step down the ladder
	Told  int              // the turn of the newest step up the ladder, where steps are apart

	BlockedTool string // the tool whose calls in the next reply are not run
	Forced      bool   // the next reply has to ask a person, or the loop does
	Failing     []failingTarget
	Forbidden   int // replies with forbidden proposals, in a row
}

// rememberedCall is one call as loop detection remembers it.
type rememberedCall struct {
	Tool   string
	Turn   int
	Call   uint64 // hash of the tool and its canonical arguments
	Result uint64 // hash of the tool and its result
	Moved  bool   // the call changed the world, as far as its class says
	Fresh  bool   // the world changed since the same call before, and the result differs
	Futile bool   // the call brought nothing new: an error, nothing, or a result that was seen before
	Search bool   // a new question whose answer is that there is nothing: that is progress
}

// detectedLoop is one detection.
type detectedLoop struct {
	Tier  detectorTier
	Tool  string
	Times int
}

// detectorTier names a detector.
type detectorTier string

// The detectors. Each word is also in the event.
const (
	Identical  detectorTier = "identical"   // the same call again
	NoProgress detectorTier = "no_progress" // other arguments, the same result
	Pattern    detectorTier = "pattern"     // other arguments, nothing new
)

// Levels of the ladder.
const (
	nudged = 1 + iota
	directed
	forced
)

const seenMax = 64

// watchCalls examines a batch that has ended: a detected loop leads to a nudge, then
// a directive, then a question, with Apart replies between them. busy is true if the loop waits for a person now,
// or has ended.
func watchCalls(s *State, calls []Call, transition spec.Transition) (next *State, then spec.Transition, fx []Effect, busy bool) {
	if answeredByPerson(calls) {
		s.LoopDetection = s.LoopDetection.cleared()
		return s, transition, nil, false
	}
	if s.LoopDetection.Forced {
		next, fx = askInsteadOfModel(s, "")
		return next, transition, fx, true
	}
	w := s.Task.LoopOptions.Watch
	if w.Of <= 0 {
		return s, transition, nil, false
	}
	kept := s.LoopDetection.remember(w, s.Turn, calls, s.tools)
	loop, found := s.LoopDetection.findLoop(w, s.Turn)
	if !found {
		s.LoopDetection = s.LoopDetection.steppedDown(w, kept)
		return s, transition, nil, false
	}
	if w.Apart > 0 && s.LoopDetection.Level > 0 && s.Turn <= s.LoopDetection.Told+w.Apart {
		return s, transition, nil, false // the model has just been told: its next replies show whether it has understood
	}
	s.LoopDetection.Loops++
	s.LoopDetection.Loop, s.LoopDetection.Calm = loop, 0
	s.LoopDetection.Level = min(s.LoopDetection.Level+1, forced)
	if w.Apart > 0 {
		s.LoopDetection.Told = s.Turn
	}
	s.events.publish(loopEvents, event.KindLoopDetected, event.LoopDetected{Tier: string(loop.Tier), Tool: loop.Tool, Times: loop.Times})
	if ending, _ := s.reachedLimit(); ending != "" {
		return s, transition, nil, false // a limit ends it now
	}
	return escalateLoop(s)
}

// escalateLoop applies the step of the ladder that the agent has reached.
func escalateLoop(s *State) (next *State, then spec.Transition, fx []Effect, busy bool) {
	loop := s.LoopDetection.Loop
	switch s.LoopDetection.Level {
	case nudged:
		return s.appendMessage(userMessage("You " + loop.description() + ". Try a different approach or a different tool.")), spec.LoopNudge, nil, false
	case directed:
		s.LoopDetection.BlockedTool = loop.Tool
		other, instead := otherTools(s, loop.Tool)
		s.Force = other
		return s.appendMessage(userMessage("You " + loop.description() + ", although you were told. Calls of " + loop.Tool +
			" in your next reply will not be run. " + instead)), spec.LoopNudge, nil, false
	}
	if !mayAskPeople(s) || !s.tools.knows(askTool) {
		next, fx = askInsteadOfModel(s, "")
		return next, spec.LoopNudge, fx, true
	}
	s.Force, s.LoopDetection.Forced = askTool, true
	return s.appendMessage(userMessage("You " + loop.description() + ", after two warnings. Ask a person now, with " + askTool +
		": say what you tried, what you need, and what the choices are.")), spec.AskHumanForced, nil, false
}

func userMessage(text string) model.Message { return model.Message{Role: model.User, Text: text} }

// askInsteadOfModel asks the question of the ladder's last step on behalf of the loop: the
// model did not ask, or cannot.
func askInsteadOfModel(s *State, said string) (*State, []Effect) {
	text := "The agent goes in circles: it " + s.LoopDetection.Loop.description() + ", after two warnings. The setting `watch` of docs/loop-options.md changes or ends this check."
	if said = strings.TrimSpace(said); said != "" {
		text += fmt.Sprintf(" It says: %q", clip.Text(said, saidShown))
	}
	return escalateToPerson(s, text, spec.NeedsHuman, spec.AskHumanForced)
}

const saidShown = 1 << 10 // of a model's text within a question

// description describes a detection, to the model and to people.
func (l detectedLoop) description() string {
	switch l.Tier {
	case Identical:
		return fmt.Sprintf("called %s with the same arguments %d times within the last calls", l.Tool, l.Times)
	case NoProgress:
		return fmt.Sprintf("got the same result from %s %d times within the last calls", l.Tool, l.Times)
	case Pattern:
		return fmt.Sprintf("called %s %d times within the last calls without anything new", l.Tool, l.Times)
	}
	return "repeated yourself"
}

// cleared clears the steps of the ladder: a person has given direction.
func (h loopDetection) cleared() loopDetection {
	return loopDetection{Seen: h.Seen, Loops: h.Loops, Loop: h.Loop, Forbidden: h.Forbidden}
}

// steppedDown steps down the ladder, one level for each Of calls without a detection.
func (h loopDetection) steppedDown(w spec.Watch, calls int) loopDetection {
	for h.Calm += calls; h.Level > 0 && h.Calm >= w.Of; h.Calm -= w.Of {
		h.Level--
	}
	if h.Level == 0 {
		h.Calm = 0
	}
	return h
}

// findLoop finds a loop to which the newest turn has added. The detectors count
//
//   - identical: the same call, unless the world changed in between and the
//     answer differs, as in editing and testing by turns;
//   - no progress: other arguments and yet the same result. Where a call
//     changes something, "ok" is progress, so there only errors count, and a
//     search for something else that finds nothing is progress, too;
//   - pattern: other arguments and nothing new in any of them. Reading ten files
//     one after the other is work, not a loop: each read brings something new. An
//     error, an empty result and a result that was seen before do not.
//
// The last two need calls of two turns: a reply makes all its calls before the
// model reads the first answer, so several calls in one reply are no repetition.
func (h loopDetection) findLoop(w spec.Watch, turn int) (detectedLoop, bool) {
	type detector struct {
		tier detectorTier
		at   int
		like func(a, b rememberedCall) bool
	}
	for _, d := range []detector{
		{Identical, w.Identical, func(a, b rememberedCall) bool { return a.Call == b.Call && !a.Fresh && !b.Fresh }},
		{NoProgress, w.Stuck, func(a, b rememberedCall) bool {
			return a.Result == b.Result && !a.Moved && !b.Moved && !(a.Search && b.Search)
		}},
		{Pattern, w.Pattern, func(a, b rememberedCall) bool { return a.Tool == b.Tool && a.Futile && b.Futile }},
	} {
		if d.at <= 0 {
			continue
		}
		for _, newest := range h.Last {
			if newest.Turn != turn {
				continue
			}
			times, before := 0, false
			for _, c := range h.Last {
				if d.like(newest, c) {
					times++
					before = before || c.Turn != turn
				}
			}
			if times >= d.at && (before || d.tier == Identical) {
				return detectedLoop{Tier: d.tier, Tool: newest.Tool, Times: times}, true
			}
		}
	}
	return detectedLoop{}, false
}

// remember records the calls of a batch and returns how many count: those of known
// tools that are not made for polling. Calls that the loop's own limits kept from
// running say nothing about the model.
func (h *loopDetection) remember(w spec.Watch, turn int, calls []Call, tools *toolRules) int {
	h.Last, h.Seen = slices.Clone(h.Last), slices.Clone(h.Seen)
	kept := 0
	for _, c := range calls {
		toolSpec, known := tools.spec(c.Name)
		if !known || tools.forbids(c.Name) || c.Result.Text == notRunLimit || toolSpec.Poll || slices.Contains(w.Polling, c.Name) {
			continue
		}
		kept++
		h.Last = append(h.Last, h.describeCall(c, turn))
		h.Last = lastItems(h.Last, min(w.Of, watchMax))
		if r := h.Last[len(h.Last)-1]; !c.Result.Error && !slices.Contains(h.Seen, r.Result) {
			h.Seen = lastItems(append(h.Seen, r.Result), seenMax)
		}
	}
	return kept
}

// watchMax bounds the memory of loop detection, whatever its task says.
const watchMax = 64

func lastItems[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// describeCall describes a call and its result, compared with the calls before it.
func (h *loopDetection) describeCall(c Call, turn int) rememberedCall {
	n := rememberedCall{Tool: c.Name, Turn: turn, Call: callTarget(c), Result: hashOf(c.Name, c.Result.Text)}
	// a child may have changed anything
	n.Moved = !c.Result.Error && (c.Class != model.Read || c.Kind.isDelegation() || changesBacklog(c.Name))
	n.Search = !c.Result.Error && !n.Moved && isNothingFound(c.Result.Text) && !h.wasCalled(n.Call)
	n.Futile = !n.Search && (c.Result.Error || !n.Moved && (strings.TrimSpace(c.Result.Text) == "" || slices.Contains(h.Seen, n.Result)))
	moved := false
	for _, old := range slices.Backward(h.Last) {
		if old.Call == n.Call {
			n.Fresh = (moved || old.Moved && changesBacklog(c.Name)) && old.Result != n.Result // one claim after the other is work
			break
		}
		moved = moved || old.Moved
	}
	return n
}

// wasCalled reports whether the same call is among the last ones.
func (h *loopDetection) wasCalled(call uint64) bool {
	return slices.ContainsFunc(h.Last, func(c rememberedCall) bool { return c.Call == call })
}

// nothingFoundMax is the most bytes of a result that only says that there is nothing.
const nothingFoundMax = 200

// isNothingFound reports whether a result says that a search found nothing, in the words that tools use.
func isNothingFound(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	if len(text) > nothingFoundMax {
		return false
	}
	switch text {
	case "", "none", "nothing", "[]", "{}", "null", "0":
		return true
	}
	// grep and glob of troupe: "[0 matches in 0 files; 2 files searched]", "[0 files, 0 bytes]"
	text = strings.TrimPrefix(text, "[")
	for _, start := range []string{"no ", "none ", "nothing ", "0 results", "0 matches", "0 files", "found 0", "not found"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// callTarget is a short name for a call's tool and arguments, in whatever form they are written.
func callTarget(c Call) uint64 { return hashOf(c.Name, canonicalJSON(c.Args)) }

// canonicalJSON writes JSON in one form. Text that does not decode stays as it is.
func canonicalJSON(args string) string {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return args
	}
	var b bytes.Buffer
	if json.NewEncoder(&b).Encode(v) != nil {
		return args
	}
	return b.String()
}

func hashOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
