package anthropic

// What families of models take and refuse, by the beginnings of their names.
var (
	// withoutEffort refuse an effort.
	withoutEffort = []string{"claude-3", "claude-haiku-4", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5",
		"claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2"}
	// withoutForm cannot be held to a schema. Other models that are served through this API (see
	// ours) may not support the field.
	withoutForm = []string{"claude-3", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-opus-4-0", "claude-opus-4-2"}
	// tempered accept a temperature. All later models reject one.
	tempered = []string{"claude-3", "claude-haiku-4", "claude-sonnet-4", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5", "claude-opus-4-6"}
	// unforced reject a forced tool call, whether they have thought or not.
	unforced = []string{"claude-fable-5-", "claude-mythos-5-", "claude-opus-5-", "claude-sonnet-5-"}
	// bound models also sign the content that comes before a thought.
	bound = []string{"claude-fable-5-", "claude-mythos-5-", "claude-opus-5-", "claude-sonnet-5-", "claude-haiku-5-"}
)

// ours begins the names of Anthropic's own models.
const ours = "claude-"

// dropBeta is the beta header under which a request may decide about
// thoughts that are bound to another beginning.
const dropBeta = "thinking-binding-controls-2026-08-01"

// dropStale asks to leave out such thoughts. These models think adaptively, and
// do so unasked.
var dropStale = thinkingConfig{Type: "adaptive", Binding: blockBinding{OnMismatch: "drop_block"}}
